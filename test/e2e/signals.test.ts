import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRecording } from '../../src/recording/reader.ts';
import { pythonEnvironment } from '../environments.ts';
import { type RunningTarget, startTarget } from '../targets/harness.ts';
import { MAIN, parseReport, startCli } from './cli.ts';

/* Signals that trace itself gets. */

const HANG_UP = join(import.meta.dirname, 'hang-up.py');
const folder = mkdtempSync(join(tmpdir(), 'trace-signals-'));
let target: RunningTarget;
let python = '';
beforeAll(async () => {
  ({ python } = await pythonEnvironment([]));
  target = await startTarget('asyncio', { seconds: 300 });
});
afterAll(async () => {
  await target.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** How a command ends on a terminal that is closed when it has shown a text. */
async function hangUp(text: string, command: readonly string[]): Promise<string> {
  const args = [HANG_UP, text, ...command];
  const { stdout, stderr } = await promisify(execFile)(python, args, { cwd: folder });
  return stdout === 'signal 1\n' ? 'SIGHUP' : `${stdout}${stderr}`;
}
const trace = (...args: readonly string[]): string[] => [process.execPath, MAIN, ...args];

describe('SIGUSR1', () => {
  it('does not open an inspector, and does not end the run', async () => {
    const args = ['attach', String(target.pid), '-d', '2', '--json', '--no-recording', '-v'];
    const run = startCli(args);
    await run.said('runtime: ');
    run.child.kill('SIGUSR1');
    const ended = await run.ended;
    expect(ended).toMatchObject({ signal: null });
    expect(ended.stderr).not.toMatch(/Debugger listening|ws:\/\//);
    expect(parseReport(ended)).toMatchObject({ interrupted: false });
  });
});

describe('Ctrl-C twice', () => {
  it('leaves the report of a run', async () => {
    const args = ['attach', String(target.pid), '-d', '100', '--json', '--no-recording', '-v'];
    const run = startCli(args);
    await run.said('runtime: ');
    run.child.kill('SIGINT');
    run.child.kill('SIGINT');
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: 130, signal: null });
    expect(parseReport(ended)).toMatchObject({ interrupted: true });
  });

  it('leaves the report of a command that the first one ended', async () => {
    const [file, report] = [join(folder, 'pid'), join(folder, 'report')];
    const script = `echo $$ > ${file}; echo started; exec sleep 100`;
    const options = ['--no-recording', '--json', '--report', report];
    const run = startCli(['run', ...options, '--', 'sh', '-c', script]);
    await run.said('started');
    run.child.kill('SIGINT');
    const program = `/proc/${readFileSync(file, 'utf8').trim()}/exe`;
    await expect.poll(() => existsSync(program), { interval: 1 }).toBe(false);
    run.child.kill('SIGINT');
    expect(await run.ended).toMatchObject({ code: 130, signal: null });
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ command: 'run' });
  });
});

describe('a terminal that is closed', () => {
  it('ends a run by SIGHUP, with a recording that is complete', async () => {
    const recording = join(folder, 'recording');
    const command = trace('attach', String(target.pid), '-d', '100', '-v', '-o', recording);
    expect(await hangUp('runtime: ', command)).toBe('SIGHUP');
    const { end, problems } = await openRecording(recording);
    expect(end).toMatchObject({ interrupted: true, reason: 'interrupted' });
    expect(problems).toEqual([]);
  });

  it.each([
    ['run', 'started', ['--no-recording', '--', 'sh', '-c', 'echo started; exec sleep 100']],
    ['profile', 'profiling pid', ['-d', '100']],
    ['proxy', 'passes to', ['--target', 'http://127.0.0.1:9']],
    ['tasks', 'task', ['--watch']],
  ])('ends trace %s by SIGHUP', async (verb, text, options) => {
    const pid = verb === 'run' || verb === 'proxy' ? [] : [String(target.pid)];
    expect(await hangUp(text, trace(verb, ...pid, ...options))).toBe('SIGHUP');
  });

  it('is noticed in the end also by who is not told: in a session without it', async () => {
    const status = join(folder, 'status');
    const script = `trap "" HUP; setsid "$@"; echo $? > ${status}`;
    const command = trace('attach', String(target.pid), '-d', '2', '-v', '--no-recording');
    await hangUp('runtime: ', ['sh', '-c', script, 'sh', ...command]);
    // 128 and the signal.
    expect(readFileSync(status, 'utf8')).toBe('129\n');
  });
});

describe('SIGHUP without a terminal', () => {
  it('ends trace by that signal too, once the report is out', async () => {
    const args = ['attach', String(target.pid), '-d', '100', '--json', '--no-recording', '-v'];
    const run = startCli(args);
    await run.said('runtime: ');
    run.child.kill('SIGHUP');
    const ended = await run.ended;
    expect(ended).toMatchObject({ code: null, signal: 'SIGHUP' });
    expect(parseReport(ended)).toMatchObject({ interrupted: true });
  });
});
