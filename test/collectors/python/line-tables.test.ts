import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { lineDecoder } from '../../../collectors/python/line-tables.ts';
import { interpreters } from '../../environments.ts';
import { rounds } from '../../rounds.ts';

const TABLES = join(import.meta.dirname, '../../fixtures/python-stacks/code_tables.py');
const run = promisify(execFile);

interface CodeTruth {
  readonly name: string;
  readonly file: string;
  readonly firstLine: number;
  readonly length: number;
  readonly table: string;
  readonly lines: readonly [number, number | null][];
}

describe.each(interpreters())('the line table of CPython $version', ({ path, version }) => {
  it('gives each instruction of the standard library the line that CPython gives it', async () => {
    const minor = Number(version.split('.')[1]);
    const { stdout } = await run(path, [TABLES], { maxBuffer: 256 * 1024 * 1024 });
    const decode = lineDecoder(minor);
    let instructions = 0;
    const wrong: string[] = [];
    for (const text of stdout.trimEnd().split('\n')) {
      const code = JSON.parse(text) as CodeTruth;
      const table = Buffer.from(code.table, 'hex');
      for (const [offset, line] of expand(code)) {
        instructions++;
        const seen = decode(table, code.firstLine, minor >= 11 ? offset / 2 : offset);
        if (seen !== line) wrong.push(`${code.file} ${code.name} @${offset}: ${seen}, not ${line}`);
      }
    }
    expect(wrong.slice(0, 10)).toEqual([]);
    expect(instructions).toBeGreaterThan(50_000);
  });
});

/** The line of every instruction (2 bytes each) of a code object. CPython's line 0 is no line. */
function* expand({ lines, length, firstLine }: CodeTruth): Iterable<[number, number | null]> {
  let next = 0;
  let line: number | null = firstLine;
  for (let offset = 0; offset < length; offset += 2) {
    for (; next < lines.length && (lines[next]?.[0] ?? 0) <= offset; next++)
      line = lines[next]?.[1] ?? null;
    yield [offset, line === 0 ? null : line];
  }
}

describe('a line table', () => {
  it.each([8, 10, 11])(
    'of noise gives some line or none, whatever the instruction (3.%i)',
    (minor) => {
      const decode = lineDecoder(minor);
      let seed = 1;
      for (let round = 0; round < rounds(300); round++) {
        const table = Uint8Array.from({ length: round }, () => {
          seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
          return seed >> 16;
        });
        for (const instruction of [-1, 0, 1, 100, 1e9]) {
          const line = decode(table, 1, instruction);
          expect(line === null || (Number.isInteger(line) && line >= 1)).toBe(true);
        }
      }
    },
  );

  it.each([8, 10, 11])(
    'gives the first line to a frame that has run nothing yet (3.%i)',
    (minor) => {
      expect(lineDecoder(minor)(Buffer.from([2, 5, 2, 5]), 7, -1)).toBe(7);
    },
  );
});
