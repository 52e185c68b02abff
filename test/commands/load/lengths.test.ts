import { describe, expect, it } from 'vitest';
import type { LoadExtent } from '../../../src/commands/load/extent.ts';
import { lengthNotes } from '../../../src/commands/load/lengths.ts';
import { ResultBuilder } from '../../../src/load/results/builder.ts';
import { batch, meta, MONO, request } from '../../load/results/sample-run.ts';

const ASKED: LoadExtent = {
  streams: 1,
  requests: 10,
  warmup: 0,
  seconds: null,
  inputTokens: 500,
  outputTokens: 10,
};

function notes(inputTokens: number | null, outputTokens: number | null, asked = ASKED) {
  const builder = new ResultBuilder(meta);
  builder.stage({ stage: 0, what: 'begun', at: MONO });
  builder.add(
    batch(Array.from({ length: 4 }, (_, index) => request({ index, inputTokens, outputTokens }))),
  );
  return lengthNotes(asked, builder.result({ interrupted: false, complete: true }).total);
}

describe('prompts and answers of other lengths than asked', () => {
  it('are said', () => {
    expect(notes(700, 10)).toEqual([
      "prompts had 700 tokens on average by the server's count, 500 were asked for",
    ]);
    expect(notes(520, 4)).toEqual([expect.stringContaining('answers had 4 tokens on average, 10')]);
  });

  it('are not when they are about right, nobody counted, or the data decide', () => {
    expect(notes(530, 10)).toEqual([]);
    expect(notes(null, null)).toEqual([]);
    expect(notes(9, 9, { ...ASKED, inputTokens: null, outputTokens: null })).toEqual([]);
  });
});
