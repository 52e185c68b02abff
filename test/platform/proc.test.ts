import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  ageOf,
  clockTicks,
  listProcesses,
  readCommandLine,
  readStat,
  readStatus,
  threadIds,
} from '../../src/platform/proc.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { end, start, startShell } from './processes.ts';

/** Larger than any pid (PID_MAX_LIMIT). */
const NOBODY = 2 ** 22 + 1;

describe('reading /proc', () => {
  it('lists processes and their threads', async () => {
    const { pid } = await startShell('echo; read nothing');
    expect(listProcesses().map((stat) => stat.pid)).toContain(pid);
    expect(threadIds(pid)).toEqual([pid]);
    expect(threadIds(process.pid).length).toBeGreaterThan(1);
  });

  it('keeps arguments apart, empty ones too, and cuts a long command line', async () => {
    const long = 'x'.repeat(10_000);
    const { pid } = await start('/bin/sh', ['-c', 'echo; read nothing', '', 'a b', long]);
    const commandLine = readCommandLine(pid);
    expect(commandLine.slice(0, 5)).toEqual(['/bin/sh', '-c', 'echo; read nothing', '', 'a b']);
    expect(commandLine.join(' ').length).toBeLessThanOrEqual(4096);
  });

  it('answers null or nothing for a process that is not there', () => {
    expect([readStat(NOBODY), readStatus(NOBODY)]).toEqual([null, null]);
    expect([threadIds(NOBODY), readCommandLine(NOBODY)]).toEqual([[], []]);
  });

  it('takes the clock tick from the kernel, as getconf does', () => {
    expect(clockTicks()).toBe(Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' })));
  });

  it('dates a process on the boot clock', () => {
    const stat = readStat(process.pid);
    const uptime = Number.parseFloat(readFileSync('/proc/uptime', 'utf8'));
    const age = ageOf(stat ?? { startTicks: 0 });
    expect(age).toBeGreaterThan(0);
    expect(age).toBeLessThan(uptime + 0.1);
    expect(ageOf({ startTicks: Number.MAX_SAFE_INTEGER })).toBe(0);
  });
});

describe('a kept file', () => {
  it('gives the present state at every reading, into the same buffer', () => {
    const file = new KeptFile('/proc/self/schedstat');
    const first = file.text() ?? '';
    for (let spun = 0; spun < 1e7; spun++);
    const { buffer } = file;
    expect(file.read()).toBeGreaterThan(0);
    expect(file.buffer).toBe(buffer);
    expect(Number.parseInt(buffer.toString(), 10)).toBeGreaterThanOrEqual(
      Number.parseInt(first, 10),
    );
    file.close();
  });

  it('reads as gone when its process has ended', async () => {
    const started = await startShell('echo; read nothing');
    const file = new KeptFile(`/proc/${started.pid}/stat`);
    expect(file.read()).toBeGreaterThan(0);
    await end(started);
    expect(file.read()).toBe(-1);
    file.close();
    expect(file.text()).toBeNull();
    expect(() => file.close()).not.toThrow();
  });

  it('cannot be opened for a process that is not there', () => {
    expect(KeptFile.open(`/proc/${NOBODY}/stat`)).toBeNull();
    expect(() => new KeptFile(`/proc/${NOBODY}/stat`)).toThrow(/ENOENT/);
  });

  it('leaves no descriptor behind', () => {
    const before = readdirSync('/proc/self/fd').length;
    for (let i = 0; i < 50; i++) KeptFile.open('/proc/self/stat')?.close();
    expect(readdirSync('/proc/self/fd').length).toBe(before);
  });
});
