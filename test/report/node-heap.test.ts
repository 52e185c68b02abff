import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { type NodeHeapLook, nodeHeapGrowth } from '../../src/core/node-heap.ts';
import { renderNodeHeap, renderNodeHeapJson } from '../../src/report/node-heap.ts';
import { decideSurface } from '../../src/report/style.ts';

const MIB = 2 ** 20;
const surface = decideSurface({ env: {}, isTTY: false, columns: undefined, noColor: true });
const look = (at: number, grown: number, name: string): NodeHeapLook => ({
  at,
  held: 0.05,
  used: 10 * MIB + grown,
  committed: 20 * MIB,
  resident: 60 * MIB,
  sites: [
    {
      frames: [
        { function: name, file: '/srv/app.js', line: 3 },
        { function: 'from', file: 'node:(native)', line: null },
        { function: 'handle', file: '/srv/app.js', line: 9 },
      ],
      bytes: grown,
      samples: Math.round(grown / 16_384),
    },
  ],
});
function report(grown: number, name = 'open\u001b[31m'): Parameters<typeof renderNodeHeap>[0] {
  const looks = [look(100, 0, name), look(102, grown / 2, name), look(104, grown, name)] as const;
  return {
    target: {
      pid: 4312,
      parent: 1,
      startTicks: 1,
      runtime: 'node',
      runtimeVersion: '20.20.2',
      title: 'server.js',
      role: null,
    },
    startedAt: 1_700_000_000,
    looks,
    growth: nodeHeapGrowth(...looks),
    rows: 10,
    left: null,
  };
}

describe('what trace heap says of a Node process', () => {
  it('begins with who allocated what stayed', () => {
    const text = renderNodeHeap(report(6 * MIB), surface);
    expect(text).toContain('open\\x1b[31m() allocated 6 MiB that stayed in 4 s');
    expect(text).toContain('in /srv/app.js:3, called by from()');
    expect(text).not.toContain('\u001b');
    expect(renderNodeHeap(report(6 * MIB, '(anonymous)'), surface)).toContain(
      'a function without a name called by handle() allocated 6 MiB',
    );
    expect(renderNodeHeap(report(1000), surface)).toContain('nothing grew in 4 s');
  });

  it('prints the document that its schema describes', () => {
    const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
      JSON.parse(readFileSync('docs/schema/heap.schema.json', 'utf8')) as object,
    );
    for (const grown of [6 * MIB, 1000]) {
      const text = renderNodeHeapJson(report(grown), '1.0.0');
      expect(validate(JSON.parse(text)), JSON.stringify(validate.errors)).toBe(true);
    }
  });
});
