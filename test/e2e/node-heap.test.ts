import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { nodes } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { runCli } from './cli.ts';

const GROWING = join(import.meta.dirname, '../fixtures/node-heap/growing.cjs');
const LIVE = join(import.meta.dirname, '../fixtures/node-heap/live.cjs');
const running: Running[] = [];

afterEach(async () => {
  for (const target of running.splice(0)) await target.stop();
});

async function growing(node: string, ...args: readonly string[]): Promise<Running> {
  const target = await startReady(node, ['--inspect-port=0', GROWING, ...args]);
  running.push(target);
  return target;
}

const heap = (pid: number, ...more: readonly string[]): ReturnType<typeof runCli> =>
  // However long a busy machine takes to collect.
  runCli(['heap', String(pid), '--max-pause', '60s', ...more], { limitS: 90 });

describe.each(await nodes())('trace heap of Node $version', ({ path }) => {
  it('names the place that allocates what stays, none in a twin that is full, and leaves no inspector', async () => {
    const [leak, twin] = [await growing(path), await growing(path, 'bounded')];
    const args = ['--interval', '3s', '--inspect', '--json'];
    const [found, healthy] = await Promise.all([heap(leak.pid, ...args), heap(twin.pid, ...args)]);
    expect([found.code, healthy.code], found.stderr + healthy.stderr).toEqual([0, 0]);
    expect(JSON.parse(found.stdout)).toMatchObject({
      command: 'heap',
      verdict: { kind: 'site', site: { file: GROWING, line: 7 } },
      left_behind: null,
    });
    expect(JSON.parse(healthy.stdout)).toMatchObject({ verdict: { kind: 'none', site: null } });
    expect(listeningSockets(leak.pid)).toEqual([]);
  });
});

describe.each(await nodes())('trace heap --live-objects of Node $version', ({ path }) => {
  it('names the constructor that gains, what is waited for and many listeners; none of these in a twin', async () => {
    const leak = await startReady(path, ['--inspect-port=0', LIVE]);
    const twin = await startReady(path, ['--inspect-port=0', LIVE, 'bounded']);
    running.push(leak, twin);
    const args = ['--inspect', '--live-objects', '--interval', '2s'];
    const found = await heap(leak.pid, ...args);
    const healthy = await heap(twin.pid, ...args);
    expect([found.code, healthy.code], found.stderr + healthy.stderr).toEqual([0, 0]);
    expect(found.stderr).toMatch(/stops it for about \d.* each time/);
    expect(found.stdout).toMatch(/^Session gained [\d,]+ objects that stay/);
    expect(found.stdout).toContain('Pending promises that something waits for: 300 (+0)');
    expect(found.stdout).toContain('  120 (+0)  tick of Bus');
    expect(healthy.stdout).not.toContain('Session');
    expect(healthy.stdout).toContain('Pending promises that something waits for: 0 (+0)');
    expect(healthy.stdout).toContain('No event has more than 10 listeners');
    expect(listeningSockets(leak.pid)).toEqual([]);
  });
});

describe('trace heap', () => {
  it('writes a snapshot where it was asked to, after it has said how long that stops', async () => {
    const { pid } = await growing(process.execPath, 'bounded');
    const file = join(mkdtempSync(join(tmpdir(), 'tracewright-snapshot-')), 'a.heapsnapshot');
    try {
      const args = ['heap', String(pid), '--inspect', '--heap-snapshot', file];
      const run = await runCli(args, { limitS: 90 });
      expect(run.code, run.stderr).toBe(0);
      expect(run.stderr).toMatch(/write down its whole heap: stops it for about \d/);
      expect(run.stderr).toMatch(
        /\d MiB are in V8's heap: to write them down stops it for about \d/,
      );
      expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveProperty('snapshot.meta');
      const again = await runCli(args, { limitS: 90 });
      expect(again.code).toBe(2);
      expect(again.stderr).toContain('cannot be written (EEXIST)');
      expect(listeningSockets(pid)).toEqual([]);
    } finally {
      rmSync(dirname(file), { recursive: true, force: true });
    }
  });

  it('does nothing to a Node process where it was not asked to, and says what would do', async () => {
    const { pid } = await growing(process.execPath);
    const closed = await heap(pid);
    expect(closed.code).toBe(5);
    expect(closed.stderr).toContain('--inspect');
    const short = await runCli(['heap', String(pid), '--inspect', '--max-pause', '1ms']);
    expect(short.code).toBe(5);
    expect(short.stderr).toContain('--max-pause');
    const file = join(tmpdir(), `tracewright-refused-${pid}.heapsnapshot`);
    const args = ['heap', String(pid), '--inspect', '--heap-snapshot', file];
    const tooLong = await runCli([...args, '--max-pause', '50ms']);
    expect(tooLong.code).toBe(5);
    expect(tooLong.stderr).toContain('more than 50 ms is not allowed');
    expect(existsSync(file)).toBe(false);
    expect(listeningSockets(pid)).toEqual([]);
  });
});
