import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import type { Frame } from '../../../src/core/types.ts';
import { interpreters, pythonEnvironment } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const PARKED = join(import.meta.dirname, '../../fixtures/python-stacks/parked.py');
const run = promisify(execFile);

describe.each(interpreters())('parked threads of CPython $version', ({ path, version }) => {
  let target: Running;
  let reader: PythonReader;

  beforeAll(async () => {
    target = await startReady(path, [PARKED]);
    const opened = openPython(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    reader = opened.reader;
  });
  afterAll(async () => {
    reader.close();
    await target.stop();
  });

  it('are read with the function, file, and line that the interpreter itself gives, every one', () => {
    const truth = parseTruth(target.lines);
    expect(truth.size).toBeGreaterThan(25);
    const seen = readStacks(reader);
    for (const [tid, frames] of truth) expect(seen.get(tid)).toEqual(frames);
  });

  it('are read with the same frames as by py-spy', async ({ skip }) => {
    const dump = await pySpyDump(target.pid);
    if (dump === null) return skip('py-spy may not attach here (yama, or no CAP_SYS_PTRACE)');
    const seen = readStacks(reader);
    expect(new Set(seen.keys())).toEqual(new Set(dump.keys()));
    for (const [tid, frames] of dump) expect(seen.get(tid)).toEqual(frames);
  });

  it('are read one at a time as all together', () => {
    for (const { tid, frames } of reader.threads()) {
      expect(reader.stack(tid)).toMatchObject({ tid, frames, state: 'ok', partial: false });
    }
    expect(reader.counters.rejected).toEqual({
      memory: 0,
      type: 0,
      length: 0,
      text: 0,
      range: 0,
      cycle: 0,
      moved: 0,
    });
  });

  it('are of the version that was started', () => {
    expect(reader.version).toBe(version);
    expect(reader.minor).toBe(Number(version.split('.')[1]));
  });

  it('include the loops, running and idle, of the threads that have one', () => {
    const named = (tid: number): string | undefined =>
      reader.stack(tid)?.frames.find(({ file }) => file === PARKED)?.function;
    const outermost = reader
      .loopThreads()
      .map(
        ({ tid }) => reader.stack(tid)?.frames.findLast(({ file }) => file === PARKED)?.function,
      );
    expect(new Set(outermost)).toEqual(new Set(['coroutine_on_a_loop', 'idle_loop']));
    expect(named(target.pid)).toBe('main');
  });
});

function readStacks(reader: PythonReader): Map<number, readonly Frame[]> {
  return new Map(reader.threads().map(({ tid, frames }) => [tid, frames]));
}

function parseTruth(lines: readonly string[]): Map<number, readonly Frame[]> {
  const threads = JSON.parse(lines[0] ?? '') as [number, [string, string, number][]][];
  return new Map(
    threads.map(([tid, frames]) => [
      tid,
      frames.map(([name, file, line]) => ({ function: name, file, line })),
    ]),
  );
}

async function pySpyDump(pid: number): Promise<Map<number, readonly Frame[]> | null> {
  const { bin } = await pythonEnvironment(['py-spy']);
  try {
    const { stdout } = await run(join(bin, 'py-spy'), ['dump', '--json', '--pid', String(pid)], {
      maxBuffer: 64 * 1024 * 1024,
    });
    const threads = JSON.parse(stdout) as {
      os_thread_id: number;
      frames: { name: string; filename: string; line: number }[];
    }[];
    return new Map(
      threads.map(({ os_thread_id: tid, frames }) => [
        tid,
        frames.map(({ name, filename, line }) => ({ function: name, file: filename, line })),
      ]),
    );
  } catch (error) {
    if (/permission denied/i.test(String(error))) return null;
    throw error;
  }
}
