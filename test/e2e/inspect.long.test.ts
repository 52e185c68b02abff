import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { freePort, remains, type Surroundings } from '../collectors/node/inspected.ts';
import { nodes } from '../environments.ts';
import { start } from '../platform/processes.ts';
import { startTarget } from '../targets/harness.ts';
import { parseReport } from './cli.ts';
import { Inspecting, profiled, reasons } from './inspecting.ts';

/* `trace attach --inspect` on every Node: what it gives, and that the target is as before. */

const here = new Inspecting();
afterAll(() => here.close());

describe.each(await nodes())('an inspector of Node $version, opened by trace', ({ path }) => {
  it('shows the function that blocks, the heap and its collections, and is closed again', async () => {
    const target = await here.target('plain', { node: path });
    const before = await remains(target);
    const run = here.attach(target.pid, '-d', '5');
    await profiled(target, run);
    await target.ask('work');
    // One that had to wait for a core is a note without a place.
    for (let i = 0; i < 20; i++) await target.ask('block');
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
    expect(here.journals(target.pid)).toEqual([]);
    // Listed first, done afterwards.
    expect(ended.stderr).toMatch(
      /--inspect changes pid \d+[^]*SIGUSR1 to pid[^]*close the inspector/,
    );
  });

  it.concurrent.each<Surroundings>(['process', 'noProcess', 'require', 'timers', 'frozen'])(
    'works and leaves nothing in a program whose surroundings were changed: %s',
    async (surroundings) => {
      const target = await here.target(surroundings, { node: path });
      const before = await remains(target);
      const run = here.attach(target.pid, '-d', '1.5');
      await profiled(target, run);
      await target.ask('work');
      expect(await target.ask('state')).toMatchObject({ errors: [] });
      const { metrics } = parseReport(await run.ended);
      expect(metrics['v8js.memory.heap.used']?.series.length).toBeGreaterThan(4);
      expect(await remains(target)).toEqual(before);
    },
  );

  it('is given up and closed where no module can be had', async () => {
    const target = await here.target('everything', { node: path });
    const before = await remains(target);
    const ended = await here.attach(target.pid, '-d', '1').ended;
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
    const target = await here.target('plain', { node: path, flags: [flag, '--no-warnings'] });
    const before = await remains(target);
    const { metrics } = parseReport(await here.attach(target.pid, '-d', '1').ended);
    expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    expect(await remains(target)).toEqual(before);
  });

  it('works in an ES module, and can be opened and closed many times', async () => {
    const target = here.keep(
      await startTarget('node-http', {
        runtime: path,
        runtimeFlags: [`--inspect-port=${await freePort()}`],
        seconds: 120,
      }),
    );
    for (let round = 0; round < 3; round++) {
      const { metrics } = parseReport(await here.attach(target.pid, '-d', '1').ended);
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
      const { metrics } = parseReport(await here.attach(pid, '-d', '1').ended);
      expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    }
    const told = once(child.stdout ?? child, 'data') as Promise<[Buffer]>;
    child.kill('SIGUSR2');
    expect(Number((await told)[0].toString())).toBeGreaterThan(10);
    expect(listeningSockets(pid)).toEqual([]);
  });
});
