import type { Clue } from '../../core/hypothesis.ts';
import type { Finding, RecordingView } from '../../core/types.ts';

/** What the families of explanations share. */

/** An explanation before it is ranked among its rivals. */
export interface Explanation {
  readonly mechanism: string;
  readonly claim: string;
  readonly confirming: string;
  readonly refuting: string;
  readonly test: string;
  /** How common it is before anything was seen of this case, as a logarithm of odds. */
  readonly prior: number;
  readonly clues: readonly Clue[];
}

/** What is to be explained: findings of one family, the gravest first, and all others beside them. */
export interface Subject {
  readonly view: RecordingView;
  readonly main: Finding;
  /** Of the same family as `main`, `main` included. */
  readonly findings: readonly Finding[];
  readonly all: readonly Finding[];
  /** As it is typed in a command. */
  readonly recording: string;
}

/**
 * Weights of clues, natural logarithms of odds. They are judgement: `SURE` is what leaves little room (a mechanism that was seen itself), `STRONG`
 * what rivals hardly explain, `SOME` what fits better with one than with another. Tried on the recordings of known cause in
 * test/analysis/hypotheses.
 */
export const SURE = 3;
export const STRONG = 2;
export const SOME = 1;
export const HINT = 0.5;

/** The clue when `seen`, its opposite when it was looked for and is not so, nothing when it could not be looked for. */
export function either(
  seen: boolean | null,
  yes: Clue | null,
  no: Clue | null = null,
): readonly Clue[] {
  if (seen === null) return [];
  const clue = seen ? yes : no;
  return clue === null ? [] : [clue];
}

/** A number of a finding; null where it has none. */
export function measured(finding: Finding, key: string): number | null {
  return finding.measure[key] ?? null;
}

/** The process as a command takes it. */
export function pidOf({ main, view }: Subject): string {
  return String(main.pid ?? view.start.targets[0]?.pid ?? '<pid>');
}

/** `f (app.py:3)`, or nothing. */
export function placeText({ where: [place] }: Finding): string {
  if (place === undefined) return '';
  const line = place.line === null ? '' : `:${place.line}`;
  return `${place.function} (${place.file}${line})`;
}
