import type { Clue, HypothesisMechanism } from '../../core/hypothesis.ts';
import type { Finding, RecordingView } from '../../core/types.ts';

/** What the families of explanations share. */

/** An explanation before it is ranked among its rivals. */
export interface Explanation {
  readonly mechanism: HypothesisMechanism;
  readonly claim: string;
  readonly confirming: string;
  readonly refuting: string;
  /**
   * A command that tells it from its rivals, given how the explanation is named on a command line
   * (`<recording>#H2`).
   */
  readonly test: (self: string) => string;
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

/**
 * How common an explanation is before anything was seen of the case, natural logarithms of odds
 * beside the commonest of its family. They are judgement, like the weights: `RARER` decides between
 * rivals of whom nothing was seen, `FAR` is undone by one good clue.
 */
export const PRIOR = {
  /** What such a finding mostly is. */
  USUAL: 0,
  /** Nearly as often; with nothing seen of either, the usual one comes first. */
  RARER: -0.2,
  /** Often enough on crowded machines and in short runs, where it shows at once. */
  SOMETIMES: -0.3,
  /** Of failing requests: what others than this program did explains most of them. */
  OFTEN_ELSE: -0.4,
  /**
   * One in two or three: it needs something of its own (a second thread, a slow client, an early
   * end).
   */
  SELDOM: -0.5,
  /** It is seen well before it does this. */
  SEEN_BEFORE: -0.6,
  /** Half as likely, and what it does goes away again by itself. */
  PASSING: -0.7,
  /** Last of its family: other explanations are to be ruled out first. */
  FAR: -1,
} as const;

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
