import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { hideSymbols } from '../collectors/node/hidden-symbols.ts';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { freePort, remains } from '../collectors/node/inspected.ts';
import { start } from '../platform/processes.ts';
import { canRun } from '../programs.ts';
import { parseReport, runCli } from './cli.ts';
import { Inspecting, reasons } from './inspecting.ts';

/*
 * `--inspect` on a Node process that may open hardly any more files, or that ends when it is asked.
 */

const here = new Inspecting();
const folder = mkdtempSync(join(tmpdir(), 'tracewright-room-'));
afterAll(async () => {
  await here.close();
  rmSync(folder, { recursive: true, force: true });
});

/** So many descriptors more than it has. */
function leave(pid: number, free: number): void {
  const limit = readdirSync(`/proc/${pid}/fd`).length + free;
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit}:`]);
}

it.skipIf(!canRun('prlimit', '--version')).each([0, 3, 6, 9])(
  'with %i free descriptors it is left alone, and lives',
  async (free) => {
    const target = await here.target();
    const before = await remains(target);
    leave(target.pid, free);
    const run = await here.attach(target.pid, '-d', '1').ended;
    expect(run.signal).toBeNull();
    // 6: the machine stood still itself.
    expect([0, 6]).toContain(run.code);
    expect(reasons(run)).toContainEqual(
      expect.stringMatching(/^it has \d of its \d+ descriptors left/),
    );
    expect(run.stderr).toContain('Allow it more: prlimit --pid');
    expect(await remains(target)).toEqual(before);
    expect(target.child.exitCode).toBeNull();
    expect(here.journals(target.pid)).toEqual([]);
    const heap = await runCli(['heap', String(target.pid), '--inspect'], { env: here.env });
    expect(heap.code).toBe(5);
    expect(heap.stderr).toMatch(/it has \d of its \d+ descriptors left/);
    expect(await remains(target)).toEqual(before);
  },
);

it.skipIf(!canRun('prlimit', '--version'))(
  'with ten it is inspected, and its inspector closed again',
  async () => {
    const target = await here.target();
    const before = await remains(target);
    leave(target.pid, 11);
    const { metrics } = parseReport(await here.attach(target.pid, '-d', '2').ended);
    expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    expect(await remains(target)).toEqual(before);
    expect(listeningSockets(target.pid)).toEqual([]);
    expect(here.journals(target.pid)).toEqual([]);
  },
);

it('that ends when it is asked is said to have been ended by trace', async () => {
  // Its handler cannot be seen without symbols: who forces trace to go on may end it.
  const program = join(folder, 'node');
  copyFileSync(process.execPath, program);
  hideSymbols(program);
  const script =
    "process.on('SIGUSR1', () => process.exit(3));process.stdin.resume();console.log(1)";
  const started = await start(program, [`--inspect-port=${await freePort()}`, '-e', script]);
  const run = await runCli(
    ['attach', String(started.pid), '--inspect=force', '-d', '1', '--no-recording'],
    { env: here.env },
  );
  expect(run.stderr).toContain('it ended when trace sent it SIGUSR1');
  expect(run.code).toBe(3);
  expect(here.journals(started.pid)).toEqual([]);
});
