import { checkLoadResult } from '../core/load-check.ts';
import type { LoadResult } from '../core/load-types.ts';
import { LOAD_SNAPSHOT } from '../core/semconv-load.ts';
import type { RecordingView } from '../core/types.ts';

/** The result of the load run that a recording is of; null of another recording, and of a result that is none: recordings are untrusted. */
export function recordedLoad(view: RecordingView): LoadResult | null {
  const body = view.snapshots(LOAD_SNAPSHOT.result).at(-1)?.body;
  if (body === undefined) return null;
  try {
    return checkLoadResult(body);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
