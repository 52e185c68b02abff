import type { ClockAnchor } from '../../src/core/clock.ts';
import { quantile, wilson } from '../../src/core/statistics.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';
import type { TruthBlock } from './truth.ts';

/*
 * Compares what was reported with what was done. Pure: a truth log, the spans and gaps of a recording, and the clock anchor
 * that ties the two time bases; out come counts with 95 % Wilson bounds.
 */

/** A reported block; times are Unix seconds. */
export interface SeenSpan {
  readonly from: Seconds;
  readonly to: Seconds;
  readonly durationMin: Seconds;
  readonly durationMax: Seconds;
  /** The place it was put down to; null where there was no stack. */
  readonly function: string | null;
  /** The thread was runnable and waited for a core: not the program's fault. */
  readonly starved: boolean;
  /** It went on when the recording ended: the program has not logged it yet. */
  readonly open?: boolean;
  /** What the thread did in it, and its time on a core and waiting for one: what explains a false span. */
  readonly mechanism?: string;
  readonly onCpu?: Seconds;
  readonly waited?: Seconds;
}

export interface ScoreInput {
  readonly truth: readonly TruthBlock[];
  readonly spans: readonly SeenSpan[];
  readonly gaps: readonly { readonly from: Seconds; readonly to: Seconds }[];
  readonly anchor: ClockAnchor;
  /** The `--lag-threshold`, from which a wait for a core can have made a block; the default one where it is not said. */
  readonly threshold?: Seconds;
  /** When the recording began and ended, Unix seconds: blocks outside do not count. */
  readonly from: Seconds;
  readonly to: Seconds;
}

export interface Tally {
  readonly n: number;
  /** A span that is not starved covers at least half of the block. */
  readonly found: number;
  readonly foundBounds: { readonly low: Ratio; readonly high: Ratio };
  /** Of the found ones, those put down to the function that blocked. */
  readonly named: number;
  readonly namedBounds: { readonly low: Ratio; readonly high: Ratio };
  /** Of the found ones, those whose true duration lies within the reported interval. */
  readonly covered: number;
  /** Middle of the reported interval less the true duration. */
  readonly error: { readonly p50: Seconds; readonly p90: Seconds; readonly worst: Seconds };
}

export interface Score {
  /** By kind and nominal milliseconds, in that order. */
  readonly rows: readonly ({ readonly kind: string; readonly ms: number } & Tally)[];
  /** By how long the blocks really were: what the promise is about. */
  readonly atLeast60: Tally;
  readonly from50to60: Tally;
  readonly below50: Tally;
  /** The blocks of 60 ms and more that were not found, for whoever wants to know why. */
  readonly missed: readonly TruthBlock[];
  /** Blocks that overlap a recorded gap, and blocks that would not have lasted but for the wait for a core: in none of the tallies. */
  readonly inGap: number;
  readonly starvedBlocks: number;
  /** Spans that touch no block and are not starved. */
  readonly falseSpans: readonly SeenSpan[];
  readonly starvedSpans: number;
  readonly observed: Seconds;
  readonly gapShare: Ratio;
}

/** A block is found when a span covers this much of it: less is a fragment of it. */
const FOUND_OVERLAP: Ratio = 0.5;
/** The default `--lag-threshold`, and the step above it from which nothing may be missed. */
const THRESHOLD: Seconds = 0.05;
const CERTAIN: Seconds = 0.06;
/** Every wake-up waits a little; only a wait of this share of a block can be what made it one. */
const STARVED_SHARE: Ratio = 0.1;

interface Interval {
  readonly from: Seconds;
  readonly to: Seconds;
}
interface Judged {
  readonly block: TruthBlock;
  readonly length: Seconds;
  readonly span: SeenSpan | undefined;
}

const overlap = (a: Interval, b: Interval): Seconds =>
  Math.max(0, Math.min(a.to, b.to) - Math.max(a.from, b.from));
const touches = (a: Interval, b: Interval): boolean => a.from <= b.to && b.from <= a.to;

export function score(input: ScoreInput): Score {
  const shift = input.anchor.wall - input.anchor.mono;
  const wall = (block: TruthBlock): Interval => ({
    from: block.start + shift,
    to: block.end + shift,
  });
  const within = input.truth.filter(
    (block) => wall(block).from >= input.from && wall(block).to <= input.to,
  );
  const inGap = within.filter((block) => input.gaps.some((gap) => overlap(gap, wall(block)) > 0));
  const starved = within.filter(
    (block) => !inGap.includes(block) && isStarved(block, input.threshold),
  );
  const judged = within
    .filter((block) => !inGap.includes(block) && !starved.includes(block))
    .map((block) => judge(block, wall(block), input.spans));
  const observed = input.to - input.from;
  return {
    rows: rows(judged),
    atLeast60: tally(judged.filter(({ length }) => length >= CERTAIN)),
    from50to60: tally(judged.filter(({ length }) => length >= THRESHOLD && length < CERTAIN)),
    below50: tally(judged.filter(({ length }) => length < THRESHOLD)),
    missed: judged
      .filter(({ length, span }) => length >= CERTAIN && span === undefined)
      .map(({ block }) => block),
    inGap: inGap.length,
    starvedBlocks: starved.length,
    falseSpans: input.spans.filter(
      (span) =>
        !span.starved &&
        span.open !== true &&
        !input.truth.some((block) => touches(wall(block), span)),
    ),
    starvedSpans: input.spans.filter((span) => span.starved).length,
    observed,
    gapShare: observed > 0 ? unionLength(input.gaps, input) / observed : 0,
  };
}

/** Made by the scheduler, not by the function: without a notable wait for a core it would have been under what must be found. */
function isStarved({ start, end, wait }: TruthBlock, threshold: Seconds = THRESHOLD): boolean {
  const length = end - start;
  const certain = (threshold * CERTAIN) / THRESHOLD;
  return length >= threshold && length - wait < certain && wait >= STARVED_SHARE * length;
}

function judge(block: TruthBlock, when: Interval, spans: readonly SeenSpan[]): Judged {
  const length = block.end - block.start; // not from wall times: those resolve 0.2 µs only
  const span = spans
    .filter((one) => !one.starved && overlap(one, when) >= FOUND_OVERLAP * length)
    .toSorted((a, b) => overlap(b, when) - overlap(a, when))[0];
  return { block, length, span };
}

function tally(judged: readonly Judged[]): Tally {
  const found = judged.filter(({ span }) => span !== undefined);
  const named = found.filter(
    ({ block, span }) => lastPart(span?.function ?? '') === block.function,
  );
  const errors = Float64Array.from(found, ({ length, span }) =>
    span === undefined ? 0 : (span.durationMin + span.durationMax) / 2 - length,
  ).sort();
  const sizes = errors.map(Math.abs).sort();
  return {
    n: judged.length,
    found: found.length,
    foundBounds: wilson(found.length, judged.length),
    named: named.length,
    namedBounds: wilson(named.length, found.length),
    covered: found.filter(
      ({ length, span }) =>
        span !== undefined && span.durationMin <= length && length <= span.durationMax,
    ).length,
    error: { p50: quantile(errors, 0.5), p90: quantile(sizes, 0.9), worst: quantile(sizes, 1) },
  };
}

function rows(judged: readonly Judged[]): Score['rows'] {
  const groups = new Map<string, Judged[]>();
  for (const one of judged) {
    const key = `${one.block.kind} ${one.block.ms}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()]
    .map((group) => ({
      kind: group[0]?.block.kind ?? '',
      ms: group[0]?.block.ms ?? 0,
      ...tally(group),
    }))
    .toSorted((a, b) => a.kind.localeCompare(b.kind) || a.ms - b.ms);
}

/** `module.Class.function` → `function`: the truth log names functions bare. */
function lastPart(name: string): string {
  return name.split('.').at(-1) ?? name;
}

/** Length of the union of intervals inside a window. */
function unionLength(intervals: readonly Interval[], window: Interval): Seconds {
  let covered = 0;
  let reached = window.from;
  for (const { from, to } of intervals.toSorted((a, b) => a.from - b.from)) {
    const start = Math.max(from, reached);
    const end = Math.min(to, window.to);
    if (end > start) covered += end - start;
    reached = Math.max(reached, end);
  }
  return covered;
}
