import { readdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';

/** All that a recording folder holds. */
const RECORDING_FILES = /^(?:\.gitignore|telemetry(?:\.\d{4,})?\.jsonl(?:\.gz(?:\.partial)?)?)$/;

/**
 * Empties the folder of a recording, for `--force`. A folder that holds anything else is refused as a whole: a mistyped path must
 * not cost somebody their files. One that is not there is fine.
 */
export async function removeRecording(path: string): Promise<void> {
  const names = await readdir(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw notARecording(path, 'is not a folder that can be read', error);
  });
  const other = names.find((name) => !RECORDING_FILES.test(name));
  if (other !== undefined)
    throw notARecording(path, `holds ${printable(other, 60)}, so it is no recording`);
  for (const name of names) await unlink(join(path, name));
}

function notARecording(path: string, why: string, cause?: unknown): TraceError {
  return new TraceError('ERR_RECORDING_EXISTS', `${printable(path)} ${why}`, {
    exitCode: EXIT.usage,
    remedy: 'Name a new folder.',
    cause,
  });
}
