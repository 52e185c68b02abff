import { describe, expect, it } from 'vitest';
import { score, type ScoreInput, type SeenSpan } from './score.ts';
import type { TruthBlock } from './truth.ts';

const WALL = 1_700_000_000;
const MONO = 1_000;

/** A block at so many seconds after the start that lasts so many milliseconds. */
function block(at: number, ms: number, more: Partial<TruthBlock> = {}): TruthBlock {
  const start = MONO + at;
  return {
    kind: 'sleep',
    ms,
    function: 'blocking_sleep',
    start,
    end: start + ms / 1e3,
    cpu: 0,
    wait: 0,
    ...more,
  };
}

function span(at: number, ms: number, more: Partial<SeenSpan> = {}): SeenSpan {
  return {
    from: WALL + at,
    to: WALL + at + ms / 1e3,
    durationMin: (ms - 5) / 1e3,
    durationMax: (ms + 5) / 1e3,
    function: 'faults.blocking_sleep',
    starved: false,
    ...more,
  };
}

const scored = (input: Partial<ScoreInput>): ReturnType<typeof score> =>
  score({
    truth: [],
    spans: [],
    gaps: [],
    anchor: { wall: WALL, mono: MONO },
    from: WALL,
    to: WALL + 10,
    ...input,
  });

describe('score', () => {
  it('finds a block that a span covers, with the function and an interval that holds the duration', () => {
    const { atLeast60, rows, falseSpans } = scored({
      truth: [block(1, 80)],
      spans: [span(1.002, 78)],
    });
    expect(atLeast60).toMatchObject({ n: 1, found: 1, named: 1, covered: 1 });
    expect(atLeast60.error.p50).toBeCloseTo(-0.002);
    expect(rows).toMatchObject([{ kind: 'sleep', ms: 80, n: 1 }]);
    expect(falseSpans).toEqual([]);
  });

  it('does not take a fragment for the block, nor for a false alarm', () => {
    const { atLeast60, falseSpans } = scored({ truth: [block(1, 200)], spans: [span(1, 60)] });
    expect(atLeast60).toMatchObject({ n: 1, found: 0 });
    expect(falseSpans).toEqual([]);
  });

  it('counts a span that touches no block as false, unless it says the thread was starved', () => {
    const { falseSpans, starvedSpans } = scored({
      truth: [block(1, 80)],
      spans: [span(1, 80), span(3, 60), span(5, 60, { starved: true })],
    });
    expect(falseSpans).toHaveLength(1);
    expect(starvedSpans).toBe(1);
  });

  it('does not name a block by another function', () => {
    const { atLeast60 } = scored({
      truth: [block(1, 80)],
      spans: [span(1, 80, { function: 'handle' })],
    });
    expect(atLeast60).toMatchObject({ found: 1, named: 0 });
  });

  it('keeps apart what a gap hid, what only waited for a core, and what happened outside the recording', () => {
    const result = scored({
      truth: [block(1, 80), block(2, 80, { wait: 0.05 }), block(30, 80), block(4, 80)],
      gaps: [{ from: WALL + 1.05, to: WALL + 1.3 }],
    });
    expect(result).toMatchObject({ inGap: 1, starvedBlocks: 1, atLeast60: { n: 1, found: 0 } });
  });

  it('judges a block by how long it really was', () => {
    const result = scored({
      truth: [block(1, 50.1), block(2, 45), { ...block(3, 50), end: MONO + 3.071 }],
    });
    expect(result).toMatchObject({ from50to60: { n: 1 }, below50: { n: 1 }, atLeast60: { n: 1 } });
  });

  it('takes overlapping gaps once', () => {
    const { gapShare } = scored({
      gaps: [
        { from: WALL - 1, to: WALL + 1 },
        { from: WALL + 0.5, to: WALL + 2 },
        { from: WALL + 9, to: WALL + 11 },
      ],
    });
    expect(gapShare).toBeCloseTo(0.3);
  });
});
