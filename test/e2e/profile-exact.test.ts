import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { interpreters } from '../environments.ts';
import { canRun } from '../programs.ts';
import { startReady } from '../targets/harness.ts';
import { type Ended, runCli, startCli } from './cli.ts';

/*
 * `trace profile --exact` in a mount namespace that has the kernel's tracing, as root: a thread that computes, one that sleeps, and one that
 * has to share its core. The instances are the machine's, so they are seen through the same namespace.
 */

const MOUNT = 'mount -t tracefs nodev /sys/kernel/tracing';
const isPossible = process.getuid?.() === 0 && canRun('unshare', '--mount', 'sh', '-c', MOUNT);
const PROGRAM = join(import.meta.dirname, '..', 'targets', 'python', 'starved.py');
const SECONDS = 3;

interface Document {
  readonly mode: string;
  readonly exact: {
    readonly duration_s: number;
    readonly threads: readonly {
      readonly name: string;
      readonly running_s: number;
      readonly waiting_s: number;
      readonly asleep_s: number;
      readonly uninterruptible_s: number;
      readonly switches: number;
    }[];
    readonly places: readonly { function: string; running_s: number; asleep_s: number }[];
    readonly lost_events: number;
    readonly unread_events: number;
  } | null;
}

/** The shell that waits for trace's end, by the instance in its arguments. */
function isGuardian(pid: string, instance: string): boolean {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    return line.startsWith('/bin/sh\0') && line.includes(instance);
  } catch {
    return false; // no process, or gone
  }
}

describe('trace profile --exact', () => {
  it('is refused with what would help, where the kernel does not answer', async () => {
    const python = interpreters()[0]?.path ?? 'python3';
    const target = await startReady(python, [PROGRAM, 'alone']);
    onTestFinished(() => target.stop());
    const mode = await runCli(['profile', String(target.pid), '--exact', '-m', 'gil']);
    expect(mode.code).toBe(2);
    if (isPossible) return; // Whether it is mounted here is the machine's affair.
    const { code, stderr } = await runCli(['profile', String(target.pid), '--exact', '-d', '1']);
    expect([4, 5]).toContain(code);
    expect(stderr).toMatch(/sudo|mount|container/);
  });
});

describe.skipIf(!isPossible)('trace profile --exact, as root', () => {
  const state = mkdtempSync(join(tmpdir(), 'tracewright-exact-'));
  const env = { XDG_STATE_HOME: state };
  let holder: ReturnType<typeof spawn>;
  let command: readonly string[];

  beforeAll(async () => {
    holder = spawn('unshare', ['--mount', 'sh', '-c', `${MOUNT} && echo ready && exec cat`], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => holder.stdout?.once('data', resolve));
    command = ['nsenter', '--mount', '--target', String(holder.pid), '--', process.execPath];
  });
  afterAll(() => {
    holder.stdin?.end();
    rmSync(state, { recursive: true, force: true });
  });

  const ours = (): readonly string[] =>
    readdirSync(`/proc/${holder.pid}/root/sys/kernel/tracing/instances`).filter((name) =>
      name.startsWith('tracewright-'),
    );
  const exactOf = ({ stdout, stderr }: Ended): NonNullable<Document['exact']> => {
    const { exact } = JSON.parse(stdout) as Document;
    if (exact === null) throw new Error(stderr);
    return exact;
  };

  it('says how long each thread ran, waited for a core and slept, and where', async () => {
    const python = interpreters()[0]?.path ?? 'python3';
    const target = await startReady(python, [PROGRAM]);
    onTestFinished(() => target.stop());
    const args = ['profile', String(target.pid), '--exact', '-d', String(SECONDS), '--json'];
    const exact = exactOf(await runCli(args, { command, env }));
    expect([exact.lost_events, exact.unread_events]).toEqual([0, 0]);
    for (const one of exact.threads) {
      const sum = one.running_s + one.waiting_s + one.asleep_s + one.uninterruptible_s;
      expect(Math.abs(sum - exact.duration_s), one.name).toBeLessThan(0.01 * exact.duration_s);
    }
    const main = exact.threads.find(({ name }) => name === 'main');
    // A child has as much right to the core: at most half of it, and nothing slept.
    expect(main?.running_s).toBeGreaterThan(0);
    expect(main?.running_s).toBeLessThan(0.7 * exact.duration_s);
    expect(main?.waiting_s).toBeGreaterThan(0.3 * exact.duration_s);
    expect(main?.asleep_s).toBeLessThan(0.1 * exact.duration_s);
    const sleeper = exact.threads.find(({ name }) => name === 'sleeper');
    expect(sleeper?.asleep_s).toBeGreaterThan(0.99 * exact.duration_s);
    expect(sleeper?.waiting_s).toBeLessThan(0.01 * exact.duration_s);
    const at = (name: string) => exact.places.find((place) => place.function === name);
    expect(at('compute_on')?.running_s).toBeGreaterThan(0.5 * (main?.running_s ?? 0));
    expect(at('compute_on')?.asleep_s).toBeLessThan(0.1 * exact.duration_s);
    expect(at('sleep_long')?.asleep_s).toBeGreaterThan(0.5 * exact.duration_s);
    expect(ours()).toEqual([]);
  });

  it('leaves nothing when it is killed, and cleanup undoes what its guardian could not', async () => {
    const python = interpreters()[0]?.path ?? 'python3';
    const target = await startReady(python, [PROGRAM, 'alone']);
    onTestFinished(() => target.stop());
    const args = ['profile', String(target.pid), '--exact', '-d', '60'];
    const killed = startCli(args, { command, env });
    await expect.poll(ours, { timeout: 20_000 }).toHaveLength(1);
    killed.child.kill('SIGKILL');
    await killed.ended;
    await expect.poll(ours, { timeout: 5000 }).toEqual([]);
    const after = await runCli(['cleanup'], { command, env });
    expect([after.code, after.stdout]).toEqual([0, expect.stringContaining('gone already')]);

    const again = startCli(args, { command, env });
    await expect.poll(ours, { timeout: 20_000 }).toHaveLength(1);
    const guardians = readdirSync('/proc').filter((pid) => isGuardian(pid, ours()[0] ?? ''));
    for (const pid of guardians) process.kill(Number(pid), 'SIGKILL');
    again.child.kill('SIGKILL');
    await again.ended;
    const dry = await runCli(['cleanup', '--dry-run'], { command, env });
    expect(dry.code).toBe(1);
    expect(ours()).toHaveLength(1);
    const undone = await runCli(['cleanup'], { command, env });
    expect([undone.code, undone.stdout]).toEqual([0, expect.stringContaining('is removed')]);
    expect(ours()).toEqual([]);
  });
});
