import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { nodes } from '../environments.ts';
import { startTarget } from '../targets/harness.ts';
import { parseReport, runCli, verdicts } from './cli.ts';
import { watchTarget } from './watch.ts';

/* Every Node: 22 and 24 in .ci/run, else the one that runs the tests. */

const PLAN = {
  kinds: ['spin', 'sleep', 'exec'],
  durations: [150],
  reps: 60,
  startS: 1,
  watchS: 5,
} as const;
const folder = mkdtempSync(join(tmpdir(), 'tracewright-nodes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(await nodes())('Node $version', ({ path, version }) => {
  async function expectBlocksFound(saturated: boolean): Promise<void> {
    const { run, report, score } = await watchTarget('node-http', {
      ...PLAN,
      saturated,
      runtime: path,
    });
    expect(report.targets).toMatchObject([{ runtime: 'node', runtime_version: version }]);
    expect(score.atLeast60.n).toBeGreaterThan(0);
    expect(score.missed).toEqual([]);
    expect(score.falseSpans).toEqual([]);
    expect(run.code).toBe(1);
  }

  it.concurrent('as an idle target has its blocks found', () => expectBlocksFound(false));

  it.concurrent('runs trace', async () => {
    const target = await startTarget('asyncio', {
      kinds: ['sleep'],
      durations: [150],
      reps: 200,
      startS: 0.2,
      seconds: 30,
    });
    try {
      const args = ['attach', String(target.pid), '-d', '3', '--json', '-o', join(folder, version)];
      const run = await runCli(args, { command: [path] });
      expect(verdicts(parseReport(run)).map(({ where }) => where[0]?.function)).toEqual([
        'blocking_sleep',
      ]);
      expect(run.code).toBe(1);
    } finally {
      await target.stop();
    }
  });

  // By itself: it wants a core.
  it('as a saturated target has its blocks found', () => expectBlocksFound(true));
});
