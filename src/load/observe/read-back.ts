import { mergeHistograms } from '../../core/exponential-histogram.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { checkLoadResult } from '../../core/load-check.ts';
import { byLatency, type LoadResult } from '../../core/load-types.ts';
import { asObject } from '../../core/otlp-values.ts';
import { GENAI, type GenAiProfile } from '../../core/semconv-genai.ts';
import {
  LOAD_ATTR,
  LOAD_SNAPSHOT,
  type LoadHistogramKey,
  loadHistograms,
} from '../../core/semconv-load.ts';
import { printable } from '../../core/text.ts';
import type { Histogram, HistogramBuckets, RecordingView, Snapshot } from '../../core/types.ts';
import { totalOf } from '../results/total.ts';
import { HEALTH_KEYS, HISTOGRAM_KEYS } from './stage-observations.ts';

/**
 * The result of a load run out of its recording: of one that ended, and of one whose writer was killed, which is then whole up to the last
 * second that was written. Undefined when the recording is of something else; throws a TraceError when somebody changed it.
 */
export function loadResultOf(view: RecordingView): LoadResult | undefined {
  const inMemory = view.snapshots(LOAD_SNAPSHOT.result).at(-1);
  const run = view.snapshots(LOAD_SNAPSHOT.run).at(-1);
  if (inMemory === undefined && run === undefined) return undefined;
  try {
    if (inMemory !== undefined) return checkLoadResult(inMemory.body);
    const histograms = storedHistograms(view);
    const stages = [...byStage(view.snapshots(LOAD_SNAPSHOT.stage))]
      .sort(([a], [b]) => a - b)
      .map(([index, snapshots]) => stageOf(snapshots, histograms.get(index) ?? new Map()));
    const stored = { ...asObject(run?.body), stages, total: totalOf([], []) };
    const result = checkLoadResult(stored);
    return { ...result, total: totalOf(result.stages, result.slos) };
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new TraceError(
      'ERR_LOAD_RESULT',
      `the result in the recording cannot be read: ${printable(cause.message)}`,
      { exitCode: EXIT.unsupported, cause },
    );
  }
}

/** The view with the result in it, where detectors and reports look for it. */
export function withLoadResult(view: RecordingView, result: LoadResult): RecordingView {
  const snapshot: Snapshot = {
    kind: 'snapshot',
    at: view.endedAt,
    of: LOAD_SNAPSHOT.result,
    body: result,
  };
  return {
    ...view,
    snapshots: (of) => (of === LOAD_SNAPSHOT.result ? [snapshot] : view.snapshots(of)),
  };
}

type ByKey = Map<LoadHistogramKey, Histogram[]>;

function storedHistograms(view: RecordingView): ReadonlyMap<number, ByKey> {
  const profile: GenAiProfile =
    view.start.settings['gen_ai_profile'] === 'next' ? 'next' : 'stable';
  const metrics = loadHistograms(profile);
  const found = new Map<number, ByKey>();
  for (const key of HISTOGRAM_KEYS) {
    for (const histogram of view.histograms(metrics[key].name)) {
      const index = histogram.attributes?.[LOAD_ATTR.stageIndex];
      // Failed requests have points of their own, and are in no latency of the result.
      if (typeof index !== 'number' || histogram.attributes?.[GENAI.errorType] !== undefined)
        continue;
      const ofStage = found.get(index) ?? new Map<LoadHistogramKey, Histogram[]>();
      found.set(index, ofStage);
      const list = ofStage.get(key);
      if (list === undefined) ofStage.set(key, [histogram]);
      else list.push(histogram);
    }
  }
  return found;
}

/** Snapshots by the stage they are of; others are no snapshots of a stage. */
function byStage(snapshots: readonly Snapshot[]): ReadonlyMap<number, readonly Snapshot[]> {
  const found = new Map<number, Snapshot[]>();
  for (const snapshot of snapshots) {
    const index = asObject(snapshot.body)?.['index'];
    if (typeof index !== 'number') continue;
    const list = found.get(index);
    if (list === undefined) found.set(index, [snapshot]);
    else list.push(snapshot);
  }
  return found;
}

type Stored = Readonly<Record<string, unknown>>;

/** A kill costs one second; where histograms were lost in another way, no state agrees with them. */
const STATES_TRIED = 3;

/**
 * The last state of a stage whose histograms are there too. A second is written as two lines, logs before metrics: of a writer that was killed
 * in between, the snapshot is a second ahead, and the one before it is taken.
 */
function stageOf(snapshots: readonly Snapshot[], histograms: ByKey): Stored {
  let newest: Stored | null = null;
  for (const snapshot of snapshots.slice(-STATES_TRIED).toReversed()) {
    const { agrees, stage } = stateAt(snapshot, histograms);
    if (agrees) return stage;
    newest ??= stage;
  }
  return newest ?? {};
}

function stateAt(
  snapshot: Snapshot,
  histograms: ByKey,
): { readonly stage: Stored; readonly agrees: boolean } {
  const { index: _, coreShare, ...rest } = asObject(snapshot.body) ?? {};
  const merged = (key: LoadHistogramKey): HistogramBuckets =>
    mergeHistograms(
      (histograms.get(key) ?? []).filter(({ to }) => to <= snapshot.at).map((one) => one.buckets),
    );
  const latency = byLatency(merged);
  const health = Object.fromEntries(HEALTH_KEYS.map((key) => [key, merged(key)]));
  return {
    stage: { ...rest, latency, health: { ...health, coreShare } },
    agrees: latency.e2e.count === asObject(rest['requests'])?.['ok'],
  };
}
