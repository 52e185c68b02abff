import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  NO_SYMBOL,
  parseEuStack,
  parsePySpy,
  withPython,
} from '../../../collectors/process/native-frames.ts';
import { lookNatively } from '../../../collectors/process/native-stacks.ts';
import type { ProcessTarget } from '../../../src/core/types.ts';
import { readStat } from '../../../src/platform/proc.ts';

/* Tools are made of shell: they stop the target as the real ones do, and then do as they should or not. */

const folder = mkdtempSync(join(tmpdir(), 'tracewright-native-tools-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function tool(name: string, script: string): { name: 'eu-stack'; path: string } {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\nfor pid; do :; done\n${script}\n`, { mode: 0o755 });
  return { name: 'eu-stack', path };
}

function target(): ProcessTarget {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  return { kind: 'process', pid, startTicks: readStat(pid)?.startTicks ?? 0 };
}

const stateOf = (pid: number): string =>
  /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '?';

const STACK = 'echo "TID $pid:"; echo "#0  0x00007f00 nap@@GLIBC_2.2 - /lib/libc.so.6"';

describe('a look by a tool that stops the target', () => {
  it('says for how long it was stopped at most, which is not shorter than it was', async () => {
    const one = target();
    // A signal takes effect when its receiver has a core.
    const stop = 'kill -STOP $pid; until grep -q "^State:.*T" /proc/$pid/status; do :; done';
    const good = tool('good', `${stop}; sleep 0.1; ${STACK}; kill -CONT $pid`);
    const { stacks, held, longest, states } = await lookNatively(good, one, 5);
    expect(stacks?.threads).toEqual([
      {
        tid: one.pid,
        name: null,
        frames: [{ function: 'nap', file: '/lib/libc.so.6', line: null }],
      },
    ]);
    expect(held).toBeGreaterThanOrEqual(0.1);
    expect(longest).toBe(held);
    expect(states.get(one.pid)).not.toBe('T');
  });

  it('is cut off when that lasts too long, and the target runs again', async () => {
    const one = target();
    const hangs = tool('hangs', `kill -STOP $pid; sleep 60; ${STACK}`);
    const { stacks, reason, held } = await lookNatively(hangs, one, 0.05);
    expect(stacks).toBeNull();
    expect(reason).toContain('--max-pause');
    expect(held).toBeGreaterThanOrEqual(0.05);
    expect(stateOf(one.pid)).not.toBe('T');
  });

  it('leaves it running where the tool ends in the middle, and says what the tool said', async () => {
    const one = target();
    const dies = tool('dies', 'kill -STOP $pid; echo "no \u001b[31msuch thing" >&2; exit 2');
    const { stacks, reason } = await lookNatively(dies, one, 5);
    expect([stacks, stateOf(one.pid)]).toEqual([null, expect.not.stringMatching('T')]);
    expect(reason).toMatch(/such thing/);
    expect(reason).not.toContain('\u001b');
  });

  it('is not taken of one that somebody has stopped, who stays stopped', async () => {
    const one = target();
    process.kill(one.pid, 'SIGSTOP');
    await expect.poll(() => stateOf(one.pid)).toBe('T');
    const { stacks, reason } = await lookNatively(tool('never', STACK), one, 5);
    expect([stacks, reason]).toEqual([null, 'the process was stopped by a signal']);
    expect(stateOf(one.pid)).toBe('T');
  });

  it('says that the tool is not there', async () => {
    const missing = { name: 'py-spy', path: join(folder, 'none') } as const;
    expect((await lookNatively(missing, target(), 5)).reason).toContain('ENOENT');
  });
});

describe('what eu-stack prints', () => {
  it('is read with names, without names, and without a library', () => {
    const { threads, files } = parseEuStack(
      [
        'PID 7 - process',
        'TID 7:',
        '#0  0x00007fcac3ae4545 clock_nanosleep@@GLIBC_2.17 - /usr/lib/libc.so.6',
        '#1  0x00007fcac332e3fd - /usr/lib/libcrypto.so.3',
        '#2  0x00007fcac332e4fd - /usr/lib/libcrypto.so.3',
        "#3  0x0000563e19a87081 ns::f(int) const - [clone .part.0] - /srv/it's.so",
        '#4  0x0000563e19a87081',
        'TID 9:',
        'eu-stack: dwfl_thread_getframes tid 9: no matching address range',
      ].join('\n'),
    );
    expect(threads[0]?.frames.map((one) => [one.function, one.file])).toEqual([
      ['clock_nanosleep', '/usr/lib/libc.so.6'],
      [NO_SYMBOL, '/usr/lib/libcrypto.so.3'],
      ['ns::f(int) const - [clone .part.0]', "/srv/it's.so"],
      [NO_SYMBOL, ''],
    ]);
    expect(threads[1]).toEqual({ tid: 9, name: null, frames: [] });
    expect([...files]).toContain('/usr/lib/libcrypto.so.3');
  });

  it("gets Python's frames in the place of the interpreter's, or none", () => {
    const frame = (name: string, file = '/lib/x.so') => ({ function: name, file, line: null });
    const python = [{ function: 'f', file: 'a.py', line: 3 }];
    const native = [frame('nap'), frame('_PyEval_EvalFrameDefault'), frame('main')];
    expect(withPython(native, python)).toEqual([frame('nap'), ...python]);
    expect(withPython([frame('nap'), frame('main')], python)).toBeNull();
    expect(withPython(native, [])).toBeNull();
  });
});

describe('what py-spy prints', () => {
  it('is read as frames of both kinds, and is refused when it is something else', () => {
    const both = [
      { name: 'nap', filename: '/lib/libc.so.6', module: '/lib/libc.so.6', line: 0 },
      { name: '0x7f00', filename: '/lib/libffi.so', module: '/lib/libffi.so', line: 0 },
      { name: 'f', filename: 'a.py', module: null, line: 3 },
    ];
    const text = JSON.stringify([
      { os_thread_id: 7, thread_name: 'w', frames: both },
      { frames: 1 },
    ]);
    const { threads, files } = parsePySpy(text);
    expect(threads).toEqual([
      {
        tid: 7,
        name: 'w',
        frames: [
          { function: 'nap', file: '/lib/libc.so.6', line: null },
          { function: NO_SYMBOL, file: '/lib/libffi.so', line: null },
          { function: 'f', file: 'a.py', line: 3 },
        ],
      },
    ]);
    expect(files.has('a.py')).toBe(false);
    expect(() => parsePySpy('{}')).toThrow(TypeError);
  });
});
