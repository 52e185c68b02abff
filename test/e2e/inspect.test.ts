import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findOpenInspector } from '../../collectors/node/inspector.ts';
import { CdpConnection } from '../../src/platform/cdp.ts';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { journalFolder } from '../../src/platform/undo-journal.ts';
import {
  freePort,
  type Inspected,
  isBeingProfiled,
  remains,
  startInspected,
  type Surroundings,
} from '../collectors/node/inspected.ts';
import { killAt } from '../collectors/node/kills.ts';
import { nodes } from '../environments.ts';
import { start } from '../platform/processes.ts';
import { canRun } from '../programs.ts';
import { startTarget } from '../targets/harness.ts';
import { type CliRun, type Ended, parseReport, runCli, startCli } from './cli.ts';

/* `trace attach --inspect`: what it gives, and that the target is as before. */

const state = mkdtempSync(join(tmpdir(), 'tracewright-inspect-'));
const env = { XDG_STATE_HOME: state };
afterAll(() => rmSync(state, { recursive: true, force: true }));

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});

async function inspected(...args: Parameters<typeof startInspected>): Promise<Inspected> {
  const target = await startInspected(...args);
  stops.push(() => target.stop());
  return target;
}

const attachArgs = (pid: number, ...more: string[]): string[] => [
  'attach',
  String(pid),
  '--inspect',
  '--json',
  '--no-recording',
  ...more,
];

const inspect = (pid: number, ...more: string[]): CliRun =>
  startCli(attachArgs(pid, ...more), { env });

const reasons = (run: Ended): (string | null)[] =>
  parseReport(run).collectors.map(({ reason }) => reason);

const journals = (pid: number): string[] => {
  try {
    return readdirSync(journalFolder(env)).filter((name) => name.startsWith(`${pid}-`));
  } catch {
    return [];
  }
};

/** Resolves when V8's profiler runs in the target: from then on what it does is seen. */
async function profiled(target: Inspected, run: CliRun): Promise<void> {
  let isOver = false;
  void run.ended.then(() => (isOver = true));
  while (!isBeingProfiled(target.pid)) {
    if (isOver) throw new Error(`no profiler: ${(await run.ended).stderr}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe.each(await nodes())('an inspector of Node $version, opened by trace', ({ path }) => {
  it('shows the function that blocks, the heap and its collections, and is closed again', async () => {
    const target = await inspected('plain', { node: path });
    const before = await remains(target);
    const run = inspect(target.pid, '-d', '3');
    await profiled(target, run);
    await target.ask('work');
    await target.ask('block');
    const ended = await run.ended;
    const { findings, metrics, collectors } = parseReport(ended);
    expect(collectors).toMatchObject(
      ['process', 'event-loop', 'stacks', 'v8-heap'].map((name) => ({ name, available: true })),
    );
    expect(findings.flatMap(({ where }) => where.map((place) => place.function))).toContain(
      'blockingHere',
    );
    expect(Object.keys(metrics)).toEqual(
      expect.arrayContaining([
        'v8js.gc.duration',
        'v8js.memory.heap.limit',
        'v8js.memory.heap.space.available_size',
        'v8js.memory.heap.space.physical_size',
        'v8js.memory.heap.space.size',
        'v8js.memory.heap.used',
      ]),
    );
    expect(await remains(target)).toEqual(before);
    expect(journals(target.pid)).toEqual([]);
    // Listed first, done afterwards.
    expect(ended.stderr).toMatch(
      /--inspect changes pid \d+[^]*SIGUSR1 to pid[^]*close the inspector/,
    );
  });

  it.concurrent.each<Surroundings>(['process', 'noProcess', 'require', 'timers', 'frozen'])(
    'works and leaves nothing in a program whose surroundings were changed: %s',
    async (surroundings) => {
      const target = await inspected(surroundings, { node: path });
      const before = await remains(target);
      const run = inspect(target.pid, '-d', '1.5');
      await profiled(target, run);
      await target.ask('work');
      expect(await target.ask('state')).toMatchObject({ errors: [] });
      const { metrics } = parseReport(await run.ended);
      expect(metrics['v8js.memory.heap.used']?.series.length).toBeGreaterThan(4);
      expect(await remains(target)).toEqual(before);
    },
  );

  it('is given up and closed where no module can be had', async () => {
    const target = await inspected('everything', { node: path });
    const before = await remains(target);
    const ended = await inspect(target.pid, '-d', '1').ended;
    expect(reasons(ended)).toContain('it did not take our agent: its modules are not to be had');
    while (JSON.stringify(await remains(target)) !== JSON.stringify(before))
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect(ended.code).toBe(0);
  });

  it.concurrent.each([
    ['--frozen-intrinsics'],
    ['--inspect-port=0'],
    ['--disallow-code-generation-from-strings'],
  ])('works in a program started with %s', async (flag) => {
    const target = await inspected('plain', { node: path, flags: [flag, '--no-warnings'] });
    const before = await remains(target);
    const { metrics } = parseReport(await inspect(target.pid, '-d', '1').ended);
    expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    expect(await remains(target)).toEqual(before);
  });

  it('works in an ES module, and can be opened and closed many times', async () => {
    const target = await startTarget('node-http', {
      runtime: path,
      runtimeFlags: [`--inspect-port=${await freePort()}`],
      seconds: 120,
    });
    stops.push(() => target.stop());
    for (let round = 0; round < 3; round++) {
      const { metrics } = parseReport(await inspect(target.pid, '-d', '1').ended);
      expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
      expect(listeningSockets(target.pid).map(({ port }) => port)).toEqual([target.port]);
    }
  });
});

describe.each(await nodes())('worker threads of Node $version that come and go', ({ path }) => {
  it('are left alone, and live through an inspection of their process', async () => {
    const { pid, child } = await start(path, [
      `--inspect-port=${await freePort()}`,
      join(import.meta.dirname, '..', 'collectors', 'node', 'fixtures', 'coming-and-going.mjs'),
    ]);
    for (let round = 0; round < 3; round++) {
      const { metrics } = parseReport(await inspect(pid, '-d', '1').ended);
      expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    }
    const told = once(child.stdout ?? child, 'data') as Promise<[Buffer]>;
    child.kill('SIGUSR2');
    expect(Number((await told)[0].toString())).toBeGreaterThan(10);
    expect(listeningSockets(pid)).toEqual([]);
  });
});

describe('a process in another network namespace', () => {
  const canEnter =
    canRun('unshare', '-n', 'ip', 'link', 'set', 'lo', 'up') && canRun('nsenter', '--version');

  it.skipIf(!canEnter)('is inspected by the command that the refusal prints', async () => {
    const script = `process.stdin.resume();process.stdout.write('ready\\n')`;
    const { pid } = await start('unshare', [
      '-n',
      'sh',
      '-c',
      `ip link set lo up; exec "$0" -e "${script}"`,
      process.execPath,
    ]);
    const refused = parseReport(await inspect(pid, '-d', '1').ended);
    const [remedy = ''] = refused.collectors.flatMap(({ remedy: one }) => one ?? []);
    expect(remedy).toBe(`Run trace inside it: nsenter -t ${pid} -n trace attach ${pid} --inspect`);
    const entered = await runCli(attachArgs(pid, '-d', '1'), {
      env,
      command: ['nsenter', '-t', String(pid), '-n', process.execPath],
    });
    expect(Object.keys(parseReport(entered).metrics)).toContain('v8js.memory.heap.used');
    expect(listeningSockets(pid)).toEqual([]);
    expect(journals(pid)).toEqual([]);
  });
});

describe('an inspector that trace did not open', () => {
  it('is used and left open', async () => {
    const target = await inspected('plain', { flags: ['--inspect=0'] });
    const [before, found] = [await remains(target), await findOpenInspector(target.pid)];
    const { metrics } = parseReport(await inspect(target.pid, '-d', '1').ended);
    expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    expect(await findOpenInspector(target.pid)).toEqual(found);
    expect(await remains(target)).toEqual(before);
    expect(journals(target.pid)).toEqual([]);
  });
});

describe('an inspection', () => {
  it('ends with Ctrl-C as with its time', async () => {
    const target = await inspected();
    const before = await remains(target);
    const run = inspect(target.pid, '-d', '60');
    await profiled(target, run);
    run.child.kill('SIGINT');
    expect((await run.ended).code).toBe(130);
    expect(await remains(target)).toEqual(before);
    expect(journals(target.pid)).toEqual([]);
  });

  it('leaves the inspector to a debugger that came meanwhile, and cleanup closes it when that has gone', async () => {
    const target = await inspected();
    const before = await remains(target);
    const run = inspect(target.pid, '-d', '2');
    await profiled(target, run);
    const found = await findOpenInspector(target.pid);
    if (!found.ok) throw new Error(found.reason);
    const debug = await CdpConnection.connect(found.inspector.url);
    const ended = await run.ended;
    expect(ended.stderr).toContain('somebody else is connected to the inspector');
    expect(debug.isOpen).toBe(true);
    const kept = await runCli(['cleanup', String(target.pid), '--json'], { env });
    expect(kept.code).toBe(1);
    expect(JSON.parse(kept.stdout)).toMatchObject({ processes: [{ outcome: 'left' }] });
    expect(debug.isOpen).toBe(true);
    await debug.close();
    // The guardian, which is still trying, may be first.
    const cleaned = await runCli(['cleanup', String(target.pid)], { env });
    expect(cleaned.code).toBe(0);
    expect(await remains(target)).toEqual(before);
    expect(journals(target.pid)).toEqual([]);
  });

  it('does not hold the loop of the target when trace is stopped, and goes on afterwards', async () => {
    const target = await inspected();
    const before = await remains(target);
    const run = inspect(target.pid, '-d', '4');
    await profiled(target, run);
    run.child.kill('SIGSTOP');
    // Longer than the lease, by the clock of the target's own loop.
    const from = Date.now();
    while (Date.now() - from < 3_000) {
      await target.ask('state');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    run.child.kill('SIGCONT');
    await run.ended;
    expect(await remains(target)).toEqual(before);
  });

  it('of a target that blocks when it should be left says so, and is over when that turns again', async () => {
    const target = await inspected();
    const before = await remains(target);
    const run = inspect(target.pid, '-d', '1');
    await profiled(target, run);
    const held = target.ask('hold 9000');
    const ended = await run.ended;
    expect(ended.stderr).toContain('its inspector is still open: it closes when its loop turns');
    await held;
    while (JSON.stringify(await remains(target)) !== JSON.stringify(before))
      await new Promise((resolve) => setTimeout(resolve, 50));
  });

  it('begins with undoing what a trace that was killed with its guardian left', async () => {
    const folder = mkdtempSync(join(state, 'killed-'));
    const target = await inspected();
    const before = await remains(target);
    await killAt(target, 'open', { folder, guardian: true, cleanup: false });
    const [kept = ''] = readdirSync(folder);
    const { metrics } = parseReport(
      await runCli(attachArgs(target.pid, '-d', '1'), {
        env: { XDG_STATE_HOME: join(folder, kept) },
      }),
    );
    expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    expect(await remains(target)).toEqual(before);
  });

  it('is one at a time for a process', async () => {
    const target = await inspected();
    const first = inspect(target.pid, '-d', '5');
    await profiled(target, first);
    const second = await inspect(target.pid, '-d', '1').ended;
    expect(reasons(second).join()).toMatch(/trace \d+ is inspecting it already/);
    first.child.kill('SIGINT');
    await first.ended;
    expect(listeningSockets(target.pid)).toEqual([]);
  });

  it('of two processes that want the same port is one after the other, and who has it is said', async () => {
    const flags = [`--inspect-port=${await freePort()}`];
    const [one, other] = [await inspected('plain', { flags }), await inspected('plain', { flags })];
    const first = inspect(one.pid, '-d', '20');
    await profiled(one, first);
    const second = await inspect(other.pid, '-d', '1').ended;
    expect(reasons(second).join()).toContain(`is taken by pid ${one.pid} (node)`);
    expect(other.errors()).toBe('');
    first.child.kill('SIGINT');
    await first.ended;
    const third = parseReport(await inspect(other.pid, '-d', '1').ended);
    expect(Object.keys(third.metrics)).toContain('v8js.memory.heap.used');
  });

  it('is refused, and nothing is done, where its journal cannot be written', async () => {
    const target = await inspected();
    const ended = await runCli(attachArgs(target.pid, '-d', '1'), {
      env: { XDG_STATE_HOME: '/dev/null' },
    });
    expect(reasons(ended).join()).toContain('the undo journal cannot be written');
    expect(target.errors()).toBe('');
  });

  it('is refused for what is not Node, which is watched all the same', async () => {
    const target = await startTarget('asyncio', { seconds: 60 });
    stops.push(() => target.stop());
    const ended = await inspect(target.pid, '-d', '1').ended;
    expect(reasons(ended)).toContain('--inspect: it does not run Node (python)');
    expect(ended.code).toBe(0);
  });
});
