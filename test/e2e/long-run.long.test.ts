import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { startTarget } from '../targets/harness.ts';
import { runCli, startCli } from './cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'trace-long-run-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const WATCHED_S = 24;
const STOPPED_S = 10;

interface Report {
  readonly duration_s: number;
  readonly findings: readonly { readonly severity: string; readonly code: string }[];
  readonly gaps: readonly {
    readonly collector: string;
    readonly reason: string;
    readonly from_s: number;
    readonly to_s: number;
  }[];
}

describe('a trace that is stopped for a while', () => {
  it('has a gap for as long, and blames nobody for it', async () => {
    const target = await startTarget('asyncio', { healthy: true, seconds: WATCHED_S * 3 });
    const recording = join(folder, 'stopped');
    try {
      const args = [
        'attach',
        String(target.pid),
        '-d',
        `${WATCHED_S}s`,
        '--json',
        '-v',
        '-o',
        recording,
      ];
      const run = startCli(args, { limitS: 100 });
      await run.said('runtime: ');
      // Real time: three seconds that are watched, and then some that are not.
      await sleep(3000);
      process.kill(run.pid, 'SIGSTOP');
      // Real time: it stays stopped for so long.
      await sleep(STOPPED_S * 1e3);
      process.kill(run.pid, 'SIGCONT');
      const { code, stdout, stderr } = await run.ended;
      expect(code, stderr).toBe(0);
      const report = JSON.parse(stdout) as Report;
      expect(report.duration_s).toBeGreaterThanOrEqual(WATCHED_S - 0.5);
      expect(report.findings.filter(({ severity }) => severity !== 'note')).toEqual([]);
      for (const collector of ['event-loop', 'process']) {
        const late = report.gaps.filter(
          (gap) => gap.collector === collector && gap.reason === 'late',
        );
        const longest = Math.max(...late.map(({ from_s, to_s }) => to_s - from_s));
        expect(longest, collector).toBeGreaterThan(STOPPED_S - 2);
        expect(longest, collector).toBeLessThan(STOPPED_S + 3);
      }
      // Its clocks were read before and after, not suspended in between.
      expect(report.gaps.filter(({ reason }) => reason === 'suspended')).toEqual([]);
      const shown = await runCli(['show', recording, '--json', '--exit-zero']);
      expect((JSON.parse(shown.stdout) as Report).gaps).toEqual(report.gaps);
    } finally {
      await target.stop();
    }
  });
});
