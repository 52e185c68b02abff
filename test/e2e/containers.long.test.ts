import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { canRun } from '../programs.ts';
import { type Ended, parseReport, runCli } from './cli.ts';
import {
  APP,
  canContain,
  canContainUser,
  type Contained,
  RUNTIME,
  startContained,
} from './container.ts';

/*
 * Targets in namespaces of their own: another view of pids, files, users and the network. Without the right to make them (a container that
 * withholds it) the tests are left out by name.
 */

const started: Contained[] = [];
let asyncio: Contained;
let uvloop: Contained;
let node: Contained;
let chrooted: Contained;

beforeAll(async () => {
  const start = async (...args: Parameters<typeof startContained>): Promise<Contained> => {
    const contained = await startContained(...args);
    started.push(contained);
    return contained;
  };
  if (canContainUser) {
    const options = { isolated: true, root: 'pivot' } as const;
    [asyncio, uvloop, node] = await Promise.all([
      start(['block.py', 'asyncio'], options),
      start(['block.py', 'uvloop'], options),
      start(['block.js'], options),
    ]);
  }
  if (canContain)
    chrooted = await start(['block.py', 'asyncio'], { isolated: false, root: 'chroot' });
});
afterAll(() => Promise.all(started.map((contained) => contained.stop())));

const attach = (pid: number, command?: readonly string[]): Promise<Ended> =>
  runCli(
    ['attach', String(pid), '-d', '2', '--json', '--no-recording'],
    command === undefined ? {} : { command },
  );

function blockOf(run: Ended) {
  const report = parseReport(run);
  // On a full machine some turns are starved as well.
  const block = report.findings.find(
    ({ kind, mechanism }) => kind === 'loop-blocked' && mechanism !== 'starved',
  );
  return { report, block };
}

describe('a target in other pid, mount, user and network namespaces', () => {
  it.skipIf(!canContainUser)(
    'is seen as outside, in its own names: asyncio and uvloop (needs user namespaces)',
    async () => {
      const targets = [asyncio, uvloop];
      const runs = await Promise.all(targets.map(({ pid }) => attach(pid)));
      for (const [i, { pid, said }] of targets.entries()) {
        expect(said.pid).toBe(1);
        const { report, block } = blockOf(runs[i] as Ended);
        expect(report.targets[0]).toMatchObject({ pid, namespace_pid: 1, runtime: 'python' });
        expect(report.targets[0]?.container).not.toBeNull();
        expect(report.collectors.filter(({ available }) => !available)).toEqual([]);
        expect(block).toMatchObject({ confidence: 'confirmed', pid });
        expect(block?.where[0]).toMatchObject({
          function: 'hold_loop',
          file: `${APP}/block.py`,
          line: expect.any(Number),
        });
        // Sockets are of its own network namespace.
        expect(listeningSockets(pid).map(({ port }) => port)).toEqual([said.port]);
        const listening = report.metrics['tracewright.process.sockets']?.series.find(
          ({ attributes }) => attributes['network.connection.state'] === 'listen',
        );
        expect(listening?.last).toBe(1);
      }
      // Their files are not here under these names.
      expect([existsSync(APP), existsSync(RUNTIME)]).toEqual([false, false]);
    },
  );

  // Both at once: each is idle most of the time.
  it.skipIf(!canContainUser).concurrent(
    "is seen as outside, in its own names: Node's loop (needs user namespaces)",
    async () => {
      const { report, block } = blockOf(await attach(node.pid));
      const { pid, said } = node;
      expect(report.targets[0]).toMatchObject({ pid, namespace_pid: said.pid, runtime: 'node' });
      expect(block?.pid).toBe(pid);
      // An inspector would be in the other network: how to reach it is said.
      const stacks = report.collectors.find(({ name }) => name === 'stacks');
      expect(stacks).toMatchObject({
        available: false,
        reason: expect.stringContaining('network'),
      });
      expect(stacks?.remedy).toContain(`nsenter -t ${pid} -n`);
    },
  );

  it.skipIf(!canContain).concurrent(
    'is read where its root is a folder of a larger one: chroot (needs root or user namespaces)',
    async () => {
      const { block } = blockOf(await attach(chrooted.pid));
      expect(block?.where[0]).toMatchObject({ function: 'hold_loop', file: `${APP}/block.py` });
    },
  );

  it.skipIf(!canContainUser)(
    'stands in the list with both pids (needs user namespaces)',
    async () => {
      const [json, table] = await Promise.all([runCli(['attach', '--json']), runCli(['attach'])]);
      const { candidates } = JSON.parse(json.stdout) as { candidates: readonly { pid: number }[] };
      expect(candidates.find((one) => one.pid === asyncio.pid)).toMatchObject({
        namespace_pid: 1,
        container: expect.any(String),
      });
      expect(table.stdout).toMatch(new RegExp(`${asyncio.pid}  .*  pid 1( in \\w+)?  `));
    },
  );

  it.skipIf(!canContainUser || !canRun('nsenter', '--version'))(
    'is seen from within its pid namespace, by a trace with files of its own: docker run --pid=container:…, kubectl debug --target=… (needs user namespaces)',
    async () => {
      const enter = ['-t', String(asyncio.pid), '--user', '--preserve-credentials', '--pid'];
      const run = await attach(1, [
        'nsenter',
        ...enter,
        'unshare',
        '--mount',
        '--mount-proc',
        process.execPath,
      ]);
      const { report, block } = blockOf(run);
      expect(report.targets[0]).toMatchObject({ pid: 1, namespace_pid: null, container: null });
      expect(block?.where[0]).toMatchObject({ function: 'hold_loop', file: `${APP}/block.py` });
    },
  );
});
