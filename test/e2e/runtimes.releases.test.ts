import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { parseReport, runCli, verdicts } from './cli.ts';
import { startTarget } from '../targets/harness.ts';
import { watchTarget } from './watch.ts';

/* Every CPython, with every loop: 3.8 to 3.13 in .ci/run, else the machine's own python3. */

const KINDS = ['spin', 'sleep', 'file'];
const PLAN = { kinds: KINDS, durations: [150], reps: 60, startS: 1, watchS: 5 } as const;

const LOOPS = ['asyncio', 'fastapi-asyncio', 'fastapi-uvloop'] as const;

describe.each([...interpreters()])('CPython $version', ({ path, version }) => {
  describe.concurrent.each(LOOPS)('running %s', (name) => {
    it('is seen as what it is, and each block is put down to its function', async () => {
      const { run, report, score } = await watchTarget(name, { ...PLAN, runtime: path });
      expect(report.targets).toMatchObject([{ runtime: 'python', runtime_version: version }]);
      expect(score.atLeast60.n).toBeGreaterThan(0);
      expect(score.atLeast60).toMatchObject({ found: score.atLeast60.n, named: score.atLeast60.n });
      expect(score.falseSpans).toEqual([]);
      const blamed = verdicts(report).map(({ where }) => where[0]?.function);
      const found = score.rows.filter((row) => row.found > 0).map(({ kind }) => `blocking_${kind}`);
      expect(blamed).toEqual(expect.arrayContaining([...new Set(found)]));
      expect(blamed.filter((name) => !KINDS.some((kind) => name === `blocking_${kind}`))).toEqual(
        [],
      );
      expect(run.code).toBe(1);
    });
  });
});

const temporary = mkdtempSync(join(tmpdir(), 'tracewright-runtimes-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

describe('stacks of a target with an open inspector', () => {
  it('are read through it, and the inspector stays open', async () => {
    const target = await startTarget('node-http', {
      kinds: ['spin'],
      durations: [100],
      reps: 20,
      startS: 0.5,
      seconds: 30,
      runtimeFlags: ['--inspect=0'],
    });
    try {
      const run = await runCli([
        'attach',
        String(target.pid),
        '-d',
        '4',
        '--json',
        '-o',
        join(temporary, 'inspected'),
      ]);
      expect(verdicts(parseReport(run)).map(({ where }) => where[0]?.function)).toEqual([
        'blockingSpin',
      ]);
    } finally {
      await target.stop();
    }
  });
});
