import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { coveredTime } from '../../src/core/stretches.ts';
import { isFrozen } from '../../src/platform/freezer.ts';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { FREEZERS } from '../cgroups.ts';
import { until } from '../platform/processes.ts';
import { type RunningTarget, startTarget, type TargetName } from '../targets/harness.ts';
import { parseReport, runCli, verdicts } from './cli.ts';

/*
 * A target whose control group is frozen, as docker pause does: nothing is known of it meanwhile,
 * and nothing done to it.
 */

const state = mkdtempSync(join(tmpdir(), 'tracewright-frozen-'));
afterAll(() => rmSync(state, { recursive: true, force: true }));

/** A service that blocks all the time, frozen; thawed and stopped when the test ends. */
async function frozen(
  context: TestContext,
  name: TargetName,
  make: (typeof FREEZERS)[number][1],
): Promise<RunningTarget> {
  const target = await startTarget(name, {
    kinds: ['sleep'],
    durations: [400],
    reps: 500,
    spacingMs: 50,
    startS: 0,
    seconds: 60,
  });
  const group = make();
  context.onTestFinished(async () => {
    group.freeze(false);
    await target.stop();
    await until(() => readFileSync(join(group.folder, 'cgroup.procs'), 'utf8') === '');
    group.remove();
  });
  await until(() => target.truth().length > 0);
  group.admit(target.pid);
  group.freeze(true);
  await until(() => isFrozen(target.pid));
  return target;
}

it('a process that runs is not taken for frozen', () => {
  expect(isFrozen(process.pid)).toBe(false);
});

describe.each(FREEZERS)('a target frozen by its control group, version %s', (_version, make) => {
  it.for(['asyncio', 'node-http'] as const)(
    'is called neither healthy nor blocked: %s',
    async (name, context) => {
      const target = await frozen(context, name, make);
      const run = await runCli([
        'attach',
        String(target.pid),
        '-d',
        '3',
        '--json',
        '--no-recording',
      ]);
      const report = parseReport(run);
      expect(verdicts(report)).toEqual([]);
      const gaps = report.gaps.filter(({ collector }) => collector === 'event-loop');
      expect(gaps.map(({ detail }) => detail)).toContain(
        'the process was frozen with its control group (docker pause)',
      );
      const covered = coveredTime(gaps.map(({ from_s: from, to_s: to }) => ({ from, to })));
      expect(covered).toBeGreaterThan(2);
      expect(covered).toBeLessThanOrEqual(report.duration_s);
      expect(run.stderr).toContain(`pid ${target.pid} is frozen with its control group`);
    },
  );

  it('is sent no signal for --inspect', async (context) => {
    const target = await frozen(context, 'node-http', make);
    const before = listeningSockets(target.pid);
    const run = await runCli(
      ['attach', String(target.pid), '-d', '1', '--inspect', '--json', '--no-recording'],
      { env: { XDG_STATE_HOME: state } },
    );
    expect(parseReport(run).collectors.map(({ reason }) => reason)).toContainEqual(
      expect.stringContaining('its control group is frozen'),
    );
    const pending = /^ShdPnd:\s+([0-9a-f]+)$/m.exec(
      readFileSync(`/proc/${target.pid}/status`, 'utf8'),
    );
    expect(Number.parseInt(pending?.[1] ?? '', 16)).toBe(0);
    expect(listeningSockets(target.pid)).toEqual(before);
  });
});
