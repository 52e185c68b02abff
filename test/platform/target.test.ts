import { copyFileSync, chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TraceError } from '../../src/core/errors.ts';
import { readCommandLine, readStat, threadIds } from '../../src/platform/proc.ts';
import { isKernelThread } from '../../src/platform/proc-parse.ts';
import { elfHeader } from '../../src/platform/elf.ts';
import { findTarget, isSameProcess, targetInfo } from '../../src/platform/target.ts';
import { findMatches } from '../../src/platform/target-match.ts';
import { architectureError, kernelThreadError } from '../../src/platform/target-refusal.ts';
import { detectRuntime } from '../../src/platform/runtime.ts';
import { makeI386Sleeper } from './program-fixture.ts';
import { end, start, startShell, until } from './processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracewright-target-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What `findTarget` refuses with. */
function refusal(
  find: () => unknown,
): Pick<TraceError, 'code' | 'exitCode' | 'message' | 'remedy'> {
  try {
    find();
  } catch (error) {
    if (error instanceof TraceError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a pid as typed', () => {
  it.each(['abc', '', '-5', '1.5', '12x', '0x10', ' 7', 'ÿ', '99999999999999999999'])(
    '%j is a usage error',
    (text) => {
      expect(refusal(() => findTarget({ pid: text }))).toMatchObject({
        code: 'ERR_TARGET_PID_INVALID',
        exitCode: 2,
        message: expect.stringContaining(text),
      });
    },
  );

  it.each([0, -1, 4_194_305, 2 ** 53, Number.NaN])('%d is outside of what pids can be', (pid) => {
    expect(refusal(() => findTarget({ pid }))).toMatchObject({
      code: 'ERR_TARGET_PID_INVALID',
      exitCode: 2,
    });
  });

  it('shows control characters of a hostile argument as text', () => {
    expect(refusal(() => findTarget({ pid: '\u001b[2J7' })).message).toContain('\\x1b[2J7');
  });
});

describe('a process that can be attached to', () => {
  it('is described with title, parent, user and age', async () => {
    const { pid } = await startShell('echo; read nothing');
    const found = findTarget({ pid: String(pid) });
    expect(found).toMatchObject({
      target: { kind: 'process', pid, startTicks: readStat(pid)?.startTicks },
      title: '/bin/sh -c echo; read nothing',
      parent: process.pid,
      uid: process.geteuid?.(),
      namespacePid: null,
      container: null,
      tracer: 0,
    });
    expect(found.age).toBeLessThan(20);
    expect(targetInfo(found, detectRuntime(pid))).toMatchObject({
      pid,
      parent: process.pid,
      runtime: 'native',
    });
  });

  it('is the same process until it ends', async () => {
    const started = await startShell('echo; read nothing');
    const { target } = findTarget({ pid: started.pid });
    expect(isSameProcess(target)).toBe(true);
    // As it looks when the pid has been given to another process, which began later.
    expect(isSameProcess({ ...target, startTicks: target.startTicks - 1 })).toBe(false);
    await end(started);
    expect(isSameProcess(target)).toBe(false);
  });
});

describe('what cannot be attached to', () => {
  it('a process that is gone', async () => {
    const started = await startShell('echo; read nothing');
    await end(started);
    expect(refusal(() => findTarget({ pid: started.pid }))).toMatchObject({
      code: 'ERR_TARGET_NOT_FOUND',
      exitCode: 3,
      message: `no process has pid ${started.pid}`,
    });
  });

  it('a zombie, and names the parent that does not wait for it', async () => {
    // The shell starts a child that ends when told, and becomes a program that never waits.
    const started = await startShell('exec 3<&0; read go <&3 & echo $!; exec sleep 60');
    const { pid: parent } = started;
    const pid = Number(started.said);
    await until(() => readStat(parent)?.comm === 'sleep');
    started.child.stdin?.write('go\n');
    await until(() => readStat(pid)?.state === 'Z');
    expect(refusal(() => findTarget({ pid }))).toMatchObject({
      code: 'ERR_TARGET_ZOMBIE',
      exitCode: 3,
      message: expect.stringContaining(`its parent ${parent} (sleep)`),
    });
    const target = { kind: 'process', pid, startTicks: readStat(pid)?.startTicks ?? 0 } as const;
    expect(isSameProcess(target)).toBe(false);
  });

  it('a thread, and names its process', async () => {
    const tid = threadIds(process.pid).find((id) => id !== process.pid);
    expect(refusal(() => findTarget({ pid: tid ?? 0 }))).toMatchObject({
      code: 'ERR_TARGET_IS_THREAD',
      exitCode: 3,
      message: `${tid} is a thread of process ${process.pid}`,
      remedy: `Attach to the process: trace attach ${process.pid}`,
    });
  });

  it('trace itself', () => {
    expect(refusal(() => findTarget({ pid: process.pid }))).toMatchObject({
      code: 'ERR_TARGET_IS_TRACE',
      exitCode: 2,
    });
  });

  it('a kernel thread', () => {
    // kthreadd is pid 2 wherever the pids of the whole machine show; in a container there is none to ask for.
    const visible = isKernelThread(readStat(2) ?? { flags: 0 });
    const refused = visible
      ? refusal(() => findTarget({ pid: 2 }))
      : kernelThreadError(2, 'kthreadd');
    expect(refused).toMatchObject({
      code: 'ERR_TARGET_KERNEL_THREAD',
      exitCode: 5,
      message: expect.stringContaining('pid 2 (kthreadd) is a thread of the kernel'),
    });
  });

  it('a program of another architecture', async () => {
    const path = join(folder, 'sleeper-i386');
    writeFileSync(path, makeI386Sleeper(), { mode: 0o755 });
    const expected = {
      code: 'ERR_TARGET_ARCHITECTURE',
      exitCode: 5,
      message: expect.stringContaining('runs a 32-bit i386 program'),
    };
    // `exec` fails where the kernel has no IA32 emulation; then the file itself is judged.
    const { pid, said } = await startShell(`echo $$; exec ${path} || read nothing`);
    await until(() => readStat(pid)?.comm !== 'sh' || readStat(pid)?.state === 'S');
    const runs = readStat(pid)?.comm === 'sleeper-i386';
    const header = elfHeader(path);
    if (header === null) throw new Error('not ELF');
    expect(architectureError(Number(said), header)).toMatchObject(expected);
    if (runs) expect(refusal(() => findTarget({ pid }))).toMatchObject(expected);
  });
});

describe('--match', () => {
  /** A copy of `sleep` under a name that no other process on the machine has. */
  async function startNamed(name: string, ...titles: string[]): Promise<number[]> {
    const program = join(folder, name);
    copyFileSync('/bin/sh', program);
    chmodSync(program, 0o755);
    const started = await Promise.all(
      titles.map((title) => start(program, ['-c', 'echo; read nothing', title])),
    );
    return started.map(({ pid }) => pid).toSorted((a, b) => a - b);
  }

  it('finds the one process whose title holds the text, whatever its case', async () => {
    const [pid] = await startNamed(`one-${process.pid}`, 'Serve');
    expect(findTarget({ match: `ONE-${process.pid}` }).target.pid).toBe(pid);
  });

  it('takes /…/ as a regular expression', async () => {
    const [pid] = await startNamed(`two-${process.pid}`, '--port=8000', '--port=9000');
    expect(findTarget({ match: `/two-${process.pid} .*PORT=8\\d+$/is` }).target.pid).toBe(pid);
    expect(refusal(() => findTarget({ match: '/(/' }))).toMatchObject({
      code: 'ERR_MATCH_INVALID',
      exitCode: 2,
    });
    expect(refusal(() => findTarget({ match: '' }))).toMatchObject({
      code: 'ERR_MATCH_INVALID',
      exitCode: 2,
    });
  });

  it('lists the hits when there are several, at most ten of them', async () => {
    const name = `many-${process.pid}`;
    const pids = await startNamed(name, ...Array.from({ length: 12 }, (_, i) => `worker-${i}`));
    const refused = refusal(() => findTarget({ match: name }));
    expect(refused).toMatchObject({
      code: 'ERR_MATCH_SEVERAL',
      exitCode: 2,
      message: `12 processes match '${name}'`,
      remedy: expect.stringContaining('and 2 more'),
    });
    expect(refused.remedy?.match(/worker-/g)).toHaveLength(10);
    for (const pid of pids.slice(0, 10)) expect(refused.remedy).toContain(`${pid}  `);
  });

  it('does not find trace, nor what trace was started from', () => {
    const refused = refusal(() => findTarget({ match: `nothing-is-called-this-${process.pid}` }));
    expect(refused).toMatchObject({ code: 'ERR_MATCH_NONE', exitCode: 3 });
    // The command lines of this process and of the one that started it are matched by themselves alone.
    for (const pid of [process.pid, process.ppid]) {
      const whole = readCommandLine(pid).join(' ');
      expect(findMatches(whole).map((stat) => stat.pid)).not.toContain(pid);
    }
  });
});
