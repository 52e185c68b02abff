import type { Place } from '../../src/core/types.ts';
import type { BugCase, Side } from './cases.ts';

/* Whether what was said of a case is right. */

/** What a report's finding and one of the detectors' have in common. */
export interface Said {
  readonly code: string;
  readonly kind: string;
  readonly severity: string;
  readonly confidence: string;
  readonly mechanism: string | null;
  readonly summary: string;
  readonly where: readonly Pick<Place, 'function' | 'file'>[];
  readonly measure?: Readonly<Record<string, number>>;
}

/** What counts for a case. */
export interface Verdict {
  /** A finding of `warning` or above was there, of whatever kind. */
  readonly found: boolean;
  readonly kind: boolean;
  /** One of the right kind names the place. */
  readonly place: boolean;
}

/** How a finding of the fixed release is known to be right: by case, kinds and reason (exceptions.json). */
export interface Exception {
  readonly id: string;
  readonly kinds: readonly string[];
  readonly reason: string;
}

/** Findings that say something: `warning` or above and not inconclusive. */
export function said<T extends Said>(findings: readonly T[]): readonly T[] {
  return findings.filter(
    ({ severity, confidence }) => severity !== 'note' && confidence !== 'inconclusive',
  );
}

/** Scores what was said of the buggy release. */
export function judge(of: BugCase, findings: readonly Said[]): Verdict {
  const verdicts = said(findings);
  const right = verdicts.filter(({ kind }) => of.kinds.includes(kind));
  return {
    found: verdicts.length > 0,
    kind: right.length > 0,
    place: right.some(({ where }) => where.some((place) => isNamed(place, of.words))),
  };
}

/** What was said of a release that should not have been. Of the buggy one nothing is false: a bug has consequences. */
export function falseFindings<T extends Said>(
  of: { readonly id: string; readonly side: Side },
  findings: readonly T[],
  exceptions: readonly Exception[],
): readonly T[] {
  if (of.side === 'buggy') return [];
  const allowed = exceptions.filter(({ id }) => id === of.id).flatMap(({ kinds }) => kinds);
  return said(findings).filter(({ kind }) => !allowed.includes(kind));
}

/**
 * The same without the blocks that a crowded machine makes of healthy code, where computing takes several times as long: a block counts
 * when it is what the case is about, at the case's own place.
 */
export function falseOnBusyMachine<T extends Said>(
  of: Pick<BugCase, 'id' | 'kinds' | 'words'>,
  findings: readonly T[],
  exceptions: readonly Exception[],
): readonly T[] {
  return falseFindings({ id: of.id, side: 'fixed' }, findings, exceptions).filter(
    ({ kind, where }) =>
      kind !== 'loop-blocked' ||
      (of.kinds.includes(kind) && where.slice(0, 1).some((place) => isNamed(place, of.words))),
  );
}

/** Whether the function, or the file as its package or the standard library has it, holds one of the words as a whole token. */
export function isNamed(place: Said['where'][number], words: readonly string[]): boolean {
  const texts = [place.function, ownPath(place.file)];
  return words.some((word) => texts.some((text) => hasToken(text, word)));
}

/** A path below site-packages, node_modules or the standard library; nothing of any other, such as the case's own folder. */
export function ownPath(file: string): string {
  const [, below] =
    /.*\/(?:(?:site|dist)-packages|node_modules)\/(.+)$/.exec(file) ??
    /.*\/lib\/python3\.\d+\/(.+)$/.exec(file) ??
    [];
  return below ?? '';
}

function hasToken(text: string, word: string): boolean {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`(?<![A-Za-z0-9_])${escaped}(?![A-Za-z0-9_])`).test(text);
}
