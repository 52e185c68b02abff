import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { type Ended, runCli, startCli } from './cli.ts';

const RACES = join(import.meta.dirname, '..', 'repro', 'races');
const python = interpreters()[0] ?? { path: 'python3', version: '' };
/** A line on stderr after this many schedules. */
const TOLD = '50 schedules, 0 failed';
const PATIENCE_MS = 60_000;

/** Each attempt waits for a time of its own: undisturbed, no two overlap. */
const DEPOSITS = `import asyncio

balance = 0
calls = 0


def total():
    return balance


async def deposit():
    global balance, calls
    calls += 1
    await asyncio.sleep(0.02 * calls)
    before = balance
    await asyncio.sleep(0)
    balance = before + 1
`;

let cwd = '';
beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-explored-'));
  await copyFile(join(RACES, 'python', 'lost_update.py'), join(cwd, 'lost_update.py'));
  await copyFile(join(RACES, 'node', 'lost-update.mjs'), join(cwd, 'lost-update.mjs'));
  writeFileSync(join(cwd, 'deposits.py'), DEPOSITS);
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const repro = (...args: readonly string[]): Promise<Ended> => runCli(['repro', ...args], { cwd });

function scheduleIn({ stdout }: Ended): string {
  const [, text = ''] = /^schedule of \d+ waits?: ([\w.-]+)$/m.exec(stdout) ?? [];
  return text;
}

/** Processes that run where the programs of this file do. */
function running(): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === cwd;
    } catch {
      return false;
    }
  });
}

describe('trace repro explore, replay and shrink', () => {
  it.each([
    ['Python', [python.path, 'lost_update.py'], 'lost_update.py:'],
    ['Node', [process.execPath, 'lost-update.mjs'], 'lost-update.mjs:'],
  ])('find, repeat and place a race of %s', { timeout: 240_000 }, async (_, program, place) => {
    const command = ['--', ...program];
    const explored = await repro('explore', ...command);
    expect(explored, explored.stderr).toMatchObject({ code: 1 });
    expect(explored.stdout).toMatch(/^repeated: fails [1-5] of 5$/m);
    const schedule = scheduleIn(explored);
    const replayed = await repro('replay', '--schedule', schedule, '--runs', '3', ...command);
    expect(replayed.stdout).toContain('it exited with 1');
    expect(replayed.code).toBe(1);
    const shrunk = await repro('shrink', '--schedule', schedule, '--trials', '40', ...command);
    expect(shrunk.stderr).toContain('at most 40 runs');
    expect(shrunk.stdout).toMatch(/^\d+ waits before, \d+ left/m);
    expect(shrunk.stdout).toContain(`the \`await\` at ${place}`);
    expect(shrunk.code).toBe(0);
  });

  it('take the folder that trace repro new wrote', async () => {
    const call = ['--call', 'deposits:deposit', '--oracle', 'lost-update:read=deposits:total'];
    const sizes = ['--attempts', '5', '--concurrency', '5'];
    const named = ['--python', python.path];
    const made = await repro('new', ...call, ...sizes, ...named, '-o', 'lost');
    expect(made, made.stderr).toMatchObject({ code: 0 });
    const explored = await repro('explore', 'lost', ...named);
    expect(explored.code, explored.stdout).toBe(1);
    expect(explored.stdout).toMatch(/Errors: [1-5] \/ 5/);
    const twice = ['--schedule', scheduleIn(explored), '--runs', '2', ...named];
    const replayed = await repro('replay', 'lost', ...twice);
    expect(replayed.stdout).toContain('repeated: fails 2 of 2');
  });

  it('say what was tried until Ctrl-C, and leave no process', async () => {
    const command = ['--', python.path, 'lost_update.py', 'fixed'];
    const run = startCli(['repro', 'explore', '--schedules', '1000000', ...command], { cwd });
    await run.said(TOLD);
    expect(running().length).toBeGreaterThan(1);
    run.child.kill('SIGINT');
    const ended = await run.ended;
    expect(ended.code).toBe(130);
    expect(ended.stdout).toMatch(/interrupted\nno schedule failed: 0 \/ \d+/);
    await expect.poll(running, { timeout: PATIENCE_MS }).toEqual([]);
  });

  it('call a program that fails undisturbed invalid, and refuse what is no schedule', async () => {
    const broken = await repro('explore', '--', python.path, '-c', 'raise SystemExit(3)');
    expect(broken).toMatchObject({ code: 6 });
    expect(broken.stdout).toContain('invalid: undisturbed, it exited with 3');
    const unknown = await repro('replay', '--schedule', 'py1.no', '--', python.path, 'x.py');
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toContain('is not a schedule');
  });
});
