import { Budget, stillFails } from '../shrink/budget.ts';
import { ddmin } from '../shrink/ddmin.ts';
import type { Comparison } from './conclude.ts';
import type { Setting } from './setting.ts';
import { type Flag, TOGETHER, withChanged } from './settings.ts';

/** Flags that matter only together: the fewest whose change ends the fault, where none does alone. */

/** Trials for each flag, in times those of a row: delta debugging of n flags takes some 2 n candidates, most of them decided by a few trials. */
const ROWS_A_FLAG = 2;

/** The most trials that {@link fewestFlags} runs, beyond the table's own. */
export function mostFlagTrials(flags: readonly Flag[], runs: number): number {
  return flags.length < 2 ? 0 : flags.length * ROWS_A_FLAG * runs;
}

/** Whether there is something to find: all together end it, and none alone. */
export function matterTogether(rows: readonly Comparison[]): boolean {
  const endsIt = ({ effect }: Comparison): boolean => effect === 'gone';
  return (
    rows.some((row) => row.factor === TOGETHER && endsIt(row)) &&
    !rows.some((row) => row.factor.startsWith('flag ') && endsIt(row))
  );
}

export interface FlagSearch {
  readonly given: Setting;
  readonly flags: readonly Flag[];
  /** How often it happened as given. */
  readonly base: { readonly reproduced: number; readonly trials: number };
  /** Trials of a row of the table. */
  readonly runs: number;
  readonly abort: AbortSignal;
  /** A fresh trial: whether it happened; null when it could not run. */
  readonly trial: (setting: Setting) => Promise<boolean | null>;
}

/** By ddmin, each set judged by a sequential test against the rate as given. Null: the budget ended, or all of them are needed. */
export async function fewestFlags(search: FlagSearch): Promise<Setting | null> {
  const { given, flags, base, runs, abort, trial } = search;
  const budget = new Budget({ trials: mostFlagTrials(flags, runs), time: Infinity, abort });
  const keep = base.reproduced / base.trials;
  const { kept, isMinimal } = await ddmin(flags, async (some) => {
    const setting = withChanged(given, flags, some);
    let hasRun = false;
    const once = async (): Promise<boolean | null> => {
      const hit = await trial(setting);
      hasRun ||= hit !== null;
      return hit;
    };
    const happens = await stillFails(once, keep, budget);
    // A set with which nothing runs ends nothing.
    return happens === null ? null : !happens && hasRun;
  });
  return isMinimal && kept.length < flags.length ? withChanged(given, flags, kept) : null;
}
