import { driftOf } from '../core/drift.ts';
import { trendOf } from '../core/trend.ts';
import type { Evidence, Ratio, Seconds } from '../core/types.ts';
import { formatProbability, formatSeconds } from '../core/units.ts';

/**
 * Quadratic work: each run of the same code costs more than the one before, because it goes through all that was gathered until then. Seen as
 * CPU time, which a busy machine does not lengthen, of blocks of one place over the time since the program was first seen.
 */

/** Twice the cost within a run is a matter of days until nothing else is done; less may be a phase of the work. */
const LEAST_FACTOR = 2;
/** From here on each of seven stretches has six blocks, and two tests decide; of fewer, each has to be longer than the one before. */
const MANY_BLOCKS = 42;
/** Of the blocks, so much time is spent on a core, or it is no computation that grows. */
const LEAST_ON_CPU: Ratio = 0.5;

/** One block of the place. */
export interface Cost {
  readonly at: Seconds;
  readonly cpu: Seconds;
  readonly duration: Seconds;
}

export interface GrowingCost {
  readonly evidence: Evidence;
  readonly measure: Readonly<Record<string, number>>;
}

/** Null where the cost does not grow by the rules of a trend, or is not the program's own CPU time. */
export function growingCost(blocks: readonly Cost[]): GrowingCost | null {
  const sorted = blocks.toSorted((a, b) => a.at - b.at);
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const cpu = sum(sorted.map((block) => block.cpu));
  if (cpu < LEAST_ON_CPU * sum(sorted.map(({ duration }) => duration))) return null;
  const growth = growthOf(sorted);
  if (growth === null || growth.last < growth.first * LEAST_FACTOR) return null;
  return { evidence: evidenceOf(growth), measure: measureOf(growth) };
}

interface Growth {
  readonly first: Seconds;
  readonly last: Seconds;
  /** Seconds of CPU a second. */
  readonly slope: number;
  readonly duration: Seconds;
  readonly blocks: number;
  /** Null where each block was longer than the one before. */
  readonly p: Ratio | null;
}

function growthOf(sorted: readonly Cost[]): Growth | null {
  const at = sorted.map((block) => block.at);
  const cpu = sorted.map((block) => block.cpu);
  const blocks = sorted.length;
  const drift = driftOf(at, cpu, MANY_BLOCKS);
  if (drift !== null) return drift.drifts ? { ...drift, blocks } : null;
  const trend = trendOf(at, cpu);
  return trend.verdict === 'grows' ? { ...trend, blocks } : null;
}

function evidenceOf(growth: Growth): Evidence {
  const { first, last, duration, blocks, p } = growth;
  return {
    kind: 'growing-cost',
    summary:
      `the same code took ${formatSeconds(first)} of CPU at first and ${formatSeconds(last)} at last (${blocks} blocks in ${formatSeconds(duration)}` +
      `${p === null ? ', each longer than the one before' : `; a walk without drift climbs so with p ${formatProbability(p)}`})`,
    data: { ...growth },
  };
}

function measureOf({ first, last, slope }: Growth): GrowingCost['measure'] {
  return {
    start_cpu_s: first,
    end_cpu_s: last,
    cost_growth_ratio: last / Math.max(first, Number.EPSILON),
    cost_growth_per_s: slope,
  };
}
