import type { Comparison, ComparisonRow } from '../../core/load-outcome.ts';
import { LATENCY_KEYS, type LoadResult, type StageResult } from '../../core/load-types.ts';
import { LOAD_QUANTILES } from '../../core/load-rates.ts';
import { printable } from '../../core/text.ts';
import { difference } from './estimates.ts';
import { estimateOf, unitOf, type LoadMetric } from './metric.ts';
import { objectivesText } from './objectives.ts';

/** What is compared, by the names of `--fail-on`. */
const COMPARED: readonly {
  readonly name: string;
  readonly metric: LoadMetric;
  readonly isCost: boolean;
}[] = [
  ...LATENCY_KEYS.filter((key) => key !== 'connect').flatMap((key) => [
    { name: `${key}.mean`, metric: { kind: 'latency', key, of: 'mean' } as const, isCost: true },
    ...LOAD_QUANTILES.map(({ key: statistic, q }) => ({
      name: `${key}.${statistic}`,
      metric: { kind: 'latency', key, of: q } as const,
      isCost: true,
    })),
  ]),
  { name: 'error_ratio', metric: { kind: 'error-ratio' }, isCost: true },
  { name: 'rate', metric: { kind: 'rate', of: 'ok' }, isCost: false },
  { name: 'tokens', metric: { kind: 'rate', of: 'output-tokens' }, isCost: false },
  { name: 'goodput', metric: { kind: 'goodput', of: 'ratio' }, isCost: false },
];

/** This run beside an earlier one: level by level where both have the same, else as a whole. */
export function compareResults(now: LoadResult, baseline: LoadResult, source: string): Comparison {
  const pairs = pairsOf(now, baseline);
  return {
    source,
    caveats: caveatsOf(now, baseline),
    rows: pairs.flatMap(({ stage, before, after }) => compareStages(stage, before, after)),
  };
}

interface Pair {
  readonly stage: string | null;
  readonly before: StageResult;
  readonly after: StageResult;
}

function pairsOf(now: LoadResult, baseline: LoadResult): readonly Pair[] {
  if (now.stages.length < 2) return [{ stage: null, before: baseline.total, after: now.total }];
  const pairs = now.stages.flatMap((after) => {
    const before = baseline.stages.find((stage) => stage.label === after.label);
    return before === undefined ? [] : [{ stage: after.label, before, after }];
  });
  return pairs.length > 0 ? pairs : [{ stage: null, before: baseline.total, after: now.total }];
}

function compareStages(
  stage: string | null,
  before: StageResult,
  after: StageResult,
): readonly ComparisonRow[] {
  // In a closed loop the schedule is when a slot became free: the same again.
  const isClosed = after.asked?.kind === 'concurrency';
  return COMPARED.flatMap(({ name, metric, isCost }) => {
    if (isClosed && name.includes('_scheduled')) return [];
    const baseline = estimateOf(metric, before);
    const now = estimateOf(metric, after);
    if (baseline === null || now === null) return [];
    const found = difference(baseline, now);
    return [
      {
        metric: name,
        stage,
        unit: unitOf(metric),
        isCost,
        baseline,
        now,
        change: baseline.value === 0 ? null : now.value / baseline.value - 1,
        verdict: found === 'same' ? 'same' : (found === 'more') === isCost ? 'worse' : 'better',
      } satisfies ComparisonRow,
    ];
  });
}

/** What makes two runs different questions. */
function caveatsOf(now: LoadResult, baseline: LoadResult): readonly string[] {
  const caveats: string[] = [];
  const differ = (what: string, a: string | number | boolean, b: typeof a): void => {
    if (a !== b) caveats.push(`${what}: ${shown(b)} then, ${shown(a)} now`);
  };
  differ('url', now.url, baseline.url);
  differ('api', now.api, baseline.api);
  differ('model', now.model, baseline.model);
  differ('streaming', now.streaming, baseline.streaming);
  differ('seed', now.seed, baseline.seed);
  const levels = ({ stages }: LoadResult): string => stages.map(({ label }) => label).join(', ');
  differ('levels', levels(now), levels(baseline));
  differ('objectives', objectivesText(now.slos), objectivesText(baseline.slos));
  const isPartial = baseline.parts.present.some((part) => !part.complete) || baseline.interrupted;
  if (isPartial) caveats.push('the baseline was cut short');
  return caveats;
}

function shown(value: string | number | boolean): string {
  return printable(String(value), 80);
}
