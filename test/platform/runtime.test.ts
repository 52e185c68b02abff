import { copyFileSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { elfSymbols } from '../../src/platform/elf.ts';
import { detectRuntime } from '../../src/platform/runtime.ts';
import { judgeProgram } from '../../src/platform/runtime-program.ts';
import { interpreters, nodes, pythonEnvironment } from '../environments.ts';
import { end, start, startShell } from './processes.ts';
import { makeProgram } from './program-fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracewright-runtime-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs until its input ends, which is when the test does. */
const PYTHON = 'import sys; print("up", flush=True); sys.stdin.read()';
const NODE = 'console.log("up"); process.stdin.resume()';

describe('the runtime of a running process', () => {
  it.each(interpreters())(
    'is CPython $version, told by the symbols of $path',
    async ({ path, version }) => {
      const { pid } = await start(path, ['-c', PYTHON]);
      const runtime = detectRuntime(pid);
      expect(runtime).toMatchObject({
        name: 'python',
        version,
        variant: null,
        uvloop: false,
        reason: null,
      });
      expect(runtime.evidence.join()).toContain('_PyRuntime');
      // The image is what a reader of memory needs: a file with the symbols, and where it is loaded.
      const image = runtime.image ?? { path: '', start: null };
      expect(elfSymbols(image.path, ['_PyRuntime'])?.symbols.has('_PyRuntime')).toBe(true);
      expect(image.start).toBeGreaterThan(0);
    },
  );

  it('is Node with its release, and libuv in it', async () => {
    for (const { path, version } of await nodes()) {
      const { pid } = await start(path, ['-e', NODE]);
      expect(detectRuntime(pid)).toMatchObject({
        name: 'node',
        version,
        libuv: true,
        uvloop: false,
      });
    }
  });

  it('shows uvloop where it is loaded, and not where it is only installed', async () => {
    const { python } = await pythonEnvironment(['uvloop']);
    const plain = await start(python, ['-c', PYTHON]);
    expect(detectRuntime(plain.pid)).toMatchObject({ name: 'python', uvloop: false, libuv: false });
    const loaded = await start(python, ['-c', `import uvloop; ${PYTHON}`]);
    expect(detectRuntime(loaded.pid)).toMatchObject({ name: 'python', uvloop: true, libuv: true });
  });

  it('is native for a program without one', async () => {
    const { pid } = await startShell('echo; read nothing');
    expect(detectRuntime(pid)).toMatchObject({
      name: 'native',
      version: null,
      libuv: false,
      image: null,
      reason: null,
    });
  });

  it('does not go by the name of the executable', async () => {
    const shell = join(folder, 'python3.11');
    copyFileSync('/bin/sh', shell);
    const liar = await start(shell, ['-c', 'echo; read nothing']);
    expect(detectRuntime(liar.pid).name).toBe('native');
    const renamed = join(folder, 'my-server');
    copyFileSync(process.execPath, renamed);
    const node = await start(renamed, ['-e', NODE]);
    expect(detectRuntime(node.pid)).toMatchObject({ name: 'node', version: process.versions.node });
  });

  it('is still told when the executable was deleted under it, as an upgrade does', async () => {
    const program = join(folder, 'upgraded');
    copyFileSync(process.execPath, program);
    const { pid } = await start(program, ['-e', NODE]);
    unlinkSync(program);
    const runtime = detectRuntime(pid);
    expect(runtime).toMatchObject({ name: 'node', version: process.versions.node });
    expect(runtime.image?.start).toBeGreaterThan(0);
  });

  it('is unknown, with the reason, for a process that is gone', async () => {
    const started = await startShell('echo; read nothing');
    await end(started);
    expect(detectRuntime(started.pid)).toMatchObject({
      name: 'unknown',
      reason: expect.stringContaining('gone'),
    });
  });

  it('looks at a file once, however many processes run it', async () => {
    const known = new Map();
    for (let i = 0; i < 3; i++) {
      const { pid } = await startShell('echo; read nothing');
      detectRuntime(pid, known);
    }
    expect(known.size).toBe(1);
  });
});

/** Symbols of CPython as of each minor, in the order they came. */
const SINCE_38 = { _PyRuntime: 0, PyCode_NewWithPosOnlyArgs: 0 };

describe('a program file', () => {
  let files = 0;
  const judge = (options: Parameters<typeof makeProgram>[0]) => {
    const path = join(folder, `program-${(files += 1)}`);
    writeFileSync(path, makeProgram(options));
    return judgeProgram(path);
  };
  /** Py_Version as the linker lays it out. */
  const hex = (version: number): Buffer => {
    const word = Buffer.alloc(8);
    word.writeUInt32LE(version);
    return word;
  };

  it.each([
    [0x030b07f0, '3.11.7'],
    [0x030e00b2, '3.14.0b2'],
    [0x030d00c1, '3.13.0rc1'],
    [0x040000a5, '4.0.0a5'],
  ])('with Py_Version %d is Python %s', (version, expected) => {
    expect(
      judge({ symbols: { _PyRuntime: 0, Py_Version: 0 }, rodata: hex(version) }),
    ).toMatchObject({
      runtime: 'python',
      version: expected,
    });
  });

  it('before 3.11 is dated by its API, and gives the release when one alone is named', () => {
    expect(judge({ symbols: { _PyRuntime: 0 } }).version).toBe('3.7');
    expect(judge({ symbols: SINCE_38, rodata: '/opt/python/3.8.18\0Python 3.7.1\0' }).version).toBe(
      '3.8.18',
    );
    expect(judge({ symbols: SINCE_38, rodata: '3.8.18\0/opt/3.8.1\0' }).version).toBe('3.8');
    expect(
      judge({ symbols: { ...SINCE_38, PyModule_AddType: 0 }, rodata: '3.9.1+\0' }).version,
    ).toBe('3.9.1+');
    expect(judge({ symbols: { ...SINCE_38, PyModule_AddObjectRef: 0 } }).version).toBe('3.10');
  });

  it('of an old Python is recognised, with as much of the version as it shows', () => {
    expect(judge({ symbols: { _PyThreadState_Current: 0 } })).toMatchObject({
      runtime: 'python',
      version: null,
    });
    expect(judge({ symbols: { _PyThreadState_Current: 0, PyString_FromString: 0 } }).version).toBe(
      '2.7',
    );
  });

  it('of a free-threaded or debug build says so: its structures differ', () => {
    const offsets = Buffer.alloc(24);
    offsets.write('xdebugpy');
    offsets.writeUInt32LE(1, 16);
    expect(judge({ symbols: { _PyRuntime: 0 }, rodata: offsets }).variant).toBe('free-threaded');
    offsets.writeUInt32LE(0, 16);
    expect(judge({ symbols: { _PyRuntime: 0 }, rodata: offsets }).variant).toBeNull();
    expect(judge({ symbols: { ...SINCE_38, _Py_NegativeRefcount: 0 } }).variant).toBe('debug');
  });

  it('of PyPy is not taken for CPython, whose API it has', () => {
    expect(judge({ symbols: { pypy_execute_source: 0, ...SINCE_38 } })).toMatchObject({
      runtime: 'pypy',
    });
  });

  // As bun 1.3.14 and deno 2.9.6 have them (npm: @oven/bun-linux-x64-baseline, @deno/linux-x64-glibc).
  it('of Bun or Deno is not taken for Node, whose native API it has', () => {
    const symbols = { napi_create_function: 0, uv_default_loop: 0 };
    expect(judge({ symbols, sections: ['.bun'], rodata: '\0Bun/1.3.14\0' })).toMatchObject({
      runtime: 'bun',
      version: '1.3.14',
      libuv: true,
    });
    const deno =
      'Deno/0.80.0 ext:deno_web/08.js denover2.9.62.9.6+e518fbdDeno/2.9.6Deno/2.9.6+e518fbd';
    expect(judge({ symbols, rodata: deno })).toMatchObject({ runtime: 'deno', version: '2.9.6' });
    expect(judge({ symbols, rodata: 'ext:deno_web' })).toMatchObject({
      runtime: 'deno',
      version: null,
    });
    expect(judge({ symbols })).toMatchObject({ runtime: 'native', libuv: true });
  });

  it('of Node gives its release also across the border of two reads', () => {
    const symbols = { _ZN4node5StartEiPPc: 0 };
    expect(judge({ symbols })).toMatchObject({ runtime: 'node', version: null });
    for (const at of [(1 << 20) - 20, (1 << 20) - 9, 1 << 20]) {
      const rodata = Buffer.concat([Buffer.alloc(at), Buffer.from('node.js/v24.21.0-nightly1\0')]);
      expect(judge({ symbols, rodata }).version).toBe('24.21.0-nightly1');
    }
  });

  it('that is damaged or cut short is no reason to fail, and without its symbols it is native', () => {
    const whole = makeProgram({ symbols: { _ZN4node5StartEiPPc: 0 }, rodata: 'node.js/v1.2.3\0' });
    const path = join(folder, 'damaged');
    for (let length = 0; length < whole.length; length += 7) {
      writeFileSync(path, whole.subarray(0, length));
      const judged = judgeProgram(path);
      if (length < whole.length / 2) expect(judged.runtime).toBe('native');
    }
    for (let at = 4; at < whole.length; at++) {
      const broken = Buffer.from(whole);
      broken[at] = 0xff;
      writeFileSync(path, broken);
      expect(() => judgeProgram(path)).not.toThrow();
    }
  });
});
