import { fisherExact } from '../../src/core/fisher.ts';
import type { Ratio } from '../../src/core/types.ts';
import type { TrialTally } from '../../src/core/verdict.ts';
import { tallyOf } from '../run/tally.ts';
import type { ArmTrials } from '../run/rounds.ts';
import { AS_GIVEN, type Setting } from './setting.ts';
import { STUB, TOGETHER } from './settings.ts';

/** Below this, after Holm's correction for how many comparisons are made, two rates differ. */
const LEVEL: Ratio = 0.05;

/** `no-base`: it never happened as given, so nothing can be gone. */
export type Effect = 'gone' | 'less' | 'more' | 'none-seen' | 'invalid' | 'no-base';

/** One row of the table: what was changed, how often the fault happened then, and what follows. */
export interface Comparison {
  readonly factor: string;
  readonly value: string;
  readonly tally: TrialTally;
  /** Fisher's exact test against the reproduction as given, Holm's correction; null for that itself and where nothing ran. */
  readonly p: Ratio | null;
  /** Null for the reproduction as given. */
  readonly effect: Effect | null;
  /** Of the first trial that could not run; null where none was invalid. */
  readonly reason: string | null;
}

/** How each setting compares with the first, which is the reproduction as given. */
export function compare(
  settings: readonly ArmTrials<Setting>[],
  stoppedEarly: boolean,
): readonly Comparison[] {
  const rows = settings.map(({ arm: setting, trials }) => ({
    factor: setting.factor,
    value: setting.value,
    tally: tallyOf(setting.value === '' ? setting.factor : setting.value, trials, stoppedEarly),
    reason: trials.find(({ outcome }) => outcome === 'invalid')?.reason ?? null,
  }));
  const base = rows.find(({ factor }) => factor === AS_GIVEN)?.tally;
  if (base === undefined) return [];
  const others = rows.filter(({ factor, tally }) => factor !== AS_GIVEN && tally.trials > 0);
  const corrected = holm(
    others.map(({ tally }) =>
      fisherExact(
        { hits: tally.reproduced, n: tally.trials },
        { hits: base.reproduced, n: base.trials },
      ),
    ),
  );
  return rows.map((row) => {
    if (row.factor === AS_GIVEN) return { ...row, p: null, effect: null };
    const p = corrected[others.indexOf(row)] ?? null;
    return { ...row, p, effect: effectOf(row.tally, base, p) };
  });
}

function effectOf(tally: TrialTally, base: TrialTally, p: Ratio | null): Effect {
  if (tally.trials === 0 || p === null) return 'invalid';
  const [rate, usual] = [
    tally.reproduced / tally.trials,
    base.reproduced / Math.max(1, base.trials),
  ];
  if (p > LEVEL) return usual === 0 ? 'no-base' : 'none-seen';
  if (rate > usual) return 'more';
  return tally.reproduced === 0 ? 'gone' : 'less';
}

/** Holm (1979): the probabilities of several tests, so that any of them is below the level by chance no more often than one would be. */
export function holm(values: readonly Ratio[]): readonly Ratio[] {
  const order = values.map((_, index) => index).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const corrected = values.map(() => 1);
  let least = 0;
  order.forEach((index, rank) => {
    least = Math.max(least, Math.min(1, (values[index] ?? 1) * (values.length - rank)));
    corrected[index] = least;
  });
  return corrected;
}

/** What follows from the table, in sentences. */
export function conclusions(rows: readonly Comparison[]): readonly string[] {
  const base = rows.find(({ effect }) => effect === null);
  if (base === undefined || base.tally.trials === 0)
    return ['No trial could run as given: nothing follows.'];
  if (base.tally.reproduced === 0)
    return [
      'It never happened as given: nothing can be told apart from that. More runs, or trace repro explore.',
    ];
  const fewest = rows.findLast(({ factor }) => factor === TOGETHER);
  const isAlone = rows.some(
    ({ factor, effect }) => factor.startsWith('flag ') && effect === 'gone',
  );
  const said = rows.flatMap((row) => sentence(row, row === fewest && !isAlone) ?? []);
  const silent = rows.filter(({ effect }) => effect === 'none-seen');
  return [
    ...said,
    ...(silent.length === 0
      ? []
      : [
          `No difference was seen for ${silent.map(nameOf).join(', ')}; that is not proof of none.`,
        ]),
  ];
}

/** `isTogether`: it is the smallest set of flags, and no flag ends it alone. */
function sentence(row: Comparison, isTogether: boolean): string | null {
  const { effect, factor, value } = row;
  if (effect === 'invalid')
    return `${nameOf(row)} could not run: ${row.reason ?? 'no trial was run'}.`;
  if (effect !== 'gone' && effect !== 'less' && effect !== 'more') return null;
  const [kind = '', ...rest] = factor.split(' ');
  const what = rest.join(' ');
  const gone = effect === 'gone';
  const change = gone ? 'it is gone' : effect === 'less' ? 'it is rarer' : 'it is more frequent';
  switch (kind) {
    case 'concurrency':
      return `With ${value} at a time ${change}${gone && value === '1' ? ': it takes two at a time' : ''}.`;
    case 'serialize':
      return `With ${what} called one at a time ${change}${gone ? ': calls of it disturb each other' : ''}.`;
    case 'mock':
      return `With ${what} answering at once ${change}${gone ? ': it needs what that function does, or the time it takes' : ''}.`;
    case 'flag':
      return `With ${what}=${value} ${change}.`;
    case 'flags':
      return `With ${value} ${change}${gone && isTogether ? ': it takes them together, none was seen to end it alone' : ''}.`;
    case 'upstream':
      if (value === STUB)
        return `With ${what} answering at once, as recorded, ${change}${gone ? ': it needs what that does, or the time it takes' : ''}.`;
      return `With ${what} ${value} ${change}.`;
    case 'observed':
      return `Watched ${value} ${change}: what it needs of time is changed by being watched.`;
    default:
      return `With ${factor} ${value} ${change}.`;
  }
}

function nameOf({ factor, value }: Comparison): string {
  return value === '' ? factor : `${factor} = ${value}`;
}
