import type { RateInterval, TrialTally, Verdict } from '../core/verdict.ts';
import { formatProbability, formatRate } from '../core/units.ts';
import type { TrialLine } from './verdict-json.ts';

/** A verdict of a reproduction as people read it; ends with a line feed. */
export function verdictText(verdict: Verdict): string {
  const { subject, control, p, witness, reason } = verdict;
  const lines = [
    headline(verdict),
    ...[subject, ...(control === null ? [] : [control])].map(tallyLine),
    // Of trials that could not run there is nothing to compare.
    ...(p === null || subject.trials === 0 || control?.trials === 0
      ? []
      : [`  difference: p ${formatProbability(p)} (Fisher's exact test)`]),
    ...(witness === null ? [] : [`  seed ${witness} reproduced it`]),
    ...(reason === null ? [] : [`  ${reason}`]),
  ];
  return `${lines.join('\n')}\n`;
}

function headline({ outcome }: Verdict): string {
  if (outcome === 'invalid') return 'INVALID: no trial could run, which says nothing of the fault';
  return outcome === 'reproduced' ? 'REPRODUCED' : 'NOT REPRODUCED';
}

function tallyLine({ label, reproduced, trials, invalid, interval }: TrialTally): string {
  const count = `${reproduced} / ${trials}`;
  const apart = invalid === 0 ? '' : `, ${invalid} invalid`;
  return `  ${label}: ${count}${apart}${trials === 0 ? '' : ` (${intervalText(interval)})`}`;
}

/** `33 % – 67 %, Wilson 95 %`. */
export function intervalText({ method, low, high }: RateInterval): string {
  if (method === 'exact-upper') return `rate below ${formatRate(high)}, exact, 95 %`;
  const range = `rate ${formatRate(low)} to ${formatRate(high)}`;
  return method === 'wilson'
    ? `${range}, Wilson 95 %`
    : `${range}, 95 % at any time: it stopped early`;
}

/** So many of the programs that trials left running are named. */
const LEFT_NAMED = 3;

/** What trials left running, by its command line; empty where they left nothing. */
export function leftText(trials: readonly Pick<TrialLine, 'left'>[]): string {
  const leaving = trials.filter(({ left }) => left.length > 0);
  if (leaving.length === 0) return '';
  const all = leaving.flatMap(({ left }) => left);
  const byTitle = new Map(all.map(({ pid, title }) => [title, pid] as const));
  const named = [...byTitle].slice(0, LEFT_NAMED).map(([title, pid]) => `pid ${pid} (${title})`);
  const more = byTitle.size > LEFT_NAMED ? `, and ${byTitle.size - LEFT_NAMED} more` : '';
  const count = leaving.length === 1 ? '1 trial' : `${leaving.length} trials`;
  return `  ${count} left processes running, which were ended: ${named.join(', ')}${more}\n`;
}

/** What `--expect none` decided by; empty where it was not asked for. */
export function boundText(
  bound: { readonly upper: number; readonly maxRate: number } | null,
): string {
  if (bound === null) return '';
  const [upper, most] = [formatRate(bound.upper), formatRate(bound.maxRate)];
  return bound.upper < bound.maxRate
    ? `  none expected: with 95 % confidence the rate is below ${upper}, and may be ${most}\n`
    : `  none expected: the rate may be up to ${upper}, over ${most}: more trials, or it is not fixed\n`;
}
