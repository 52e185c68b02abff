import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { LoadResult } from '../../core/load-types.ts';
import { printable } from '../../core/text.ts';
import { readOutside } from '../../platform/outside-file.ts';

/** A result of `trace load`, from the folder of its recording or the JSON document that it printed. Throws a TraceError that names it. */
export async function readLoadResult(path: string, cwd: string): Promise<LoadResult> {
  const place = resolve(cwd, path);
  return (await isDocument(place, path)) ? documentAt(place, path) : recordingAt(place, path);
}

async function isDocument(place: string, path: string): Promise<boolean> {
  try {
    const found = await stat(place);
    return found.isFile() && !place.endsWith('.jsonl');
  } catch (error) {
    const code = errorCode(error);
    throw unreadable(path, code === 'ENOENT' ? 'it is not there' : code);
  }
}

async function documentAt(place: string, path: string): Promise<LoadResult> {
  const { DOCUMENT_LIMIT, readLoadDocument } = await import('../../load/results/document.ts');
  const text = await readOutside(place, DOCUMENT_LIMIT).catch((error: unknown) => {
    throw unreadable(path, errorCode(error));
  });
  return readLoadDocument(text, path);
}

async function recordingAt(place: string, path: string): Promise<LoadResult> {
  const [{ openRecording }, { loadResultOf }] = await Promise.all([
    import('../../recording/reader.ts'),
    import('../../load/observe/read-back.ts'),
  ]);
  const result = loadResultOf(await openRecording(place));
  if (result !== undefined) return result;
  throw new TraceError('ERR_LOAD_RESULT', `${printable(path)} is no recording of trace load`, {
    exitCode: EXIT.unsupported,
  });
}

function unreadable(path: string, why: string): TraceError {
  return new TraceError('ERR_LOAD_RESULT', `cannot read ${printable(path)}: ${why}`, {
    exitCode: EXIT.notFound,
    remedy: 'Give what trace load --save wrote, or the folder of a recording.',
  });
}
