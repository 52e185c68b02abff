import { printable } from '../core/text.ts';

/** What a change looks like that does not mend the cause: it lies elsewhere than it was said, or it silences the symptom. A flag asks; it refuses nothing. */

/** One line that a change added. */
export interface AddedLine {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

interface Silencer {
  readonly what: string;
  readonly pattern: RegExp;
}

/** How symptoms are silenced, by what was added. Heuristics: each may be right where it stands. */
const SILENCERS: readonly Silencer[] = [
  {
    what: 'broad except',
    pattern: /^\s*except(?:\s+(?:Base)?Exception\b.*)?\s*:|\bsuppress\(\s*(?:Base)?Exception\b/,
  },
  { what: 'swallowed error', pattern: /\bcatch\s*(?:\([^)]*\))?\s*\{\s*\}|\.catch\(\s*\(\)\s*=>/ },
  {
    what: 'clamp or clip',
    pattern: /\b(?:clamp|clip)_?\(|\bMath\.m(?:in|ax)\(\s*Math\.m(?:in|ax)\(/,
  },
  { what: 'retry', pattern: /\bretr(?:y|ies|ying)\b/i },
  {
    what: 'sleep',
    pattern: /\b(?:time|asyncio|anyio|trio)\.sleep\(|\bsetTimeout\(|\bawait\s+sleep\(/,
  },
  {
    what: 'skipped test',
    pattern:
      /\b(?:pytest\.mark\.(?:skip|xfail)|unittest\.skip|pytest\.skip\()|\b(?:it|test|describe)\.(?:skip|todo)\b|\bx(?:it|describe)\(/,
  },
];

/** Test files go with a fix, and the session's own file changes all the time. */
const COMPANIONS =
  /(?:^|\/)(?:tests?|spec|__tests__|\.planning)\/|(?:^|\/)test_|[._](?:test|spec)\.\w+$|_test\.\w+$/;
/** Files beyond what was proposed that make a change a shotgun rather than displaced. */
const SHOTGUN = 3;

/** Added lines of a unified diff. */
export function addedLines(diff: string): readonly AddedLine[] {
  const added: AddedLine[] = [];
  let file = '';
  let line = 0;
  for (const text of diff.split('\n')) {
    if (text.startsWith('+++ ')) file = text.slice(4).replace(/^b\//, '').replace(/\t.*$/, '');
    else if (text.startsWith('@@')) line = Number(/\+(\d+)/.exec(text)?.[1] ?? 1);
    else if (text.startsWith('+')) added.push({ file, line: line++, text: text.slice(1) });
    else if (!text.startsWith('-') && !text.startsWith('\\')) line++;
  }
  return added;
}

/** What is to be asked about a change: `displaced fix: b.py`, `sleep at a.py:12: …`. */
export function flagsOf(
  added: readonly AddedLine[],
  {
    proposed,
    changed,
  }: { readonly proposed: readonly string[]; readonly changed: readonly string[] },
): readonly string[] {
  const beyond = changed.filter((file) => !proposed.includes(file) && !COMPANIONS.test(file));
  const isElsewhere = proposed.length > 0 && !changed.some((file) => proposed.includes(file));
  const name =
    beyond.length >= SHOTGUN ? 'shotgun' : isElsewhere ? 'displaced fix' : 'beyond the proposal';
  const places =
    proposed.length === 0 || beyond.length === 0
      ? []
      : [
          `${name}: ${beyond
            .slice(0, 5)
            .map((file) => printable(file, 120))
            .join(', ')}${beyond.length > 5 ? ', …' : ''}`,
        ];
  const silenced = added.flatMap(({ file, line, text }) =>
    SILENCERS.filter(({ pattern }) => pattern.test(text)).map(
      ({ what }) => `${what} at ${printable(file, 120)}:${line}: ${printable(text.trim(), 100)}`,
    ),
  );
  return [...places, ...silenced];
}
