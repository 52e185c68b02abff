import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { interpreters } from '../environments.ts';
import { type RunningTarget, startTarget, type TargetOptions } from '../targets/harness.ts';
import { type CliRun, MAIN, parseReport, processState, runCli, startCli, verdicts } from './cli.ts';

/* How `trace attach` ends, and what it leaves behind, whatever happens to it, to its target or to its output. */

const FAULTY: TargetOptions = {
  kinds: ['sleep'],
  durations: [300],
  reps: 200,
  startS: 0.2,
  seconds: 60,
};
const POLL_MS = 20;

const folder = mkdtempSync(join(tmpdir(), 'tracewright-outcomes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let recordings = 0;
const freshRecording = (): string => join(folder, `recording-${(recordings += 1)}`);

/** Concurrent tests clean up by their own context. */
async function faultyTarget(
  context: TestContext,
  options: TargetOptions = {},
): Promise<RunningTarget> {
  const target = await startTarget('asyncio', { ...FAULTY, ...options });
  context.onTestFinished(() => target.stop());
  return target;
}

/** Waits until a recording holds a few seconds of telemetry. */
async function recorded(path: string, run: CliRun): Promise<void> {
  let over = false;
  void run.ended.then(() => (over = true));
  const file = join(path, 'telemetry.jsonl');
  while (
    !existsSync(file) ||
    !readFileSync(file, 'utf8').includes('tracewright.eventloop.blocked')
  ) {
    if (over) throw new Error(`trace ended early: ${(await run.ended).stderr}`);
    // Real time: asked again until it is there.
    await wait(POLL_MS);
  }
}

function expectUntouched(target: RunningTarget): void {
  const { state, tracer } = processState(target.pid);
  expect(state).toMatch(/[RSD]/);
  expect(tracer).toBe(0);
}

describe.concurrent('a run that ends by itself', () => {
  it('is not valid, and says why, when it got no core for most of it', async (context) => {
    const target = await startTarget('asyncio', { seconds: 60 });
    context.onTestFinished(() => target.stop());
    const path = freshRecording();
    const run = startCli(['attach', String(target.pid), '-d', '6', '-o', path, '--json']);
    while (!existsSync(join(path, 'telemetry.jsonl'))) await wait(POLL_MS);
    // Real time: a second that is watched, and then six that are not.
    await wait(1_000);
    process.kill(run.pid, 'SIGSTOP');
    // Real time: longer than what was watched.
    await wait(6_000);
    process.kill(run.pid, 'SIGCONT');
    const { code, stderr, stdout } = await run.ended;
    expect(code).toBe(6);
    const said = /not valid: the sampler did not get a core for \S+ s of \S+ s,/;
    expect(stderr).toMatch(said);
    expect((JSON.parse(stdout) as { problems: string[] }).problems.join('\n')).toMatch(said);
  });

  it('gives one JSON document by the contract, and show gives the same again', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = await runCli(['attach', String(target.pid), '-d', '4', '--json', '-o', path]);
    expect(run.code).toBe(1);
    const report = parseReport(run);
    expect(report).toMatchObject({
      schema_version: 1,
      tool: { name: 'tracewright' },
      command: 'attach',
      interrupted: false,
      targets: [
        { pid: target.pid, runtime: 'python', runtime_version: interpreters()[0]?.version },
      ],
      hypotheses: expect.arrayContaining([
        expect.objectContaining({ id: 'H1', rank: 1, mechanism: 'blocking-call' }),
      ]),
      overhead: { target_paused_s: 0 },
      recording: path,
    });
    expect(report.trace_id).toMatch(/^[0-9a-f]{32}$/);
    expect(new Date(report.started_at).toISOString()).toBe(report.started_at);
    expect(report.metrics['process.memory.usage']).toMatchObject({ unit: 'By' });
    expect(verdicts(report)[0]).toMatchObject({
      id: 'F1',
      code: 'TRC101',
      kind: 'loop-blocked',
      confidence: 'confirmed',
      pid: target.pid,
    });

    expect(verdicts(report)[0]?.where[0]).toMatchObject({
      function: 'blocking_sleep',
      file: expect.stringMatching(/faults\.py$/),
      line: expect.any(Number),
    });

    const shown = await runCli(['show', path, '--json']);
    expect(shown.code).toBe(1);
    const { findings, gaps, metrics, targets, trace_id: traceId } = parseReport(shown);
    expect({ findings, gaps, metrics, targets, traceId }).toEqual({
      findings: report.findings,
      gaps: report.gaps,
      metrics: report.metrics,
      targets: report.targets,
      traceId: report.trace_id,
    });
  });

  it('prints the report that show prints, and exits 0 on --exit-zero', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = await runCli(['attach', String(target.pid), '-d', '3', '-o', path, '--exit-zero']);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain('blocking_sleep');
    expect((await runCli(['show', path, '--exit-zero'])).stdout).toBe(run.stdout);
  });

  it('ends with 0 when there is nothing to report', async (context) => {
    const target = await faultyTarget(context, { healthy: true });
    const run = await runCli([
      'attach',
      String(target.pid),
      '-d',
      '3',
      '--json',
      '-o',
      freshRecording(),
    ]);
    expect(run.code).toBe(0);
    expect(verdicts(parseReport(run))).toEqual([]);
  });

  it('keeps nothing on disk with --no-recording', async (context) => {
    const target = await faultyTarget(context);
    const cwd = mkdtempSync(join(folder, 'cwd-'));
    const run = await runCli(
      ['attach', String(target.pid), '-d', '2', '--json', '--no-recording'],
      { cwd },
    );
    expect(run.code).toBe(1);
    expect(parseReport(run).recording).toBeNull();
    expect(readdirSync(cwd)).toEqual([]);
  });

  it('writes where it is told to for the owner alone, and not over what is there', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    await runCli(['attach', String(target.pid), '-d', '1', '-o', path]);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(path)) expect(statSync(join(path, name)).mode & 0o077).toBe(0);
    const again = await runCli(['attach', String(target.pid), '-d', '1', '-o', path]);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain(path);
  });
});

describe.concurrent('an interrupted run', () => {
  it('ends with 130 on Ctrl-C before its duration is over, with what it has', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = startCli(['attach', String(target.pid), '-d', '40', '--json', '-o', path]);
    await recorded(path, run);
    run.child.kill('SIGINT');
    const ended = await run.ended;
    expect(ended.code).toBe(130);
    const report = parseReport(ended);
    expect(report.interrupted).toBe(true);
    expect(verdicts(report)).toMatchObject([{ code: 'TRC101' }]);
    expect((await runCli(['show', path])).code).toBe(1);
    expectUntouched(target);
  });

  it('ends normally on Ctrl-C when it had no duration', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = startCli(['attach', String(target.pid), '-d', '0', '--json', '-o', path]);
    await recorded(path, run);
    run.child.kill('SIGINT');
    const ended = await run.ended;
    expect(ended.code).toBe(1);
    expect(verdicts(parseReport(ended))).toMatchObject([{ code: 'TRC101' }]);
  });

  it('ends with 143 on SIGTERM, with what it has', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = startCli(['attach', String(target.pid), '-d', '40', '--json', '-o', path]);
    await recorded(path, run);
    run.child.kill('SIGTERM');
    const ended = await run.ended;
    expect(ended.code).toBe(143);
    const report = parseReport(ended);
    expect(report.interrupted).toBe(true);
    expect(verdicts(report)).toMatchObject([{ code: 'TRC101' }]);
  });

  it('leaves a readable recording and an untouched target when it is killed', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = startCli(['attach', String(target.pid), '-d', '40', '-o', path]);
    await recorded(path, run);
    run.child.kill('SIGKILL');
    await run.ended;
    expectUntouched(target);
    const shown = await runCli(['show', path, '--json']);
    expect(shown.code).toBe(1);
    expect(verdicts(parseReport(shown))).toMatchObject([{ code: 'TRC101' }]);
  });

  it('says that the target ended, and reports what it saw until then', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    const run = startCli(['attach', String(target.pid), '-d', '50', '--json', '-o', path]);
    await recorded(path, run);
    await target.stop();
    const ended = await run.ended;
    const report = parseReport(ended);
    expect(ended.code).toBe(1);
    expect(report.duration_s).toBeLessThan(50);
    expect(report.gaps.map(({ reason }) => reason)).toContain('target-gone');
  });
});

describe.concurrent('while it watches', () => {
  it('never stops or traces the target', async (context) => {
    const target = await faultyTarget(context);
    const run = startCli(['attach', String(target.pid), '-d', '4', '--json', '--no-recording']);
    let over = false;
    void run.ended.then(() => (over = true));
    const states = new Set<string>();
    const tracers = new Set<number>();
    while (!over) {
      for (const tid of readdirSync(`/proc/${target.pid}/task`)) {
        const { state, tracer } = processState(Number(tid));
        states.add(state);
        tracers.add(tracer);
      }
      // Real time: between two looks at the target, until trace has ended.
      await wait(2);
    }
    expect([...states].filter((state) => /[TtZX]/.test(state))).toEqual([]);
    expect([...tracers]).toEqual([0]);
  });
});

describe.concurrent('output that cannot be written', () => {
  it('does not mind a pipe that closes early', async (context) => {
    const target = await faultyTarget(context);
    const script = `"$0" "$1" attach ${target.pid} -d 2 --no-recording | head -n 1; exit "\${PIPESTATUS[0]}"`;
    const run = await runShell(script, [process.execPath, MAIN]);
    expect(run.stdout.split('\n').filter((line) => line !== '')).toHaveLength(1);
    expect(run.stderr).not.toMatch(/EPIPE|bug in trace/);
    expect(run.code).toBe(1);
  });

  it('still reports when the disk is full', async (context) => {
    const target = await faultyTarget(context);
    const path = freshRecording();
    // A limit on the size of files is the full disk that needs no root: writing fails with EFBIG where a full disk has ENOSPC.
    const script = `ulimit -f 8; exec "$0" "$1" attach ${target.pid} -d 4 --json -o "${path}"`;
    const run = await runShell(script, [process.execPath, MAIN]);
    expect(run.stderr).not.toContain('bug in trace');
    expect(verdicts(parseReport({ ...run, signal: null }))).toMatchObject([{ code: 'TRC101' }]);
    expect(run.stderr + run.stdout).toMatch(/EFBIG|too large|full|stopped/i);
  });
});

describe.concurrent('a target that cannot be watched', () => {
  it('says that there is no such process', async () => {
    const { pid } = execPython('import os; print(os.getpid())');
    const run = await runCli(['attach', String(pid)]);
    expect(run).toMatchObject({ code: 3, stdout: '' });
    expect(run.stderr).toContain(`no process has pid ${pid}`);
  });

  it('says that it has already ended, when it is a zombie', async (context) => {
    const program =
      'import os,sys,time\npid = os.fork()\nif pid == 0: os._exit(0)\ntime.sleep(0.1); print(pid, flush=True); sys.stdin.read()';
    const parent = spawn(interpreters()[0]?.path ?? 'python3', ['-c', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    context.onTestFinished(() => void parent.kill('SIGKILL'));
    const pid = await new Promise<string>((resolve) =>
      createInterface(parent.stdout).once('line', resolve),
    );
    const run = await runCli(['attach', pid]);
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('zombie');
  });

  // A container with pids of its own has no kernel threads to show.
  const kernelThread = findKernelThread();
  it.runIf(kernelThread !== undefined)('says that it is a thread of the kernel', async () => {
    const run = await runCli(['attach', String(kernelThread)]);
    expect(run.code).toBe(5);
    expect(run.stderr).toContain('kernel');
  });

  it.each([
    [['attach', 'x'], "expected a process id, got 'x'"],
    [['attach', '1', '--duratoin', '3'], '--duration'],
    [['attach', '1', '-d', 'soon'], 'soon'],
    [['atach', '1'], 'Did you mean trace attach?'],
    [['show'], 'no recording named'],
  ])('says what is wrong with trace %j', async (args, text) => {
    const run = await runCli(args);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain(text);
  });

  it('says that there is no such recording', async () => {
    const run = await runCli(['show', join(folder, 'nowhere')]);
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('nowhere');
  });
});

function runShell(
  script: string,
  args: readonly string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn('bash', ['-c', script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

/** A pid that was in use a moment ago and no longer is. */
function execPython(program: string): { pid: number } {
  return {
    pid: Number(
      execFileSync(interpreters()[0]?.path ?? 'python3', ['-c', program], { encoding: 'utf8' }),
    ),
  };
}

function findKernelThread(): number | undefined {
  const PF_KTHREAD = 0x00200000;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ');
        return (Number(fields[6]) & PF_KTHREAD) !== 0;
      } catch {
        return false;
      }
    });
}
