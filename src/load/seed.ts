import type { LoadPlan } from './plan.ts';

/** Far from each other, so that `--seed 1` of one part is not `--seed 0` of the next. */
const APART = 1_000_003;

/** What prompts and arrivals are made from: each part of a run has its own, so that no two machines send the same. */
export function seedOf({ seed, part }: Pick<LoadPlan, 'seed' | 'part'>): number {
  return (seed + part.index * APART) % Number.MAX_SAFE_INTEGER;
}
