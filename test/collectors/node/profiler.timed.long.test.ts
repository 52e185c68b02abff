import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { findOpenInspector } from '../../../collectors/node/inspector.ts';
import { NodeProfiler } from '../../../collectors/node/profiler.ts';
import { monotonicNow } from '../../../src/core/clock.ts';
import { rankPlaces } from '../../../src/core/place.ts';
import { nodes } from '../../environments.ts';

const fixture = (name: string): string => join(import.meta.dirname, 'fixtures', name);

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

interface Target {
  readonly pid: number;
  readonly child: ChildProcess;
  readonly lines: Interface;
  errors(): string;
}

async function start(program: string, args: readonly string[], env: object = {}): Promise<Target> {
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  if (child.pid === undefined) throw new Error(`${program} did not start`);
  open.push(() => child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', (text: Buffer) => {
    errors += text.toString();
  });
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  return { pid: child.pid, child, lines, errors: () => errors };
}

async function profilerOf(pid: number): Promise<NodeProfiler> {
  const result = await NodeProfiler.open(pid, { pauseBudget: 10 });
  if (!result.ok) throw new Error(result.reason);
  open.push(() => void result.profiler.close());
  return result.profiler;
}

/** V8 runs its profiler on a thread of this name, cut to 15 characters. */
function isBeingProfiled(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).some((tid) => {
    try {
      return readFileSync(`/proc/${pid}/task/${tid}/comm`, 'latin1').startsWith('v8:ProfEvntProc');
    } catch {
      return false; // ended since the folder was listed
    }
  });
}

/** Waits for a state, not for a time; the test's own limit ends it. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(20);
}

describe.each(await nodes())('an inspector of Node $version', ({ path, version }) => {
  it('is found where the process has opened one, whatever its port', async () => {
    for (const option of ['--inspect=0', '--inspect=127.0.0.1:0']) {
      const target = await start(path, [option, fixture('profiled.cjs')]);
      expect(await findOpenInspector(target.pid)).toMatchObject({
        ok: true,
        inspector: { version: `v${version}` },
      });
    }
    const byEnvironment = await start(path, [fixture('profiled.cjs')], {
      NODE_OPTIONS: '--inspect=0',
    });
    expect(await findOpenInspector(byEnvironment.pid)).toMatchObject({ ok: true });
  });

  it('is not opened where there is none', async () => {
    const target = await start(path, [fixture('profiled.cjs')]);
    expect(await findOpenInspector(target.pid)).toMatchObject({
      ok: false,
      reason: 'it has no inspector open',
    });
    expect(await NodeProfiler.open(target.pid)).toMatchObject({ ok: false });
    expect(target.errors()).toBe('');
  });

  it('gives the functions that blocked, on the clock the target itself reads', async () => {
    const target = await start(path, ['--inspect=0', fixture('profiled.cjs')]);
    const profiler = await profilerOf(target.pid);
    const asked: Promise<readonly [string, number, string | undefined, number]>[] = [];
    for (let round = 0; round < 7; round++) {
      target.child.stdin?.write('block\n');
      const [line] = (await once(target.lines, 'line')) as [string];
      for (const { kind, start: from, end: to } of JSON.parse(line) as {
        kind: string;
        start: number;
        end: number;
      }[])
        asked.push(
          profiler.stacksDuring(from, to).then((stacks) => {
            const seen = stacks.reduce((sum, { weight }) => sum + weight, 0);
            const [place] = rankPlaces(stacks);
            return [kind, seen / (to - from), place?.frame.function, place?.share ?? 0] as const;
          }),
        );
    }
    await profiler.close();
    const answers = await Promise.all(asked);
    expect(answers).toHaveLength(21);
    for (const [kind, covered, blamed, share] of answers) {
      expect(blamed).toBe(kind);
      expect(share).toBeGreaterThan(0.7);
      // Were the clocks different ones, samples of the waiting before and after would be in it.
      expect(covered).toBeGreaterThan(0.7);
      expect(covered).toBeLessThanOrEqual(1.0001);
    }
  });

  it('is left open, and the profiler stopped, when trace is done', async () => {
    const target = await start(path, ['--inspect=0', fixture('profiled.cjs')]);
    const profiler = await profilerOf(target.pid);
    expect(isBeingProfiled(target.pid)).toBe(true);
    await profiler.close();
    await until(() => !isBeingProfiled(target.pid));
    expect(await findOpenInspector(target.pid)).toMatchObject({ ok: true });
    expect(profiler.failure).toBe('closed');
    expect(await profiler.stacksDuring(0, monotonicNow())).not.toEqual([]);
  });

  it('is rid of the profiler when its client is killed', async () => {
    const target = await start(path, ['--inspect=0', fixture('profiled.cjs')]);
    const found = await findOpenInspector(target.pid);
    if (!found.ok) throw new Error(found.reason);
    const client = await start(process.execPath, [fixture('client.cjs'), found.inspector.url]);
    expect(isBeingProfiled(target.pid)).toBe(true);
    client.child.kill('SIGKILL');
    await until(() => !isBeingProfiled(target.pid));
    expect(target.child.exitCode).toBeNull();
  });

  it.each([
    ['whose loop runs dry', 'end', 0],
    ['that calls process.exit', 'exit', 3],
  ])('does not keep a program alive %s', async (_what, line, code) => {
    const target = await start(path, ['--inspect=0', fixture('profiled.cjs')]);
    const profiler = await profilerOf(target.pid);
    const ended = once(target.child, 'exit');
    target.child.stdin?.write(`${line}\n`);
    expect(await ended).toEqual([code, null]);
    await until(() => profiler.failure !== null);
    expect(await profiler.stacksDuring(0, monotonicNow())).toEqual([]);
  });

  it('is not used when that would stop the program for longer than allowed', async () => {
    const target = await start(path, ['--inspect=0', fixture('profiled.cjs')]);
    const result = await NodeProfiler.open(target.pid, { pauseBudget: 0.001 });
    expect(result).toMatchObject({ ok: false });
    expect(result.ok ? '' : result.reason).toMatch(/would stop it for about [\d.]+ m?s/);
    expect(target.errors()).not.toContain('Debugger attached');
  });

  it('says how long it held the loop, and begins a new window when asked to', async () => {
    const target = await start(path, ['--inspect=0', fixture('profiled.cjs')]);
    const profiler = await profilerOf(target.pid);
    await profiler.flush();
    expect(profiler.pauses.map(({ what }) => what)).toEqual(['start', 'stop', 'start']);
    for (const { from, to } of profiler.pauses) expect(to).toBeGreaterThan(from);
    expect(profiler.description).toMatch(/held the loop for up to [\d.]+ (?:µs|ms|s)\b/);
  });
});

describe('what answers on the port of an inspector', () => {
  it.each([
    ['deno', /is not Node's inspector \(Deno\/2\.9\.6\)/],
    ['list', /is not Node's inspector/],
    ['empty', /lists no target/],
    ['text', /does not answer as an inspector/],
    ['missing', /does not answer as an inspector \(status 404\)/],
    ['long', /does not answer as an inspector \(answer too long\)/],
    ['silent', /does not answer as an inspector/],
  ])('is refused when it is another thing: %s', async (kind, reason) => {
    const port = await freePort();
    const target = await start(process.execPath, [
      `--inspect-port=${port}`,
      fixture('impostor.cjs'),
      `${port}`,
      kind,
    ]);
    const result = await findOpenInspector(target.pid);
    expect(result.ok ? '' : result.reason).toMatch(reason);
  });

  it('is not asked when nothing says that it is an inspector', async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end('{"Browser":"node.js/v20.20.2"}');
    });
    open.push(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    expect(await findOpenInspector(process.pid)).toMatchObject({ ok: false });
    expect(asked).toEqual([]);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
