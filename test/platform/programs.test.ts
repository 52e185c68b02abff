import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { capabilityNames, lackingCapabilities } from '../../src/platform/capabilities.ts';
import { runGroup } from '../../repro/trials/process-group.ts';
import { findProgram, programFor } from '../../src/platform/find-program.ts';
import { findInterpreters, NODE_NAME, PYTHON_NAME } from '../../src/platform/programs.ts';
import { runBriefly } from '../../src/platform/run-briefly.ts';
import { tryConnect } from '../../src/platform/try-connect.ts';
import { until } from './processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracewright-programs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function program(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe('interpreters on PATH', () => {
  it('have the version of their file, each file once, whatever it is called', async () => {
    symlinkSync(process.execPath, join(folder, 'node'));
    const found = await findInterpreters(NODE_NAME, `${folder}:${folder}`);
    expect(found).toEqual([{ path: join(folder, 'node'), version: process.versions.node }]);
  });

  it('are asked where the file does not tell; a wrapper with nothing behind it is left out', async () => {
    program('python3', 'echo Python 3.12.4');
    program('python3.9', 'echo "not installed" >&2; exit 127');
    program('python3-config', 'echo Python 3.1.0');
    expect(await findInterpreters(PYTHON_NAME, folder)).toEqual([
      { path: join(folder, 'python3'), version: '3.12.4' },
    ]);
  });

  it('are never looked for in a relative folder', async () => {
    expect(await findInterpreters(PYTHON_NAME, `.:bin:${''}`)).toEqual([]);
    expect(findProgram('sh', 'bin:/bin')).toBe('/bin/sh');
    expect(findProgram('sh', undefined)).toBeNull();
  });
});

describe('a program that is started by its name', () => {
  /** Entries of PATH that are the current folder, or depend on it. */
  const here = `:.:./:${relative(process.cwd(), folder)}:`;

  it('never comes from an entry of PATH that is empty or relative', async () => {
    program('own-tool', 'echo planted');
    const env = { PATH: `${here}:/bin` };
    expect(programFor('own-tool', env)).toBeNull();
    expect(programFor('own-tool', { PATH: `${here}:${folder}` })).toBe(join(folder, 'own-tool'));
    expect(programFor('bin/own-tool', env)).toBe('bin/own-tool');
    expect(programFor('sh', {})).toMatch(/^\/(?:usr\/)?bin\/sh$/);
    const why = { ended: 'not-started', reason: expect.stringContaining('no own-tool in') };
    expect(await runBriefly('own-tool', [], 10, env)).toMatchObject(why);
    const group = { cwd: folder, env, limit: 10, abort: undefined };
    const ended = await runGroup(['own-tool'], group);
    expect(ended).toMatchObject({ ended: 'not-started' });
  });

  it('finds what it starts itself in the same folders', async () => {
    program('outer', 'own-tool || echo "none of $PATH"');
    program('own-tool', 'echo planted');
    const run = await runBriefly(join(folder, 'outer'), [], 10, { PATH: `${here}:/bin` });
    expect(run).toMatchObject({ ended: 'exit', output: expect.stringContaining('none of /bin\n') });
    const empty = await runBriefly(join(folder, 'outer'), [], 10, { PATH: ':.' });
    expect(empty).toMatchObject({ output: expect.stringContaining('none of /usr/local/bin:') });
  });
});

describe('a program run briefly', () => {
  it('gives its exit status and both outputs', async () => {
    const path = program('both', 'echo out; echo err >&2; exit 3');
    const run = await runBriefly(path, [], 10);
    expect(run).toMatchObject({ ended: 'exit', code: 3 });
    expect(run.ended === 'exit' && run.output.split('\n').toSorted().join(' ').trim()).toBe(
      'err out',
    );
  });

  it('is killed at its limit, also when a child of it keeps its output open', async () => {
    const marker = join(folder, 'pid');
    const path = program('hangs', `echo $$ > ${marker}; sleep 30 & wait`);
    expect(await runBriefly(path, [], 0.3)).toEqual({ ended: 'timeout' });
    if (!existsSync(marker)) return;
    const pid = readFileSync(marker, 'utf8').trim();
    await until(() => !existsSync(`/proc/${pid}`));
  });

  it('is said not to start', async () => {
    expect(await runBriefly(join(folder, 'none'), [], 10)).toMatchObject({ ended: 'not-started' });
  });
});

describe('one attempt to connect', () => {
  it('tells a listener from a closed port, and sends nothing', async () => {
    let received = 0;
    const server = createServer((socket) => {
      socket.on('data', (data) => (received += data.length));
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect(await tryConnect('127.0.0.1', port, 5)).toBeNull();
    await new Promise((resolve) => server.close(resolve));
    expect(received).toBe(0);
    expect(await tryConnect('127.0.0.1', port, 5)).toBe('ECONNREFUSED');
  });
});

describe('capabilities', () => {
  it('go by their names in capability.h, and by number beyond them', () => {
    expect(capabilityNames((1n << 19n) | (1n << 40n) | (1n << 45n))).toEqual([
      'SYS_PTRACE',
      'CHECKPOINT_RESTORE',
      'capability 45',
    ]);
    expect(lackingCapabilities((1n << 41n) - 1n)).toEqual([]);
  });
});
