import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import { parseSegmentName } from './format.ts';

/** A file to read. */
export interface Segment {
  readonly path: string;
  /** Its number in the recording; null for a file of another name. */
  readonly index: number | null;
  readonly gzipped: boolean;
}

/** The files of the recording at `path`, oldest first: a folder, one of its segments, or any other file of OTLP/JSON Lines. */
export async function locateSegments(path: string): Promise<readonly Segment[]> {
  const shown = printable(path);
  const found = await stat(path).catch((cause: unknown) => {
    const code = cause instanceof Error && 'code' in cause ? cause.code : null;
    const why =
      code === 'ENOENT' || code === 'ENOTDIR' ? 'not there' : `not readable (${String(code)})`;
    throw new TraceError('ERR_RECORDING_NOT_FOUND', `the recording ${shown} is ${why}`, {
      exitCode: EXIT.notFound,
      remedy: 'Recordings are folders under .tracewright/, named by time, verb and target.',
      cause,
    });
  });
  if (!found.isDirectory() && !found.isFile())
    throw new TraceError('ERR_NOT_A_RECORDING', `${shown} is not a recording: it is not a file`, {
      exitCode: EXIT.notFound,
      remedy: 'Name a recording folder, or a file of OTLP/JSON Lines.',
    });
  if (!found.isDirectory()) {
    const single = { path, index: null, gzipped: path.endsWith('.gz') };
    return parseSegmentName(basename(path)) === undefined ? [single] : segmentsIn(dirname(path));
  }
  const segments = await segmentsIn(path);
  if (segments.length > 0) return segments;
  throw new TraceError('ERR_RECORDING_NO_TELEMETRY', `${shown} holds no telemetry.jsonl`, {
    exitCode: EXIT.notFound,
    remedy: 'Name the folder that a trace command printed as its recording.',
  });
}

/** A writer killed between compressing a segment and removing the plain file leaves both: the plain one is whole. */
async function segmentsIn(directory: string): Promise<readonly Segment[]> {
  const byIndex = new Map<number, Segment>();
  for (const name of (await readdir(directory)).toSorted()) {
    const parsed = parseSegmentName(name);
    if (parsed === undefined || (parsed.gzipped && byIndex.has(parsed.index))) continue;
    byIndex.set(parsed.index, { path: join(directory, name), ...parsed });
  }
  return [...byIndex.entries()].toSorted(([a], [b]) => a - b).map(([, segment]) => segment);
}
