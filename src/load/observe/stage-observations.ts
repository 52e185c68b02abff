import { LATENCY_KEYS, type StageResult } from '../../core/load-types.ts';
import { GENAI } from '../../core/semconv-genai.ts';
import {
  LOAD_ATTR,
  LOAD_METRIC,
  LOAD_SNAPSHOT,
  type LoadHistogramKey,
  loadHistograms,
} from '../../core/semconv-load.ts';
import type { GenAiProfile } from '../../core/semconv-genai.ts';
import type {
  Attributes,
  Histogram,
  HistogramBuckets,
  Metric,
  Observation,
  Sample,
  Seconds,
  Snapshot,
} from '../../core/types.ts';
import { histogramDelta } from './histogram-delta.ts';

/**
 * What is recorded of a stage once a second: the histograms' growth as delta points, everything else as a snapshot of the state so far. The
 * last snapshot and all points before it are the stage's result again (read-back.ts), also when nobody lived to write an end.
 */

export const HEALTH_KEYS = ['lateness', 'loopDelay', 'readLag'] as const;

/** Every histogram of a stage, by key. */
export function histogramsOf(stage: StageResult): Record<LoadHistogramKey, HistogramBuckets> {
  const { lateness, loopDelay, readLag } = stage.health;
  return { ...stage.latency, lateness, loopDelay, readLag };
}

export const HISTOGRAM_KEYS: readonly LoadHistogramKey[] = [...LATENCY_KEYS, ...HEALTH_KEYS];

/** Between which two moments something was seen, on the run's clock. */
export interface Between {
  readonly from: Seconds;
  readonly to: Seconds;
}

/** The growth of a stage's histograms since `before`; one that has not grown is left out. */
export function stageHistograms(
  stage: StageResult,
  before: StageResult | null,
  at: Between,
  names: { readonly profile: GenAiProfile; readonly attributes: Attributes },
): readonly Histogram[] {
  const metrics = loadHistograms(names.profile);
  const [now, then] = [histogramsOf(stage), before === null ? null : histogramsOf(before)];
  return HISTOGRAM_KEYS.flatMap((key) => {
    if (now[key].count === (then?.[key].count ?? 0)) return [];
    const buckets = histogramDelta(now[key], then?.[key] ?? null);
    const metric = metrics[key].name;
    return [{ kind: 'histogram', ...at, metric, buckets, attributes: names.attributes }];
  });
}

/** The stage so far without its histograms. */
export function stageSnapshot(index: number, stage: StageResult, at: Seconds): Snapshot {
  const { latency: _, health, ...rest } = stage;
  return {
    kind: 'snapshot',
    at,
    of: LOAD_SNAPSHOT.stage,
    body: { index, ...rest, coreShare: health.coreShare },
  };
}

/** The stage's counts so far, for dashboards: everything is in the snapshot too. */
export function stageSamples(stage: StageResult, at: Seconds, attributes: Attributes): Sample[] {
  const { requests, tokens, bytes } = stage;
  const sample = (metric: Metric, value: number, more?: Attributes): Sample => ({
    kind: 'sample',
    at,
    metric: metric.name,
    value,
    attributes: more === undefined ? attributes : { ...attributes, ...more },
  });
  const outcome = (name: 'ok' | 'unfinished' | 'warmup') =>
    sample(LOAD_METRIC.requests, requests[name], { [LOAD_ATTR.outcome]: name });
  return [
    outcome('ok'),
    outcome('unfinished'),
    outcome('warmup'),
    ...Object.entries(requests.errors).map(([error, n]) =>
      sample(LOAD_METRIC.requests, n, {
        [LOAD_ATTR.outcome]: 'failed',
        [GENAI.errorType]: error,
      }),
    ),
    sample(LOAD_METRIC.resends, requests.resent),
    sample(LOAD_METRIC.queued, requests.queued),
    sample(LOAD_METRIC.tokens, tokens.input, { [GENAI.tokenType]: 'input' }),
    sample(LOAD_METRIC.tokens, tokens.output, { [GENAI.tokenType]: 'output' }),
    sample(LOAD_METRIC.events, tokens.events),
    ...(stage.goodput === null ? [] : [sample(LOAD_METRIC.goodput, stage.goodput.met)]),
    sample(LOAD_METRIC.bytesSent, bytes.sent),
    sample(LOAD_METRIC.bytesReceived, bytes.received),
  ];
}

export type Emit = (observation: Observation) => void;
