import { describe, expect, it } from 'vitest';
import { mergeOpeners, openersIn, withInlined } from '../../../collectors/node/heap-stacks.ts';
import type { Frame } from '../../../src/core/types.ts';

const frame = (name: string, file: string): Frame => ({ function: name, file, line: 1 });
const LISTEN = frame('addEventListener', 'node:internal/event_target');
const INLINED = frame('once', '/srv/node_modules/lib/index.js');
const OUTER = frame('handle', '/srv/app.js');
const OPEN = frame('openSync', 'node:fs');
const NATIVE = frame('open', 'node:(native)');

describe('stacks of both profilers', () => {
  it('give an allocation the functions that V8 inlined', () => {
    const stacks = [
      { frames: [LISTEN, INLINED, OUTER], weight: 0.004 },
      { frames: [LISTEN, OUTER], weight: 0.001 },
    ];
    expect(withInlined([LISTEN, OUTER], stacks)).toEqual([LISTEN, INLINED, OUTER]);
  });

  it('leave an allocation as it is where nothing of it was seen, or it is the program’s own', () => {
    const stacks = [{ frames: [OPEN, INLINED, OUTER], weight: 1 }];
    expect(withInlined([LISTEN, OUTER], stacks)).toEqual([LISTEN, OUTER]);
    expect(withInlined([OUTER], stacks)).toEqual([OUTER]);
    expect(withInlined([], stacks)).toEqual([]);
  });

  it('tell who opens, by what the program calls', () => {
    const stacks = [
      { frames: [NATIVE, OPEN, INLINED, OUTER], weight: 0.002 },
      { frames: [frame('readSync', 'node:fs'), OUTER], weight: 1 },
      // A callback of the program that Node calls while it opens something opens nothing.
      { frames: [OUTER, OPEN, INLINED], weight: 1 },
      { frames: [OUTER], weight: 1 },
    ];
    const openers = openersIn(stacks);
    expect(openers).toEqual([{ frames: [OPEN, INLINED, OUTER], weight: 0.002 }]);
    expect(mergeOpeners(openers, openers)[0]?.weight).toBeCloseTo(0.004);
  });
});
