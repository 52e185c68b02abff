import type { Ratio } from '../../src/core/types.ts';
import type { Budget } from './budget.ts';

/** Whether what minimising came to holds: every step of it was decided by few trials, and of many such decisions some are wrong. */

/** What fresh trials said, of those that could run. */
export interface Verified {
  readonly failing: number;
  readonly runs: number;
}

/** What a case has to hold. */
export interface Holding<T> {
  /** Whether one fresh run of it fails; null when it could not run. */
  readonly trial: (one: T) => Promise<boolean | null>;
  /** The same of what must not fail; null without. */
  readonly control: ((one: T) => Promise<boolean | null>) | null;
  readonly keep: Ratio;
  readonly runs: number;
  /** Fresh trials are on top of it; an interruption ends them. */
  readonly budget: Budget;
}

export interface Held<T> {
  readonly one: T;
  readonly verified: Verified;
  /** Null without a control. */
  readonly control: Verified | null;
  /** Cases that were smaller and did not hold. */
  readonly fellBack: number;
}

/**
 * The smallest case of a chain, each made from the one before it, that fresh trials confirm: it fails at the rate to keep or more, and its
 * control not once. What does not hold is given up for one that came before: the last but one, but three, but seven, … of the chain. The first
 * is what was given: where nothing else holds it is the result, with what its trials said.
 */
export async function smallestThatHolds<T>(
  chain: readonly [T, ...T[]],
  holding: Holding<T>,
): Promise<Held<T>> {
  const [given] = chain;
  let at = chain.length - 1;
  for (let [step, fellBack] = [1, 0]; ; step *= 2, fellBack++) {
    const one = chain[at] ?? given;
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    const { holds, ...said } = await tryOut(one, holding);
    if (holds || at === 0 || holding.budget.isStopped) return { one, ...said, fellBack };
    at = Math.max(0, at - step);
  }
}

/** Runs a case and its control in turn, until all runs are done or it cannot hold any more. */
async function tryOut<T>(
  one: T,
  { trial, control, keep, runs, budget }: Holding<T>,
): Promise<{ holds: boolean; verified: Verified; control: Verified | null }> {
  const said = { failing: 0, runs: 0 };
  const silent = { failing: 0, runs: 0 };
  const most = runs - Math.ceil(keep * runs);
  let invalid = 0;
  const isOpen = (): boolean =>
    !budget.isStopped && silent.failing === 0 && said.runs - said.failing + invalid <= most;
  for (let run = 0; run < runs && isOpen(); run++) {
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    const hit = await trial(one);
    if (hit === null) invalid++;
    else count(said, hit);
    // oxlint-disable-next-line no-await-in-loop -- in turn: a machine that becomes slower does so to both
    const other = control === null ? null : await control(one);
    if (other !== null) count(silent, other);
  }
  const isSilent = control === null || (silent.failing === 0 && silent.runs > 0);
  return {
    holds: isOpen() && isSilent,
    verified: said,
    control: control === null ? null : silent,
  };
}

function count(into: { failing: number; runs: number }, isHit: boolean): void {
  into.runs++;
  if (isHit) into.failing++;
}
