import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type GroupOptions, runGroup } from '../../repro/trials/process-group.ts';
import type { Seconds } from '../../src/core/types.ts';

const LIMIT: Seconds = 100;

const folder = mkdtempSync(join(tmpdir(), 'trace-group-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (program: string, options: Partial<GroupOptions> = {}) =>
  runGroup(['sh', '-c', program], {
    cwd: '/',
    env: process.env,
    limit: LIMIT,
    abort: undefined,
    ...options,
  });

/** Whether a process runs; a zombie has no program any more. */
const runs = (pid: string | number): boolean => existsSync(`/proc/${pid}/exe`);

describe('a command in a process group of its own', () => {
  it.each([
    ['in its group', 'sleep 120 &'],
    ['in its group, without its outputs', 'sleep 120 >/dev/null 2>&1 &'],
    ['in a session of its own', 'setsid sleep 120 &'],
    ['in a session of its own, without its outputs', 'setsid sleep 120 >/dev/null 2>&1 &'],
  ])('has ended when its process has, and what it left %s is ended', async (_, start) => {
    const end = await run(`${start} echo "pid $!"; exit 3`);
    expect(end).toMatchObject({ ended: 'exit', code: 3, signal: null });
    const [, pid = ''] = /^pid (\d+)\n$/.exec(end.output) ?? [];
    expect(end).toMatchObject({ left: [{ pid: Number(pid) }] });
    expect(runs(pid)).toBe(false);
  });

  it('leaves nothing when it started nothing, and all that it wrote has been read', async () => {
    const end = await run('head -c 300000 /dev/zero | tr "\\0" x; echo; echo last');
    expect(end).toMatchObject({ ended: 'exit', code: 0, left: [] });
    expect(end.output).toMatch(/^x{100}[^]*\nlast\n$/);
    expect(end.output).toHaveLength(16 * 1024);
  });

  it('that is given up is ended with what left its group', async () => {
    const saidAll = { pattern: /^pid \d+$/m, grace: 0.01 };
    const end = await run('setsid sleep 120 & echo "pid $!"; sleep 120', { saidAll });
    expect(end.ended).toBe('timeout');
    const [, pid = ''] = /^pid (\d+)$/m.exec(end.output) ?? [];
    expect(pid).not.toBe('');
    expect(runs(pid)).toBe(false);
  });

  it('finds only its own: what another one left is not ended with it', async () => {
    const abort = new AbortController();
    const file = join(folder, 'pid');
    const program = `setsid sleep 120 & echo "pid $!" > ${file}; sleep 120`;
    const other = run(program, { abort: abort.signal });
    const pid = (): string => /^pid (\d+)\n$/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
    await expect.poll(() => existsSync(file) && pid() !== '').toBe(true);
    expect(await run('exit 0')).toMatchObject({ ended: 'exit', left: [] });
    expect(runs(pid())).toBe(true);
    abort.abort();
    expect(await other).toMatchObject({ ended: 'aborted' });
    expect(runs(pid())).toBe(false);
  });

  it.each([
    ['a program that is not there', ['/no/such/program']],
    ['a word that no program can be given', ['sh', '-c', 'exit \0']],
  ])('%s is said not to have started', async (_, command) => {
    const options = { cwd: '/', env: process.env, limit: LIMIT, abort: undefined };
    expect(await runGroup(command, options)).toMatchObject({ ended: 'not-started' });
  });
});
