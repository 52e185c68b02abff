import type { Ratio, Seconds } from '../core/types.ts';
import type { RateInterval, TrialTally } from '../core/verdict.ts';
import { formatProbability, formatSeconds } from '../core/units.ts';
import { outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** A table of what was changed and how often the fault happened then; pure. */

export interface IsolationRow {
  readonly factor: string;
  readonly value: string;
  readonly tally: TrialTally;
  readonly p: Ratio | null;
  /** Null for the reproduction as given. */
  readonly effect: 'gone' | 'less' | 'more' | 'none-seen' | 'invalid' | 'no-base' | null;
}

const EFFECTS: Readonly<Record<string, string>> = {
  gone: 'gone',
  less: 'rarer',
  more: 'more frequent',
  'none-seen': 'no difference seen',
  invalid: 'could not run',
  'no-base': '',
};
const FACTOR_WIDTH = 30;
const VALUE_WIDTH = 14;
const COUNT_WIDTH = 10;
const PERCENT = 100;

/** The table and what follows from it, for people. */
export function renderIsolation(
  rows: readonly IsolationRow[],
  { said, surface }: { readonly said: readonly string[]; readonly surface: Surface },
): string {
  const page = new Page(surface);
  const { style } = page;
  const width = Math.min(FACTOR_WIDTH, Math.max(...rows.map(({ factor }) => factor.length)) + 2);
  page.row(
    style.dim(
      pad('CHANGED', width) + pad('TO', VALUE_WIDTH) + pad('HAPPENED', COUNT_WIDTH) + 'RATE',
    ),
  );
  for (const { factor, value, tally, p, effect } of rows) {
    const { reproduced, trials, invalid, interval } = tally;
    const rate = trials === 0 ? '' : shortInterval(interval);
    const apart = invalid === 0 ? '' : `${invalid} invalid`;
    const change = effect === null ? '' : (EFFECTS[effect] ?? '');
    const doubt = p === null || change === '' ? '' : ` (p ${formatProbability(p)})`;
    const cells =
      pad(outside(factor, width - 1), width) +
      pad(outside(value, VALUE_WIDTH - 1), VALUE_WIDTH) +
      pad(`${reproduced} / ${trials}`, COUNT_WIDTH);
    page.row(cells + [rate, apart, `${change}${doubt}`].filter((part) => part !== '').join('; '));
  }
  page.paragraph(
    style.dim(
      'Rates with 95 %; p: Fisher’s exact test against the reproduction as given, corrected for how many are compared (Holm).',
    ),
  );
  page.gap();
  for (const sentence of said) page.paragraph(outside(sentence, 600));
  return page.toString();
}

/** `34-100 %`, `< 14 %`. */
function shortInterval({ low, high }: RateInterval): string {
  const percent = (ratio: Ratio): string => String(Math.round(ratio * PERCENT));
  return low === 0 ? `< ${percent(high)} %` : `${percent(low)}-${percent(high)} %`;
}

/** What will be run, and how long that takes when each trial takes as long as the first. */
export function renderIsolationPlan(
  steps: readonly { readonly factor: string; readonly value: string }[],
  {
    runs,
    more = 0,
    trial,
    surface,
  }: {
    readonly runs: number;
    /** Trials at most of a search for flags that matter together. */
    readonly more?: number;
    readonly trial: Seconds;
    readonly surface: Surface;
  },
): string {
  const page = new Page(surface);
  steps.forEach(({ factor, value }, index) => {
    page.row(
      `${pad(`${index + 1}.`, 4)}${outside(factor, 80)}${value === '' ? '' : ` = ${outside(value, 80)}`}`,
    );
  });
  const trials = steps.length * runs;
  page.paragraph(
    `${runs} trials of each, ${trials} in all: about ${formatSeconds(trials * trial)} when each takes ${formatSeconds(trial)}, as one did.`,
  );
  if (more > 0)
    page.paragraph(
      `Where all flags together end it and none alone, the fewest that do are looked for: at most ${more} trials more, ${formatSeconds(more * trial)}.`,
    );
  return page.toString();
}
