import { describe, expect, it } from 'vitest';
import { parseSites } from '../../../collectors/node/heap-sampling.ts';

const node = (
  functionName: string,
  url: string,
  more: { selfSize?: number; id?: number; children?: readonly unknown[] } = {},
): unknown => ({
  callFrame: { functionName, url, lineNumber: 4, columnNumber: 0, scriptId: '1' },
  selfSize: 0,
  id: 0,
  children: [],
  ...more,
});

describe('a heap profile of V8', () => {
  it('counts what libraries allocate for the code of the program that called them', () => {
    const head = node('(root)', '', {
      children: [
        node('handle', 'file:///srv/app.js', {
          selfSize: 100,
          id: 2,
          children: [
            node('parse', 'file:///srv/node_modules/x/index.js', {
              children: [node('slice', 'node:buffer', { selfSize: 1000, id: 4 })],
            }),
          ],
        }),
        node('listOnTimeout', 'node:internal/timers', { selfSize: 7, id: 5 }),
      ],
    });
    const samples = [{ nodeId: 2 }, { nodeId: 4 }, { nodeId: 4 }, { nodeId: 5 }, 'no sample'];
    expect(parseSites({ head, samples })).toEqual(
      expect.arrayContaining([
        {
          frames: [{ function: 'handle', file: '/srv/app.js', line: 5 }],
          bytes: 1100,
          samples: 3,
        },
        expect.objectContaining({ bytes: 7, samples: 1 }),
      ]),
    );
  });

  it('is refused where it is none', () => {
    for (const profile of [
      null,
      { head: {}, samples: [] },
      { head: node('x', ''), samples: null },
      { head: node('x', '', { selfSize: Number.NaN }), samples: [] },
      { head: node('x', '', { selfSize: -1 }), samples: [] },
      { head: node('x', '', { children: ['a child'] }), samples: [] },
    ])
      expect(parseSites(profile)).toBeNull();
  });

  it('is followed also where a stack is deeper than V8 keeps', () => {
    let head = node('leaf', 'file:///srv/app.js', { selfSize: 10, id: 1 });
    for (let depth = 0; depth < 5000; depth++)
      head = node('f', 'file:///srv/app.js', { children: [head] });
    const sites = parseSites({ head, samples: [] });
    expect(sites?.[0]?.bytes).toBe(10);
    expect(sites?.[0]?.frames.length).toBeLessThanOrEqual(128);
  });
});
