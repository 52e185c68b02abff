import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { usageError } from '../../core/errors.ts';
import type { LoadResult } from '../../core/load-types.ts';
import type { Finding, RecordingView } from '../../core/types.ts';

/** A recording as it was named on the command line, read and judged afresh. */
export interface Analysed {
  /** As it was typed, without the `#…`. */
  readonly path: string;
  /** What stands behind `#`; null where nothing does. */
  readonly id: string | null;
  readonly view: RecordingView;
  readonly findings: readonly Finding[];
  /** Of a load run; null for a recording of something else. */
  readonly result: LoadResult | null;
}

/** Reads the one recording that a verb was given (`verb`: for its usage). Throws a TraceError when there is none, or several. */
export async function readAnalysed(
  verb: string,
  positionals: readonly string[],
  cwd: string,
): Promise<Analysed> {
  const [argument, another] = positionals;
  if (argument === undefined || another !== undefined) {
    throw usageError(
      argument === undefined ? 'no recording named' : 'one recording at a time',
      `trace ${verb} <recording>, the folder that attach printed`,
    );
  }
  const { path, id } = await locate(argument, cwd);
  const [{ openRecording }, { detectAll }] = await Promise.all([
    import('../../recording/reader.ts'),
    import('../../analysis/detectors.ts'),
  ]);
  const stored = await openRecording(resolve(cwd, path));
  const load = await readLoad(stored);
  const view = load?.view ?? stored;
  return { path, id, view, findings: detectAll(view), result: load?.result ?? null };
}

/** The result of a load run, and the view with it; null for a recording of something else. */
async function readLoad(
  view: RecordingView,
): Promise<{ readonly view: RecordingView; readonly result: LoadResult } | null> {
  if (view.start.command !== 'load') return null;
  const { loadResultOf, withLoadResult } = await import('../../load/observe/read-back.ts');
  const result = loadResultOf(view);
  return result === undefined ? null : { view: withLoadResult(view, result), result };
}

/** `<recording>#F2` → recording and finding, unless something of exactly that name exists. */
async function locate(argument: string, cwd: string): Promise<{ path: string; id: string | null }> {
  if (existsSync(resolve(cwd, argument))) return { path: argument, id: null };
  const { parseRecordingAddress } = await import('../../recording/format.ts');
  return parseRecordingAddress(argument);
}
