import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findOpenInspector } from '../../collectors/node/inspector.ts';
import { CdpConnection } from '../../src/platform/cdp.ts';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { freePort, remains } from '../collectors/node/inspected.ts';
import { killAt } from '../collectors/node/kills.ts';
import { start } from '../platform/processes.ts';
import { canRun } from '../programs.ts';
import { startTarget } from '../targets/harness.ts';
import { parseReport, runCli } from './cli.ts';
import { attachArgs, Inspecting, profiled, reasons } from './inspecting.ts';

/* `trace attach --inspect` when something comes between: other clients, other traces, signals, a target that does not answer. */

const here = new Inspecting();
afterAll(() => here.close());

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
    const refused = parseReport(await here.attach(pid, '-d', '1').ended);
    const [remedy = ''] = refused.collectors.flatMap(({ remedy: one }) => one ?? []);
    expect(remedy).toBe(`Run trace inside it: nsenter -t ${pid} -n trace attach ${pid} --inspect`);
    const entered = await runCli(attachArgs(pid, '-d', '1'), {
      env: here.env,
      command: ['nsenter', '-t', String(pid), '-n', process.execPath],
    });
    expect(Object.keys(parseReport(entered).metrics)).toContain('v8js.memory.heap.used');
    expect(listeningSockets(pid)).toEqual([]);
    expect(here.journals(pid)).toEqual([]);
  });
});

describe('an inspector that trace did not open', () => {
  it('is used and left open', async () => {
    const target = await here.target('plain', { flags: ['--inspect=0'] });
    const [before, found] = [await remains(target), await findOpenInspector(target.pid)];
    const { metrics } = parseReport(await here.attach(target.pid, '-d', '1').ended);
    expect(Object.keys(metrics)).toContain('v8js.memory.heap.used');
    expect(await findOpenInspector(target.pid)).toEqual(found);
    expect(await remains(target)).toEqual(before);
    expect(here.journals(target.pid)).toEqual([]);
  });
});

describe('a process that is killed while it is watched', () => {
  it('has told the functions that blocked until then', async () => {
    const target = await here.target();
    const run = here.attach(target.pid, '-d', '30');
    await profiled(target, run);
    // A profile ends, and is sent, a second after somebody began to wait for it: the kill comes some of them later.
    for (const from = Date.now(); Date.now() - from < 4_000;) await target.ask('block');
    target.child.kill('SIGKILL');
    const { findings, overhead } = parseReport(await run.ended);
    const found = findings.find(({ where }) => where[0]?.function === 'blockingHere');
    expect(found).toMatchObject({ kind: 'loop-blocked', confidence: 'confirmed' });
    // The first start of V8's profiler is all that may take long.
    expect(overhead?.target_paused_s).toBeLessThan(0.5);
  });
});

// Mostly waiting, each with a target and a port of its own.
describe.concurrent('an inspection', () => {
  it('ends with Ctrl-C as with its time', async () => {
    const target = await here.target();
    const before = await remains(target);
    const run = here.attach(target.pid, '-d', '60');
    await profiled(target, run);
    run.child.kill('SIGINT');
    expect((await run.ended).code).toBe(130);
    expect(await remains(target)).toEqual(before);
    expect(here.journals(target.pid)).toEqual([]);
  });

  it('leaves the inspector to a debugger that came meanwhile, and cleanup closes it when that has gone', async () => {
    const target = await here.target();
    const before = await remains(target);
    const run = here.attach(target.pid, '-d', '2');
    await profiled(target, run);
    const found = await findOpenInspector(target.pid);
    if (!found.ok) throw new Error(found.reason);
    const debug = await CdpConnection.connect(found.inspector.url);
    const ended = await run.ended;
    expect(ended.stderr).toContain('somebody else is connected to the inspector');
    expect(debug.isOpen).toBe(true);
    const kept = await runCli(['cleanup', String(target.pid), '--json'], { env: here.env });
    expect(kept.code).toBe(1);
    expect(JSON.parse(kept.stdout)).toMatchObject({ processes: [{ outcome: 'left' }] });
    expect(debug.isOpen).toBe(true);
    await debug.close();
    // The guardian, which is still trying, may be first.
    const cleaned = await runCli(['cleanup', String(target.pid)], { env: here.env });
    expect(cleaned.code).toBe(0);
    expect(await remains(target)).toEqual(before);
    expect(here.journals(target.pid)).toEqual([]);
  });

  it('does not hold the loop of the target when trace is stopped, and goes on afterwards', async () => {
    const target = await here.target();
    const before = await remains(target);
    const run = here.attach(target.pid, '-d', '4');
    await profiled(target, run);
    run.child.kill('SIGSTOP');
    // Longer than the lease, by the clock of the target's own loop.
    const from = Date.now();
    while (Date.now() - from < 3_000) {
      await target.ask('state');
      // Real time: the pace at which the target is asked.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    run.child.kill('SIGCONT');
    await run.ended;
    expect(await remains(target)).toEqual(before);
  });

  it('of a target that blocks when it should be left says so, and is over when that turns again', async () => {
    const target = await here.target();
    const before = await remains(target);
    const run = here.attach(target.pid, '-d', '1');
    await profiled(target, run);
    const held = target.ask('hold 9000');
    const ended = await run.ended;
    expect(ended.stderr).toContain('its inspector is still open: it closes when its loop turns');
    await held;
    while (JSON.stringify(await remains(target)) !== JSON.stringify(before))
      await new Promise((resolve) => setTimeout(resolve, 50));
  });

  it('begins with undoing what a trace that was killed with its guardian left', async () => {
    const folder = mkdtempSync(join(here.state, 'killed-'));
    const target = await here.target();
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
    const target = await here.target();
    const first = here.attach(target.pid, '-d', '5');
    await profiled(target, first);
    const second = await here.attach(target.pid, '-d', '1').ended;
    expect(reasons(second).join()).toMatch(/trace \d+ is inspecting it already/);
    first.child.kill('SIGINT');
    await first.ended;
    expect(listeningSockets(target.pid)).toEqual([]);
  });

  it('of two processes that want the same port is one after the other, and who has it is said', async () => {
    const flags = [`--inspect-port=${await freePort()}`];
    const [one, other] = [
      await here.target('plain', { flags }),
      await here.target('plain', { flags }),
    ];
    const first = here.attach(one.pid, '-d', '20');
    await profiled(one, first);
    const second = await here.attach(other.pid, '-d', '1').ended;
    expect(reasons(second).join()).toContain(`is taken by pid ${one.pid} (node)`);
    expect(other.errors()).toBe('');
    first.child.kill('SIGINT');
    await first.ended;
    const third = parseReport(await here.attach(other.pid, '-d', '1').ended);
    expect(Object.keys(third.metrics)).toContain('v8js.memory.heap.used');
  });

  it('is refused, and nothing is done, where its journal cannot be written', async () => {
    const target = await here.target();
    const ended = await runCli(attachArgs(target.pid, '-d', '1'), {
      env: { XDG_STATE_HOME: '/dev/null' },
    });
    expect(reasons(ended).join()).toContain('the undo journal cannot be written');
    expect(target.errors()).toBe('');
  });

  it('is refused for what is not Node, which is watched all the same', async () => {
    const target = here.keep(await startTarget('asyncio', { seconds: 60 }));
    const ended = await here.attach(target.pid, '-d', '1').ended;
    expect(reasons(ended)).toContain('--inspect: it does not run Node (python)');
    expect(ended.code).toBe(0);
  });
});
