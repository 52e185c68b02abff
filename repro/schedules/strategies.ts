import type { Ratio } from '../../src/core/types.ts';
import type { Schedule, ScheduleSetting } from './schedule.ts';

/** Which schedules are tried, one for each seed. */

export type StrategyName = 'random' | 'pct' | 'targeted';
export const STRATEGY_NAMES: readonly StrategyName[] = ['random', 'pct', 'targeted'];

/** What strategies need to know of the unperturbed run and of what was asked for. */
export interface StrategyFacts {
  readonly name: StrategyName;
  /** Points that the unperturbed run met. */
  readonly points: number;
  /** Tasks that met them. */
  readonly tasks: number;
  /** Of PCT: how many constraints on the order the fault needs; 2 for most races (Burckhardt et al., ASPLOS 2010, table 3). */
  readonly depth: number;
  /** `file.py:37`, where targeted delays go. */
  readonly places: readonly string[];
}

/**
 * Faults differ in how many waits they need and how long ones: each seed takes another mixture (swarm testing, Groce et al., ISSTA 2012).
 * Rates are of points that wait, the others the longest wait in turns of the loop.
 */
const RATES: readonly Ratio[] = [0.3, 0.1, 0.6, 0.03];
const LONGEST_WAITS: readonly number[] = [10, 3, 30, 2, 5];
/** At the places that were named nearly always. */
const TARGETED_RATES: readonly Ratio[] = [0.5, 0.8, 0.3];

/** The schedule of a seed. */
export function scheduleOf(seed: number, facts: StrategyFacts, setting: ScheduleSetting): Schedule {
  const most = pick(LONGEST_WAITS, seed);
  switch (facts.name) {
    case 'random':
      return { ...setting, strategy: 'random', seed, rate: pick(RATES, seed), most };
    case 'targeted': {
      const rate = pick(TARGETED_RATES, seed);
      return { ...setting, strategy: 'targeted', seed, rate, most, places: facts.places };
    }
    case 'pct': {
      const { depth, points } = facts;
      return { ...setting, strategy: 'pct', seed, depth, points };
    }
  }
}

function pick(values: readonly number[], seed: number): number {
  return values[seed % values.length] ?? 0;
}

/**
 * The least probability with which one schedule of PCT shows a fault of this depth: 1 / (n · k^(d−1)) for n tasks and k points. In Node, where
 * a task has no identity, waits are put at d of the k points and the probability is 1 / k^d.
 */
export function pctBound(facts: StrategyFacts, hasTasks: boolean): number {
  const points = Math.max(1, facts.points);
  return hasTasks
    ? 1 / (Math.max(1, facts.tasks) * points ** (facts.depth - 1))
    : 1 / points ** facts.depth;
}
