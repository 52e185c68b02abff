import { mergeHistograms } from '../../core/exponential-histogram.ts';
import type { LoadResult, StageResult } from '../../core/load-types.ts';
import { GENAI, type GenAiProfile } from '../../core/semconv-genai.ts';
import {
  LOAD_ATTR,
  LOAD_SNAPSHOT,
  type LoadHistogramKey,
  loadHistograms,
} from '../../core/semconv-load.ts';
import type { Histogram, HistogramBuckets, RecordingView, Snapshot } from '../../core/types.ts';
import { totalOf } from '../results/total.ts';
import { toRunPart, toStagePart } from './stored-result.ts';
import { HISTOGRAM_KEYS } from './stage-observations.ts';

/**
 * The result of a load run out of its recording: of one that ended, and of one whose writer was killed, which is then whole up to the last
 * second that was written. Undefined when the recording is of something else.
 */
export function loadResultOf(view: RecordingView): LoadResult | undefined {
  const inMemory = view.snapshots(LOAD_SNAPSHOT.result).at(-1)?.body;
  if (inMemory !== undefined) return inMemory as LoadResult;
  const run = toRunPart(view.snapshots(LOAD_SNAPSHOT.run).at(-1)?.body);
  if (run === undefined) return undefined;
  const histograms = storedHistograms(view);
  const stages = [...byStage(view.snapshots(LOAD_SNAPSHOT.stage))]
    .sort(([a], [b]) => a - b)
    .flatMap(([index, snapshots]) => stageOf(snapshots, histograms.get(index) ?? new Map()));
  return { ...run, stages, total: totalOf(stages, run.slos) };
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

function byStage(snapshots: readonly Snapshot[]): ReadonlyMap<number, readonly Snapshot[]> {
  const found = new Map<number, Snapshot[]>();
  for (const snapshot of snapshots) {
    const index = toStagePart(snapshot.body)?.index;
    if (index === undefined) continue;
    const list = found.get(index);
    if (list === undefined) found.set(index, [snapshot]);
    else list.push(snapshot);
  }
  return found;
}

/**
 * The last state of a stage whose histograms are there too. A second is written as two lines, logs before metrics: of a writer that was killed
 * in between, the snapshot is a second ahead, and the one before it is taken.
 */
function stageOf(snapshots: readonly Snapshot[], histograms: ByKey): readonly StageResult[] {
  const states = snapshots.toReversed().map((snapshot) => stateAt(snapshot, histograms));
  const best = states.find((state) => state?.agrees) ?? states.find((state) => state !== undefined);
  return best === undefined ? [] : [best.stage];
}

function stateAt(
  snapshot: Snapshot,
  histograms: ByKey,
): { readonly stage: StageResult; readonly agrees: boolean } | undefined {
  const part = toStagePart(snapshot.body);
  if (part === undefined) return undefined;
  const merged = (key: LoadHistogramKey): HistogramBuckets =>
    mergeHistograms(
      (histograms.get(key) ?? []).filter(({ to }) => to <= snapshot.at).map((one) => one.buckets),
    );
  const { index: _, coreShare, ...rest } = part;
  const stage: StageResult = {
    ...rest,
    latency: {
      ttft: merged('ttft'),
      itl: merged('itl'),
      tpot: merged('tpot'),
      ntpot: merged('ntpot'),
      e2e: merged('e2e'),
      ttft_scheduled: merged('ttft_scheduled'),
      e2e_scheduled: merged('e2e_scheduled'),
      connect: merged('connect'),
    },
    health: {
      lateness: merged('lateness'),
      loopDelay: merged('loopDelay'),
      readLag: merged('readLag'),
      coreShare,
    },
  };
  return { stage, agrees: stage.latency.e2e.count === stage.requests.ok };
}
