import { confidenceSequence } from '../../src/core/confidence-sequence.ts';
import { fisherExact } from '../../src/core/fisher.ts';
import { exactUpperBound } from '../../src/core/proportions.ts';
import { wilson } from '../../src/core/statistics.ts';
import type { RateInterval, TrialTally, Verdict } from '../../src/core/verdict.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { Trial } from '../trials/trial.ts';

/** The trials of one kind, counted, with the interval that fits how they ended. */
export function tallyOf(
  label: string,
  trials: readonly Trial[],
  stoppedEarly: boolean,
): TrialTally {
  const reproduced = trials.filter(({ outcome }) => outcome === 'reproduced').length;
  const invalid = trials.filter(({ outcome }) => outcome === 'invalid').length;
  const n = trials.length - invalid;
  return {
    label,
    reproduced,
    trials: n,
    invalid,
    interval: intervalOf(reproduced, n, stoppedEarly),
  };
}

function intervalOf(hits: number, n: number, stoppedEarly: boolean): RateInterval {
  // After a stop that the results decided, or a person who saw them, only this one covers.
  if (stoppedEarly) return { method: 'anytime', ...confidenceSequence(hits, n) };
  if (hits === 0) return { method: 'exact-upper', low: 0, high: exactUpperBound(0, n) };
  return { method: 'wilson', ...wilson(hits, n) };
}

/** What the trials of a run say together. */
export function verdictOf(options: {
  readonly subject: { readonly label: string; readonly trials: readonly Trial[] };
  readonly control: { readonly label: string; readonly trials: readonly Trial[] } | null;
  readonly stoppedEarly: boolean;
  readonly duration: Seconds;
}): Verdict {
  const { stoppedEarly, duration } = options;
  const subject = tallyOf(options.subject.label, options.subject.trials, stoppedEarly);
  const control =
    options.control === null
      ? null
      : tallyOf(options.control.label, options.control.trials, stoppedEarly);
  const witness = options.subject.trials.find(({ outcome }) => outcome === 'reproduced');
  const isInvalid = subject.trials === 0;
  const p =
    control === null || stoppedEarly
      ? null
      : fisherExact(
          { hits: subject.reproduced, n: subject.trials },
          { hits: control.reproduced, n: control.trials },
        );
  return {
    outcome: isInvalid ? 'invalid' : witness === undefined ? 'not-reproduced' : 'reproduced',
    subject,
    control,
    p,
    witness: witness?.seed ?? null,
    reason: isInvalid
      ? (options.subject.trials.find(({ reason }) => reason !== null)?.reason ?? 'no trial was run')
      : null,
    stoppedEarly,
    duration,
  };
}
