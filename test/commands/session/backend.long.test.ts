import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { readSession } from '../../../src/session/session.ts';
import { type Ended, startCli } from '../../e2e/cli.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/** A server that is slow to start, has a child, and answers as OpenAI's do. */
const SERVER = `import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
writeFileSync('pids', process.pid + ' ' + child.pid);
console.log('loading \\u001b[31mweights');
createServer((request, response) => {
  const answer = request.url === '/v1/models'
    ? { data: [{ id: 'tiny' }] }
    : process.env.BROKEN ? { error: 'no' } : { choices: [{ message: { content: 'Hi \\u001b[2J there' } }] };
  response.writeHead(process.env.BROKEN && request.method === 'POST' ? 500 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(answer));
}).listen(Number(process.argv[2]), '127.0.0.1');
`;

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-backend-'));
  writeFileSync(join(cwd, 'vllm-like.mjs'), SERVER);
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

async function session(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment({ cwd });
  const code = await main(['session', ...args], environment);
  return { code, out: environment.out(), err: environment.err() };
}

/** The built program: it attaches. */
const backend = (args: readonly string[], env = {}): Promise<Ended> =>
  startCli(['session', 'backend', ...args], { cwd, env }).ended;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

const pids = (): number[] => readFileSync(join(cwd, 'pids'), 'utf8').split(' ').map(Number);
const evidence = () =>
  readSession('x', readFileSync(join(cwd, '.planning', 'debug', 'x.md'), 'utf8')).evidence;

describe('trace session backend', () => {
  it('starts the server, asks it, watches it into the session, and stops it with its children', async () => {
    await session('start', 'x', '--actual', 'the vllm serve command hangs', '--no-environment');
    const port = String(await freePort());
    const command = [process.execPath, 'vllm-like.mjs', port];
    const { code, stdout, stderr } = await backend(['--port', port, '-d', '2', '--', ...command]);
    expect(stderr).toContain('vllm: the command says "');
    expect(stdout).toContain('tiny: Hi \\x1b[2J there\n');
    expect(stdout).not.toContain('\u001b');
    expect([0, 1, 6]).toContain(code);
    expect(pids().map(isAlive)).toEqual([false, false]);
    const found = evidence().map((one) => one.found);
    expect(found[0]).toMatch(/^answered after [\d.]+ (?:ms|s) as tiny: Hi/);
    expect(evidence()[1]?.checked).toMatch(/^trace attach \d+ -d 2 --session x$/);
    expect(readFileSync(join(cwd, '.planning', 'debug', 'x-backend.log'), 'utf8')).toContain(
      'loading',
    );
  }, 60_000);

  it('says with its last lines when it ends first, and stops what is left', async () => {
    await session('start', 'x', '--no-environment');
    const ended = await backend([
      'vllm',
      '--',
      'sh',
      '-c',
      'echo out of memory >&2; sleep 100 & exit 3',
    ]);
    expect(ended.code).toBe(3);
    expect(ended.stderr).toContain('it ended with 3 before it answered');
    expect(ended.stderr).toContain('out of memory');
    expect(evidence()[0]?.found).toContain('it ended with 3');
    const gone = await backend(['vllm', '--', 'no-such-program']);
    expect(gone.stderr).toContain('cannot be started');
    const slow = await backend(['vllm', '--ready-timeout', '0.5', '--', 'sleep', '100']);
    expect(slow.stderr).toContain('it did not answer within 500 ms');
  }, 60_000);

  it('is stopped with the server by Ctrl-C', async () => {
    await session('start', 'x', '--no-environment');
    const port = String(await freePort());
    const started = startCli(
      [
        'session',
        'backend',
        'vllm',
        '--port',
        port,
        '-d',
        '60',
        '--',
        process.execPath,
        'vllm-like.mjs',
        port,
      ],
      { cwd },
    );
    await started.said('tiny: Hi');
    started.child.kill('SIGINT');
    expect((await started.ended).code).toBe(130);
    expect(pids().map(isAlive)).toEqual([false, false]);
  }, 60_000);

  it('asks which where two are spoken of, and quotes the words', async () => {
    await session('start', 'vllm is slow, sglang is not', '--title', 'x', '--no-environment');
    const both = await session('backend', '--', 'python', 'serve.py');
    expect(both.code).toBe(2);
    expect(both.err).toContain('vllm ("vllm is slow, sglang is not")');
    const none = await session('backend', 'vllm');
    expect(none.err).toContain('which command starts it?');
    expect((await session('backend', 'tgi', '--', 'x')).err).toContain('no backend tgi');
    expect((await session('backend', 'dynamo', '--rebuild', '--', 'x')).err).toContain(
      'maturin develop --uv',
    );
  });

  it.each([
    ['vllm', 'in .: env VLLM_USE_PRECOMPILED=1 uv pip install --editable . --torch-backend=auto'],
    ['sglang', 'in .: pip install -e python'],
    ['trtllm', 'in .: python3 ./scripts/build_wheel.py'],
    ['llama.cpp', 'in .: cmake --build build --config Release'],
  ])('shows how %s is made anew, and runs nothing unconfirmed', async (backend, command) => {
    await session('start', 'x', '--no-environment');
    const { code, err } = await session('backend', backend, '--rebuild', '--', 'x');
    expect(code).toBe(2);
    expect(err).toContain(command);
    expect(err).toContain('Add --yes to run it.');
    expect(evidence()).toEqual([]);
  });

  it('makes it anew by the commands of the configuration, and writes that down', async () => {
    await session('start', 'x', '--no-environment');
    mkdirSync(join(cwd, '.tracewright'));
    writeFileSync(
      join(cwd, '.tracewright', 'config.json'),
      JSON.stringify({ rebuild: { vllm: ['echo a > made', 'echo b >> made'] } }),
    );
    const ended = await backend(['vllm', '--rebuild', '--yes', '--', 'no-such-program']);
    expect(readFileSync(join(cwd, 'made'), 'utf8')).toBe('a\nb\n');
    expect(ended.stderr).toContain('rebuild vllm, as the configuration says:');
    expect(evidence()[0]?.found).toContain('in .: echo a > made; in .: echo b >> made');
    writeFileSync(join(cwd, '.tracewright', 'config.json'), '{"rebuild": {"vllm": "rm -r /"}}');
    expect((await session('backend', 'vllm', '--rebuild', '--', 'x')).err).toContain(
      'a list of commands for each backend',
    );
  }, 60_000);

  it('runs what notes say only when a person has read it', async () => {
    await session('start', 'x', '--no-environment');
    writeFileSync(join(cwd, 'AGENTS.md'), 'Rebuild vllm: `echo noted > made`\nRebuild: `false`\n');
    writeFileSync(join(cwd, 'uv'), '#!/bin/sh\necho "$@" > documented\n', { mode: 0o755 });
    const env = { PATH: `${cwd}:${process.env['PATH']}`, HOME: cwd };
    const args = ['vllm', '--rebuild', '--yes', '--', 'no-such-program'];
    const { stderr } = await backend(args, env);
    expect(stderr).toContain('echo noted > made');
    expect(stderr).toContain('notes say otherwise');
    expect(existsSync(join(cwd, 'made'))).toBe(false);
    expect(readFileSync(join(cwd, 'documented'), 'utf8')).toContain('pip install --editable .');
    const asked = async (typed: string): Promise<string> => {
      const environment = fakeEnvironment({ cwd, env, typed: [typed] });
      await main(['session', 'backend', 'vllm', '--rebuild', '--', 'no-such-program'], environment);
      return environment.err();
    };
    expect(await asked('no')).toContain('nothing was run');
    expect(existsSync(join(cwd, 'made'))).toBe(false);
    expect(await asked('y')).toMatch(/as \S+AGENTS\.md says/);
    expect(readFileSync(join(cwd, 'made'), 'utf8')).toBe('noted\n');
  }, 60_000);
});
