import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { type Cgroup, canMakeCgroup, type Limits, makeCgroup } from '../cgroups.ts';
import { interpreters } from '../environments.ts';
import { until } from '../platform/processes.ts';
import { startReady } from '../targets/harness.ts';
import { parseReport, type ReportDocument, runCli } from './cli.ts';
import { FOLDER } from './container.ts';

/*
 * Limits of control groups, real ones: planted too small, and the same limits with a program that fits. Version 1 or 2, whatever the
 * machine has; without rights on them the tests are left out by name.
 */

const MIB = 2 ** 20;
const QUOTA: Limits = { cpu: 0.2 };
const MEMORY: Limits = { memory: 64 * MIB };

/** What trace says of a program of `test/targets/container` within these limits. */
async function reportOf(
  { onTestFinished }: TestContext,
  limits: Limits,
  program: readonly [file: string, ...args: (string | number)[]],
): Promise<ReportDocument> {
  const group = makeCgroup(limits);
  if (group === null) throw new Error('no control group can be made');
  const [file, ...args] = program;
  const python = interpreters()[0]?.path ?? 'python3';
  const [command = 'sh', ...enter] = group.enter;
  const words = [...enter, python, join(FOLDER, file), ...args.map(String)];
  const running = await startReady(command, words).catch(async (error: unknown) => {
    await removed(group);
    throw error;
  });
  onTestFinished(async () => {
    await running.stop();
    await removed(group);
  });
  const watch = ['attach', String(running.pid), '-d', '3', '--json', '--no-recording'];
  return parseReport(await runCli(watch));
}

/** The kernel takes a process out of its group a moment after its parent was told of its end. */
async function removed(group: Cgroup): Promise<void> {
  await until(() =>
    group.folders.every(
      (folder) => !existsSync(folder) || readFileSync(join(folder, 'cgroup.procs'), 'utf8') === '',
    ),
  );
  group.remove();
}

const findingOf = (report: ReportDocument, kind: string) =>
  report.findings.find((finding) => finding.kind === kind);

describe.concurrent('a CPU quota', () => {
  it.skipIf(!canMakeCgroup(QUOTA))(
    'that is too small is a finding, and explains why the loop is starved (needs rights on cgroups)',
    async (test) => {
      const report = await reportOf(test, QUOTA, ['quota.py', 0.03, 0.01]);
      const throttled = findingOf(report, 'cpu-throttled');
      expect(throttled).toMatchObject({ code: 'TRC120', severity: 'warning' });
      expect(throttled?.measure).toMatchObject({ limit_cores: 0.2 });
      expect(throttled?.measure['throttled_ratio']).toBeGreaterThan(0.5);
      expect(throttled?.measure['throttled_s']).toBeGreaterThan(0.2);
      const starved = report.findings.find(({ mechanism }) => mechanism === 'starved');
      expect(starved?.severity).toBe('note');
      expect(starved?.summary).toContain('by the CPU limit of its cgroup (0.2 cores)');
      expect(starved?.remedy).toContain('Raise the CPU limit');
      expect(report.metrics['tracewright.cgroup.cpu.throttled.periods']).toBeDefined();
    },
  );

  it.skipIf(!canMakeCgroup(QUOTA))(
    'that suffices is nothing (needs rights on cgroups)',
    async (test) => {
      const report = await reportOf(test, QUOTA, ['quota.py', 0.002, 0.1]);
      expect(findingOf(report, 'cpu-throttled')).toBeUndefined();
      // It was looked at all the same.
      const limit = report.metrics['tracewright.cgroup.cpu.limit']?.series[0];
      expect(limit?.last).toBe(0.2);
      expect(String(limit?.attributes['tracewright.cgroup.folder'])).toContain('tracewright-test');
    },
  );
});

describe.concurrent('a memory limit', () => {
  it.skipIf(!canMakeCgroup(MEMORY))(
    'that is nearly met is a finding (needs rights on cgroups)',
    async (test) => {
      const report = await reportOf(test, MEMORY, ['memory.py', 'hold', 53]);
      expect(findingOf(report, 'memory-limit')).toMatchObject({
        code: 'TRC121',
        mechanism: 'near-limit',
        measure: { limit_bytes: 64 * MIB },
      });
      expect(findingOf(report, 'memory-limit')?.measure['share_ratio']).toBeGreaterThan(0.9);
    },
  );

  it.skipIf(!canMakeCgroup(MEMORY))(
    'that only the page cache fills is nothing (needs rights on cgroups)',
    async (test) => {
      const folder = mkdtempSync(join(tmpdir(), 'tracewright-cache-'));
      test.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const report = await reportOf(test, MEMORY, [
        'memory.py',
        'cache',
        100,
        join(folder, 'file'),
      ]);
      expect(report.findings).toEqual([]);
      const usage = report.metrics['container.memory.usage']?.series[0]?.last ?? 0;
      expect(usage).toBeGreaterThan(0.8 * 64 * MIB);
    },
  );
});
