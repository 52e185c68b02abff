import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';

/** Why a recording could not be written, or not any further. */
export function writeError(directory: string, cause: unknown): TraceError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'EIO';
  const what =
    code === 'ENOSPC' ? 'the disk is full' : cause instanceof Error ? cause.message : code;
  return new TraceError('ERR_RECORDING_WRITE', `cannot write the recording ${directory}: ${what}`, {
    exitCode: EXIT.usage,
    remedy: 'Free some space or name another folder with --output.',
    cause,
  });
}
