import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';

/** Why a recording could not be written, or not any further. */
export function writeError(directory: string, cause: unknown): TraceError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'EIO';
  const what =
    code === 'ENOSPC'
      ? 'the disk is full'
      : cause instanceof Error
        ? withoutPath(cause.message)
        : code;
  return new TraceError('ERR_RECORDING_WRITE', `cannot write the recording ${directory}: ${what}`, {
    exitCode: EXIT.usage,
    remedy: 'Free some space or name another folder with --output.',
    cause,
  });
}

/** What the system says, without the path by a descriptor that it was asked with. */
export function withoutPath(message: string): string {
  return message.replace(/, \w+ '\/proc\/self\/fd\/.*$/s, '');
}
