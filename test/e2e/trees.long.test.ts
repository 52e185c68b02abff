import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, type TestContext } from 'vitest';
import { interpreters } from '../environments.ts';
import { type Ended, parseReport, type ReportDocument, runCli, verdicts } from './cli.ts';

/** Servers of several processes in one report; test/targets/python/server_tree.py explains the plans. */

interface Plan {
  readonly title?: string;
  readonly children?: readonly Plan[];
  readonly join_s?: number;
  readonly join?: Plan;
  readonly block_ms?: number;
  readonly every_ms?: number;
  readonly exit_s?: number;
  readonly signal?: number;
  readonly code?: number;
  readonly storm_hz?: number;
}

const PROGRAM = join(import.meta.dirname, '..', 'targets', 'python', 'server_tree.py');
/** A tree that a test forgot ends by itself. */
const TREE_LIFETIME_S = 60;
/** Standard library alone: any interpreter does. Under another name it does not find its library, and is told. */
const [python = '', home = ''] = execFileSync(
  interpreters()[0]?.path ?? 'python3',
  ['-c', 'import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)'],
  { encoding: 'utf8' },
).split('\n');

/** Starts a tree whose root has this name, and waits until so many of its processes are up; gives the root's pid. */
async function startTree(
  name: string,
  plan: Plan,
  { processes, onTestFinished }: Pick<TestContext, 'onTestFinished'> & { processes: number },
): Promise<number> {
  const whole = JSON.stringify({ ...plan, seconds: TREE_LIFETIME_S });
  const child = spawn(python, [PROGRAM, '--plan', whole], {
    argv0: name,
    env: { ...process.env, PYTHONHOME: home },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let up = 0;
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the tree ended before it was up')));
    createInterface(child.stdout).on('line', () => {
      if (++up === processes) resolve();
    });
  });
  return child.pid ?? expect.fail('no process');
}

async function attach(
  ...args: readonly string[]
): Promise<{ readonly run: Ended; readonly report: ReportDocument }> {
  const run = await runCli(['attach', ...args, '--no-recording', '--json']);
  return { run, report: parseReport(run) };
}

const VLLM = '/usr/bin/vllm serve';
const rolesIn = ({ targets }: ReportDocument): readonly (string | null)[] =>
  targets.map(({ role }) => role);

describe.concurrent('a server of several processes', () => {
  it('is one report: who blocks, who crashed and how, who came', async ({ onTestFinished }) => {
    const pid = await startTree(
      VLLM,
      {
        children: [
          {
            title: 'VLLM::EngineCore',
            block_ms: 300,
            every_ms: 500,
            children: [
              { title: 'VLLM::Worker_TP0' },
              { title: 'VLLM::Worker_TP1', exit_s: 9, signal: 11 },
            ],
          },
        ],
        join_s: 8,
        join: { title: 'VLLM::APIServer_1' },
      },
      { processes: 4, onTestFinished },
    );
    const { run, report } = await attach(String(pid), '-d', '12');
    expect(run.code).toBe(1);
    expect(run.stderr).not.toContain('Warning');
    expect(new Set(rolesIn(report))).toEqual(
      new Set([
        'vLLM API server',
        'vLLM API server 1',
        'vLLM engine core',
        'vLLM worker TP0',
        'vLLM worker TP1',
      ]),
    );
    expect(report.targets).toHaveLength(5);
    expect(report.targets[0]?.pid).toBe(pid);
    const ofRole = (role: string) => report.targets.find((target) => target.role === role)?.pid;
    const blocked = report.findings.find(({ kind }) => kind === 'loop-blocked');
    expect(blocked?.pid).toBe(ofRole('vLLM engine core'));
    expect(blocked?.where[0]?.function).toBe('stand_still');
    const exit = report.findings.find(({ kind }) => kind === 'process-exit');
    expect(exit?.pid).toBe(ofRole('vLLM worker TP1'));
    // Its parent reaps it at once: only root hears from the kernel how it ended.
    if (process.getuid?.() === 0)
      expect(exit).toMatchObject({ mechanism: 'SIGSEGV', severity: 'critical' });
    expect(
      verdicts(report).every(({ kind }) => ['loop-blocked', 'process-exit'].includes(kind)),
    ).toBe(true);
  });

  it('is silent while it is healthy, and while a process of it forks all the time', async ({
    onTestFinished,
  }) => {
    const pid = await startTree(
      VLLM,
      { children: [{ title: 'VLLM::EngineCore', storm_hz: 100 }, { title: 'VLLM::Worker_TP0' }] },
      { processes: 3, onTestFinished },
    );
    const { run, report } = await attach(String(pid), '-d', '6');
    expect(verdicts(report)).toEqual([]);
    expect(run.code).toBe(0);
    // What lives for a moment is no process of the server.
    expect(rolesIn(report)).toEqual(['vLLM API server', 'vLLM engine core', 'vLLM worker TP0']);
  });

  it('is watched alone with --no-subprocesses, which says so', async ({ onTestFinished }) => {
    const pid = await startTree(
      VLLM,
      { children: [{ title: 'VLLM::EngineCore' }] },
      { processes: 2, onTestFinished },
    );
    const { report } = await attach(String(pid), '-d', '2', '--no-subprocesses');
    expect(report.targets).toHaveLength(1);
    expect(report.collectors.find(({ name }) => name === 'worker-processes')?.remedy).toContain(
      '--subprocesses',
    );
  });

  it('is followed where nothing says that it is a server, when that is asked for', async ({
    onTestFinished,
  }) => {
    const pid = await startTree(
      'python',
      { children: [{ title: 'helper' }] },
      { processes: 2, onTestFinished },
    );
    const [alone, followed] = await Promise.all([
      attach(String(pid), '-d', '2'),
      attach(String(pid), '-d', '2', '--subprocesses'),
    ]);
    expect(alone.report.targets).toHaveLength(1);
    expect(followed.report.targets).toHaveLength(2);
  });

  it('may be several targets: all that match, or pids', async ({ onTestFinished }) => {
    const names = ['tree-of-test-a', 'tree-of-test-b'].map((name) => `${name}-${process.pid}`);
    const pids = await Promise.all(
      names.map((name) => startTree(name, {}, { processes: 1, onTestFinished })),
    );
    const [matched, named] = await Promise.all([
      attach('--match', `/^tree-of-test-.-${process.pid}/`, '--all', '-d', '2'),
      attach(...pids.map(String), '-d', '2'),
    ]);
    const watched = ({ report }: { report: ReportDocument }) =>
      report.targets.map(({ pid }) => pid).toSorted((a, b) => a - b);
    expect(watched(matched)).toEqual(pids.toSorted((a, b) => a - b));
    expect(watched(named)).toEqual(pids.toSorted((a, b) => a - b));
  });
});
