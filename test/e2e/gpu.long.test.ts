import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { CAPTURE, FakeSmi } from '../nvidia-smi/fake-smi.ts';
import { type Ended, parseReport, runCli } from './cli.ts';
import { startLoadServer } from './load-server.ts';

/* GPUs beside a process, by a fake nvidia-smi on PATH that answers from captures of real ones. They mostly wait: all at once. */

const UTILIZATION = 'hw.gpu.utilization';
const MIB = 2 ** 20;

type Finished = Pick<TestContext, 'onTestFinished'>['onTestFinished'];

function folderOf(onTestFinished: Finished): string {
  const folder = mkdtempSync(join(tmpdir(), 'trace-gpu-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A program that does nothing, with one child that does nothing either. */
const IDLE =
  'import subprocess, sys, time\nsubprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])\nprint("ready", flush=True)\ntime.sleep(60)';

async function startIdle(
  onTestFinished: Finished,
  env: Readonly<Record<string, string>> = {},
): Promise<ChildProcess> {
  const child = spawn('python3', ['-S', '-c', IDLE], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, ...env },
    detached: true,
  });
  onTestFinished(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
}

interface Attached {
  readonly args?: readonly string[];
  readonly recording?: string;
  /** Put before the others on PATH; null for no nvidia-smi at all. */
  readonly smi: FakeSmi | null;
  readonly seconds?: number;
}

function attach(
  pid: number | undefined,
  { args = [], smi, recording, seconds = 3 }: Attached,
): Promise<Ended> {
  const where = recording === undefined ? ['--no-recording'] : ['-o', recording];
  const path = smi === null ? (process.env['PATH'] ?? '') : `${smi.folder}:${process.env['PATH']}`;
  return runCli(['attach', String(pid), '-d', String(seconds), ...where, ...args], {
    env: { PATH: path },
  });
}

describe.concurrent('GPUs', () => {
  it('are read without asking where a process below the target has a context', async ({
    onTestFinished,
  }) => {
    const { pid } = await startIdle(onTestFinished);
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        processes: [[childOf(pid ?? 0), 5000]],
      },
      onTestFinished,
    );
    const recording = join(folderOf(onTestFinished), 'run');
    const run = await attach(pid, { smi, recording, args: ['--json'] });
    const report = parseReport(run);
    expect(report.collectors).toContainEqual({
      name: 'gpu',
      available: true,
      reason: null,
      remedy: null,
    });
    const of = (name: string) => report.metrics[name]?.series[0];
    expect(of(UTILIZATION)).toMatchObject({ first: 1, last: 1 });
    expect(of('hw.gpu.memory.usage')?.last).toBe(19818 * MIB);
    expect(report.metrics['hw.gpu.memory.usage']?.unit).toBe('By');
    expect(of('tracewright.process.gpu.memory.usage')?.last).toBe(5000 * MIB);
    // One that stays, whatever the run takes.
    expect(smi.calls.filter((call) => call.includes('-lms'))).toHaveLength(1);
    const shown = await runCli(['show', recording]);
    expect(shown.stdout.replaceAll(/\s+/g, ' ')).toContain(
      'GPU 0 NVIDIA H100 80GB HBM3: utilization median 100 %, max 100 %, memory 19.4 GiB of 79.6 GiB, power median 632 W of 700 W, 59 °C at most',
    );
  });

  it('are left alone where the target has none of them, and with --no-gpu nobody asks', async ({
    onTestFinished,
  }) => {
    const { pid } = await startIdle(onTestFinished);
    const smi = new FakeSmi({ capture: CAPTURE.h100, processes: [[1, 5000]] }, onTestFinished);
    const report = parseReport(await attach(pid, { smi, seconds: 1, args: ['--json'] }));
    expect(report.metrics[UTILIZATION]).toBeUndefined();
    expect(report.collectors.filter(({ name }) => name.startsWith('gpu'))).toEqual([]);
    expect(smi.calls).toHaveLength(1);
    const other = new FakeSmi(
      { capture: CAPTURE.h100, processes: [[pid ?? 0, 5000]] },
      onTestFinished,
    );
    await attach(pid, { smi: other, seconds: 1, args: ['--no-gpu'] });
    expect(other.calls).toEqual([]);
  });

  it('are not spoken of on a machine without nvidia-smi, unless somebody asks', async ({
    onTestFinished,
  }) => {
    const { pid } = await startIdle(onTestFinished);
    const [silent, asked] = await Promise.all([
      attach(pid, { smi: null, seconds: 1 }),
      attach(pid, { smi: null, seconds: 1, args: ['--gpu'] }),
    ]);
    expect(silent.stdout + silent.stderr).not.toMatch(/gpu|nvidia/i);
    expect(asked.stdout.replaceAll(/\s+/g, ' ')).toContain(
      'gpu: nvidia-smi is neither on PATH nor in',
    );
  });

  it('that are too hot are a finding, and the exit code says so', async ({ onTestFinished }) => {
    const { pid } = await startIdle(onTestFinished);
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        values: {
          'clocks_event_reasons.hw_thermal_slowdown': 'Active',
          'clocks_event_reasons.hw_slowdown': 'Active',
          'clocks.current.sm': '990 MHz',
        },
      },
      onTestFinished,
    );
    const run = await attach(pid, { smi, seconds: 5, args: ['--gpu', '--json'] });
    expect(run.code).toBe(1);
    const found = parseReport(run).findings.filter(({ kind }) => kind.startsWith('gpu'));
    expect(found).toMatchObject([{ code: 'TRC222', kind: 'gpu-throttled', mechanism: 'thermal' }]);
    expect(found[0]?.measure).toMatchObject({ throttled_ratio: 1, clock_ratio: 0.5 });
  });

  it('are chosen by CUDA_VISIBLE_DEVICES, and nothing of the environment is kept', async ({
    onTestFinished,
  }) => {
    const { pid } = await startIdle(onTestFinished, {
      CUDA_VISIBLE_DEVICES: 'GPU-bbbb',
      OPENAI_API_KEY: 'sk-hunter2hunter2',
    });
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        processes: [],
        values: [
          { index: '0', 'pci.bus_id': '00000000:01:00.0', uuid: 'GPU-aaaa1111-0' },
          { index: '1', 'pci.bus_id': '00000000:02:00.0', uuid: 'GPU-bbbb2222-0' },
        ],
      },
      onTestFinished,
    );
    const recording = join(folderOf(onTestFinished), 'run');
    const run = await attach(pid, { smi, recording, seconds: 2, args: ['--json'] });
    const series = parseReport(run).metrics['hw.power']?.series ?? [];
    expect(series.map(({ attributes }) => attributes['hw.id'])).toEqual(['GPU-bbbb2222-0']);
    const files = readdirSync(recording).map((name) => readFileSync(join(recording, name), 'utf8'));
    const kept = [run.stdout, run.stderr, ...files].join('\n');
    expect(kept).not.toContain('hunter2');
    expect(kept).not.toMatch(/CUDA_VISIBLE|"GPU-bbbb"/);
  });
});

/** One after the other: their ends are looked at in time. */
describe('GPUs, alone', () => {
  it('of a driver that hangs hold nothing up: the run ends in time, with a gap', async ({
    onTestFinished,
  }) => {
    const { pid } = await startIdle(onTestFinished);
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        behaviour: 'hang-hard',
        after: 3,
        held: 20,
        only: '-lms',
      },
      onTestFinished,
    );
    const began = performance.now();
    const run = await attach(pid, { smi, seconds: 9, args: ['--gpu', '--json'] });
    const took = (performance.now() - began) / 1e3;
    const report = parseReport(run);
    expect(report.gaps.some(({ collector }) => collector === 'gpu')).toBe(true);
    expect(report.metrics[UTILIZATION]?.series[0]?.count).toBeGreaterThan(0);
    expect(took).toBeLessThan(9 + 8);
  });

  it('are read beside a load run, on its clock', async ({ onTestFinished }) => {
    const server = await startLoadServer();
    onTestFinished(() => server.close());
    const smi = new FakeSmi({ capture: CAPTURE.mig }, onTestFinished);
    const run = await runCli(
      ['load', server.url, '-c', '1', '-d', '3', '--json', '--no-recording', '--gpu'],
      { env: { PATH: `${smi.folder}:${process.env['PATH']}` } },
    );
    const report = parseReport(run);
    expect(report.metrics['hw.power']?.series[0]?.count).toBeGreaterThan(1);
    expect(report.metrics[UTILIZATION]).toBeUndefined();
    expect(report.collectors.find(({ name }) => name === 'gpu-utilization')?.reason).toContain(
      'MIG',
    );
    const slices = report.metrics['hw.gpu.memory.limit']?.series ?? [];
    expect(slices.filter(({ attributes }) => attributes['hw.parent'] !== undefined)).toHaveLength(
      4,
    );
  });
});
