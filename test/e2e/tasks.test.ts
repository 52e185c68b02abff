import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { interpreters } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { runCli } from './cli.ts';

const KINDS = join(import.meta.dirname, '../targets/python/task_kinds.py');
const THREADS = join(import.meta.dirname, '../targets/python/thread_kinds.py');
const GROWTH = join(import.meta.dirname, '../targets/python/task_growth.py');
const schema = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/schema/threads.schema.json'), 'utf8'),
) as object;
const validThreads = new Ajv2020().compile(schema);

interface ThreadsDocument {
  readonly threads: readonly {
    readonly name: string;
    readonly wait: string;
    readonly has_gil: boolean;
    readonly holders: readonly string[];
  }[];
}

const running: Running[] = [];
/** In ten seconds every step has to be up: on a busy machine the target may have stood still for one. */
const RUNS = 5;

afterEach(async () => {
  for (const target of running.splice(0)) await target.stop();
});

async function start(command: string, args: readonly string[]): Promise<string> {
  const target = await startReady(command, args);
  running.push(target);
  return String(target.pid);
}

describe('trace tasks', () => {
  it('shows a tree, one task, groups, growth and a document', async () => {
    const [python] = interpreters();
    const pid = await start(python?.path ?? '', [KINDS]);
    const tree = await runCli(['tasks', pid]);
    expect(tree.stderr).toBe('');
    expect(tree.code).toBe(0);
    expect(tree.stdout).toContain('waits for a lock, which owner-1 has');
    expect(tree.stdout).toMatch(/^gathering-1 .*\n.*gathers tasks \(3\)/m);

    const one = await runCli(['tasks', pid, '--task', 'deep-1']);
    expect(one.stdout.match(/\bdeep \(.*task_kinds\.py:\d+\)/g)?.length).toBe(11);

    const watched = await runCli(['tasks', pid, '--watch=0.2s', '-d', '0.5s', '--json']);
    const document = JSON.parse(watched.stdout) as { growth: { looks: number } };
    expect(document.growth.looks).toBeGreaterThan(1);

    const none = await runCli(['tasks', pid, '--task', 'nobody']);
    expect([none.code, none.stdout]).toEqual([3, '']);
    expect(none.stderr).toContain('no task of');
  });

  it('shows what threads wait for, and who has it', async () => {
    const [python] = interpreters();
    const threadsOf = async (pid: string) => {
      const { stdout } = await runCli(['tasks', pid, '--threads', '--json']);
      const document = JSON.parse(stdout) as ThreadsDocument;
      expect(validThreads(document), JSON.stringify(validThreads.errors)).toBe(true);
      return document.threads;
    };
    const quiet = await startReady(python?.path ?? '', [THREADS]);
    running.push(quiet);
    // A busy machine may not have let all of them get to where they wait.
    await expect
      .poll(() => threadsOf(String(quiet.pid)), { timeout: 20_000 })
      .toMatchObject([
        { name: 'MainThread', wait: 'sleep' },
        { name: 'keeper', wait: 'sleep' },
        { name: 'wanter', wait: 'lock', on: { label: 'guard' }, holders: ['keeper'] },
        { name: 'taker', wait: 'lock', on: { kind: 'queue', label: 'jobs' } },
        { name: 'fetcher', wait: 'io', peer: `127.0.0.1:${quiet.port}` },
        { name: 'parent', wait: 'child' },
      ]);

    const busy = await start(python?.path ?? '', [THREADS, 'crunch', 'chew']);
    await expect
      .poll(
        async () => {
          const [one, other] = (await threadsOf(busy))
            .filter(({ name }) => name === 'crunch' || name === 'chew')
            .toSorted((a, b) => Number(b.has_gil) - Number(a.has_gil));
          return [one?.has_gil, other?.wait, other?.holders[0] === one?.name];
        },
        { timeout: 20_000 },
      )
      .toEqual([true, 'gil', true]);
    const shown = await runCli(['tasks', busy, '--threads']);
    expect(shown.stdout).toContain('waits for lock guard, which keeper has, in want');

    const both = await runCli(['tasks', busy, '--threads', '--group']);
    expect([both.code, both.stdout]).toEqual([2, '']);
  });

  it('says why there are none', async () => {
    const node = await start(process.execPath, [
      '-e',
      'console.log("READY", process.pid, 0); setInterval(() => {}, 1e6)',
    ]);
    const refused = await runCli(['tasks', node]);
    expect([refused.code, refused.stdout]).toEqual([5, '']);
    expect(refused.stderr).toContain('Node process');

    const program = "import os, sys; print('READY', os.getpid(), 0, flush=True); sys.stdin.read()";
    const plain = await start(interpreters()[0]?.path ?? '', ['-c', program]);
    const empty = await runCli(['tasks', plain]);
    expect(empty.code).toBe(0);
    expect(empty.stdout).toMatch(/asyncio\s+was\s+never\s+imported/);
  });
});

describe('trace attach', () => {
  it(
    'names the tasks that leak, and show says the same; a pool is none',
    { timeout: 180_000 },
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'trace-tasks-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const python = interpreters()[0]?.path ?? '';
      const pool = await start(python, [GROWTH, 'pool']);
      const quiet = runCli(['attach', pool, '-d', '10s', '--no-recording', '--json']);

      let output = '';
      let found: unknown[] = [];
      for (let i = 0; i < RUNS && found.length === 0; i++) {
        output = join(folder, String(i));
        // A new one each time: what it grows by is then much of what it has.
        const leak = await start(python, [GROWTH, 'leak']);
        const { stdout } = await runCli([
          'attach',
          leak,
          '-d',
          '10s',
          '--output',
          output,
          '--json',
        ]);
        found = leaksOf(stdout);
      }
      expect(found).toMatchObject([
        {
          code: 'TRC114',
          mechanism: 'event',
          where: [{ function: 'forgotten', file: GROWTH, line: 10 }],
        },
      ]);
      expect(leaksOf((await runCli(['show', output, '--json'])).stdout)).toEqual(found);
      expect(leaksOf((await quiet).stdout)).toEqual([]);
    },
  );
});

function leaksOf(stdout: string): unknown[] {
  const { findings } = JSON.parse(stdout) as { findings: { kind: string }[] };
  return findings.filter(({ kind }) => kind === 'task-leak');
}
