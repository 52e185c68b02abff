import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { hideSymbols } from './hidden-symbols.ts';
import { judgeOpening } from '../../../collectors/node/refusal.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { detectRuntime } from '../../../src/platform/runtime.ts';
import { nodes } from '../../environments.ts';
import { start, until } from '../../platform/processes.ts';
import { canRun } from '../../programs.ts';

const folder = mkdtempSync(join(tmpdir(), 'tracewright-refusal-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SCRIPT = "process.stdin.resume();process.stdout.write('ready\\n')";

async function judge(
  command: string,
  args: readonly string[],
  options: {
    readonly force?: boolean;
    readonly ready?: (pid: number) => void | Promise<void>;
  } = {},
): Promise<ReturnType<typeof judgeOpening>> {
  const { pid } = await start(command, args);
  await options.ready?.(pid);
  const target = { kind: 'process', pid, startTicks: readStat(pid)?.startTicks ?? 0 } as const;
  return judgeOpening(target, detectRuntime(pid), { force: options.force ?? false });
}

describe.each(await nodes())(
  'Node $version may be asked for its inspector',
  ({ path, version }) => {
    const major = Number(version.split('.')[0]);
    const run = (flags: readonly string[], before = '', options = {}) =>
      judge(path, [...flags, '-e', `${before};${SCRIPT}`], options);

    it('where nothing speaks against it, on the port it would take', async () => {
      expect(await run([])).toEqual({ ok: true, port: 9229 });
      expect(await run(['--inspect-port=9339'])).toEqual({ ok: true, port: 9339 });
      expect(await run(['--inspect-port=0'])).toEqual({ ok: true, port: null });
      expect(await run([], "process.on('SIGUSR2', () => {})")).toMatchObject({ ok: true });
    });

    it('but not where the application handles the signal, whatever is forced', async () => {
      const handling = "process.on('SIGUSR1', () => {})";
      for (const force of [false, true]) {
        const refusal = await run([], handling, { force });
        expect(refusal).toMatchObject({ ok: false });
        expect(refusal.ok ? '' : refusal.reason).toMatch(/the application handles SIGUSR1 itself/);
      }
    });

    it('but not where it would die of it', async () => {
      const removed = "process.on('SIGUSR1', () => {});process.removeAllListeners('SIGUSR1')";
      expect(await run([], removed)).toMatchObject({
        ok: false,
        reason: expect.stringContaining('does not catch the signal') as string,
      });
      const permission = major < 22 ? '--experimental-permission' : '--permission';
      const flags = major < 22 ? [permission] : [permission, '--disable-sigusr1'];
      for (const flag of flags) {
        expect(await run([flag]), flag).toMatchObject({
          ok: false,
          reason: expect.stringContaining(`was started with ${flag}`) as string,
        });
      }
    });

    it('but not where its inspector would be seen by others, or not be found', async () => {
      const reasons = [];
      for (const flag of ['--inspect-port=0.0.0.0:9339', '--inspect-publish-uid=stderr']) {
        const refusal = await run([flag]);
        reasons.push(refusal.ok ? 'ok' : refusal.reason);
      }
      expect(reasons).toEqual([
        expect.stringContaining('would listen on 0.0.0.0'),
        expect.stringContaining('could be opened but not found'),
      ]);
    });

    it('but not while somebody else has its port, who is named', async () => {
      const server = createServer();
      onTestFinished(() => void server.close());
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const refusal = await run([`--inspect-port=${port}`]);
      expect(refusal.ok ? '' : refusal.reason).toBe(
        `port ${port}, on which it would open its inspector, is taken by pid ${process.pid} (${readStat(process.pid)?.comm ?? ''})`,
      );
    });

    it.skipIf(!canRun('prlimit', '--version'))(
      'but not with fewer than ten descriptors left, which would end it, whatever is forced',
      async () => {
        const leave = (free: number) => (pid: number) => {
          const limit = readdirSync(`/proc/${pid}/fd`).length + free;
          execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`]);
        };
        expect(await run([], '', { ready: leave(20) })).toMatchObject({ ok: true });
        for (const free of [0, 3, 6, 9]) {
          const refusal = await run([], '', { ready: leave(free), force: free === 3 });
          expect(refusal.ok ? '' : refusal.reason).toMatch(
            /^it has \d of its \d+ descriptors left/,
          );
          expect(refusal.ok ? '' : refusal.remedy).toMatch(/^Allow it more: prlimit --pid \d+ /);
        }
      },
    );

    it('but not while it is stopped', async () => {
      const refusal = await run([], '', {
        ready: async (pid: number) => {
          process.kill(pid, 'SIGSTOP');
          await until(() => readStat(pid)?.state === 'T');
        },
      });
      expect(refusal).toMatchObject({
        ok: false,
        remedy: expect.stringMatching(/^Let it go on/) as string,
      });
    });

    it('but not in another network namespace, whose entry is printed', async () => {
      const flags = process.getuid?.() === 0 ? ['-n'] : ['-rn'];
      const refusal = await judge('unshare', [...flags, path, '-e', SCRIPT]);
      expect(refusal).toMatchObject({
        ok: false,
        reason: expect.stringContaining('another network namespace') as string,
        remedy: expect.stringMatching(/nsenter -t \d+ -n trace attach \d+ --inspect/) as string,
      });
    });

    it('where its handlers cannot be read only when that is forced', async () => {
      const stripped = join(folder, `node-${version}`);
      copyFileSync(path, stripped);
      hideSymbols(stripped);
      const refusal = await judge(stripped, ['-e', SCRIPT]);
      expect(refusal).toMatchObject({
        ok: false,
        reason: expect.stringContaining('cannot be read') as string,
        remedy: expect.stringContaining('--inspect=force') as string,
      });
      expect(await judge(stripped, ['-e', SCRIPT], { force: true })).toMatchObject({ ok: true });
    });
  },
);

describe('what is not Node', () => {
  it.each([
    ['python', 'does not run Node (python)'],
    ['bun', 'runs Bun'],
    ['deno', 'runs Deno'],
  ] as const)('is never asked: %s', (name, reason) => {
    const runtime = { ...detectRuntime(process.pid), name };
    const target = { kind: 'process', pid: process.pid, startTicks: 0 } as const;
    expect(judgeOpening(target, runtime, { force: true })).toMatchObject({
      ok: false,
      reason: expect.stringContaining(reason) as string,
    });
  });

  it('is not asked either when it is too old', () => {
    const runtime = { ...detectRuntime(process.pid), version: '18.20.4' };
    const target = { kind: 'process', pid: process.pid, startTicks: 0 } as const;
    expect(judgeOpening(target, runtime, { force: true })).toMatchObject({ ok: false });
  });
});
