import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { type Ended, runCli, startCli } from './cli.ts';

/**
 * What is asked of a process that is hard to read: ten thousand tasks, a million objects, five hundred threads and ten thousand descriptors
 * at once under a loop that never rests; and processes that fork, become others by `exec`, or are killed meanwhile. What trace says is held
 * against what the process says of itself, and the process must be whole afterwards.
 */

const STRESSED = join(import.meta.dirname, '../targets/python/stressed.py');
const RESTLESS = join(import.meta.dirname, '../targets/python/restless.py');
/** Exit codes of a command whose target is there, or ended; 70 is a bug of ours, null a crash. */
const HONEST = [0, 1, 3, 5, 6];
/** The work of the busy loop, that has a like amount of each kind; a share of CPU by some 150 looks is known to within that. */
const KINDS = ['recursion', 'generators', 'in_c', 'plain'] as const;
const SHARE_ERROR = 0.15;
/** A look that saw so much of what is reachable is taken for whole (docs/heap.md); each task is some ten objects. */
const LEAST_SEEN = 0.9;
const running: Running[] = [];

afterEach(async () => {
  for (const target of running.splice(0)) await target.stop();
});

/** What stressed.py says of itself. */
interface Truth {
  readonly tasks: Readonly<Record<string, number>>;
  readonly blobs: number;
  readonly threads: number;
  readonly descriptors: number;
  readonly spent: Readonly<Record<(typeof KINDS)[number], number>>;
  readonly turns: number;
  readonly sound: boolean;
}

async function truthOf(target: Running): Promise<Truth> {
  const { stdin, stdout } = target.child;
  const before = target.lines.length;
  stdin?.write('truth\n');
  while (target.lines.length === before) await once(stdout ?? target.child, 'data');
  return JSON.parse(target.lines.at(-1) ?? '') as Truth;
}

async function ask<T>(target: Running, ...args: readonly string[]): Promise<T> {
  const [verb = '', ...flags] = args;
  const ended = await runCli([verb, String(target.pid), ...flags, '--json'], { limitS: 90 });
  expect([0, 1], `${args.join(' ')}: ${ended.stderr}`).toContain(ended.code);
  return JSON.parse(ended.stdout) as T;
}

interface TasksDocument {
  readonly total: number;
  readonly unread: number;
  readonly tasks: readonly { coroutine: string; wait: { kind: string } | null }[];
}
interface ThreadsDocument {
  readonly threads: readonly { name: string; wait: string }[];
}
interface HeapDocument {
  readonly verdict: { readonly kind: string };
  readonly objects: { readonly count: number };
  readonly largest_containers: readonly object[];
  readonly looks: readonly { readonly lacking: string | null }[];
}
interface ProfileDocument {
  readonly functions: readonly { function: string; total_s: number }[];
  readonly quality: object;
}
interface AttachDocument {
  readonly metrics: Readonly<
    Record<string, { readonly series: readonly { readonly last: number }[] } | undefined>
  >;
  readonly findings: readonly { readonly kind: string }[];
}

describe.each(interpreters())('a CPython $version with everything at once', ({ path, version }) => {
  it('is described as it is, and is whole afterwards', { timeout: 180_000 }, async () => {
    const target = await startReady(path, [STRESSED]);
    running.push(target);
    const before = await truthOf(target);
    expect(before).toMatchObject({ blobs: 1_000_000, sound: true });

    // Tasks: each is there with what it waits for, or is counted as not read.
    const { tasks, total, unread } = await ask<TasksDocument>(target, 'tasks');
    const found: Record<string, number> = {};
    for (const { coroutine, wait } of tasks)
      if (coroutine === 'outer')
        found[wait?.kind ?? 'none'] = (found[wait?.kind ?? 'none'] ?? 0) + 1;
    const count = Object.values(before.tasks).reduce((sum, n) => sum + n, 0);
    expect([found, total]).toEqual([before.tasks, count + 2]); // main and the one that spins
    expect(unread).toBeLessThanOrEqual(1);

    const { threads } = await ask<ThreadsDocument>(target, 'tasks', '--threads');
    expect(threads.length).toBe(before.threads);
    const sleepers = threads.filter(({ name }) => name.startsWith('sleeper-'));
    expect(new Set(sleepers.map(({ name }) => name)).size).toBe(500);
    expect(sleepers.filter(({ wait }) => wait !== 'lock')).toEqual([]);

    // Objects: all, or it says what is lacking; none grew.
    const heap = await ask<HeapDocument>(target, 'heap', '--interval', '1s');
    expect(heap.verdict.kind).toBe('none');
    expect(heap.largest_containers[0]).toMatchObject({
      entries_count: before.blobs,
      where: { path: '__main__.store.blobs' },
    });
    if (heap.looks.at(-1)?.lacking === null)
      expect(heap.objects.count).toBeGreaterThan(LEAST_SEEN * (before.blobs + 10 * count));

    const from = await truthOf(target);
    const [profile, attach] = await Promise.all([
      ask<ProfileDocument>(target, 'profile', '-d', '3s', '--max-overhead', '50%'),
      ask<AttachDocument>(target, 'attach', '-d', '3s', '--no-recording'),
    ]);
    const to = await truthOf(target);
    const shares = (timeOf: (kind: (typeof KINDS)[number]) => number): number[] => {
      const times = KINDS.map(timeOf);
      const sum = times.reduce((all, time) => all + time, 0);
      return times.map((time) => time / sum);
    };
    const told = shares(
      (kind) => profile.functions.find((one) => one.function === kind)?.total_s ?? 0,
    );
    const true_ = shares((kind) => to.spent[kind] - from.spent[kind]);
    for (const [i, kind] of KINDS.entries())
      expect(Math.abs((told[i] ?? 0) - (true_[i] ?? 0)), `${kind} of ${version}`).toBeLessThan(
        SHARE_ERROR,
      );
    const last = (metric: string): number | undefined => attach.metrics[metric]?.series[0]?.last;
    expect(last('process.thread.count')).toBe(before.threads);
    expect(last('process.unix.file_descriptor.count')).toBe(before.descriptors);
    expect(
      attach.findings.map(({ kind }) => kind).filter((kind) => kind !== 'loop-blocked'),
    ).toEqual([]);

    const after = await truthOf(target);
    expect(after).toMatchObject({ sound: true, tasks: before.tasks, blobs: before.blobs });
    expect(after.turns).toBeGreaterThan(before.turns);
    target.child.stdin?.write('end\n');
    expect(await target.exited).toBe(0);
  });
});

/** Each command for two seconds or so, all at once. */
const COMMANDS: readonly (readonly string[])[] = [
  ['tasks', '--watch=0.2s', '-d', '2s'],
  ['heap', '--interval', '1s'],
  ['profile', '-d', '2s'],
  ['attach', '-d', '2s', '--no-recording'],
];

interface Named {
  readonly file?: string;
  readonly function?: string;
  readonly coroutine?: string;
}

/** Functions of the target that a document names: nothing that is not in its source. */
function named(document: unknown, found: Set<string> = new Set()): Set<string> {
  if (typeof document !== 'object' || document === null) return found;
  const { file, function: name } = document as Named;
  if (file === RESTLESS && typeof name === 'string') found.add(name);
  for (const value of Object.values(document)) named(value, found);
  return found;
}

const FUNCTIONS =
  /^(?:<module>|Entry(?:\.__init__)?|__init__|crunch|waits|works|forks|becomes|main(?:\.<locals>\.<(?:genexpr|listcomp)>)?|<(?:genexpr|listcomp)>)$/;

function expectHonest(args: readonly string[], { code, signal, stdout, stderr }: Ended): void {
  expect(HONEST, `${args.join(' ')} ended with ${code} ${signal}: ${stderr}`).toContain(code);
  expect(stderr).not.toMatch(/^\s+at .*\.[jt]s:/m);
  if (stdout === '') return;
  const document = JSON.parse(stdout) as { tasks?: TasksDocument['tasks'] };
  for (const name of named(document)) expect(name, args.join(' ')).toMatch(FUNCTIONS);
  // Fifty in each image; fewer while they are made, never more.
  const waiting = (document.tasks ?? []).filter(({ coroutine }) => coroutine === 'waits');
  expect(waiting.length).toBeLessThanOrEqual(50);
}

describe.each(interpreters())('a CPython $version that does not stay', ({ path }) => {
  it.each(['forking', 'exec', 'calm'])(
    'is read honestly while it is %s',
    { timeout: 120_000 },
    async (mode) => {
      const target = await startReady(path, [RESTLESS, mode]);
      running.push(target);
      const runs = COMMANDS.map(([verb = '', ...flags]) => ({
        args: [mode, verb],
        run: startCli([verb, String(target.pid), ...flags, '--json']),
      }));
      if (mode === 'calm') {
        // Killed under the hands of all of them.
        // Real time: it is killed while they read.
        await new Promise((resolve) => setTimeout(resolve, 1500));
        target.child.kill('SIGKILL');
      }
      for (const { args, run } of runs) expectHonest(args, await run.ended);
      if (mode === 'calm') return;
      expect(target.child.exitCode).toBe(null);
      const lives = target.lines.filter((line) => line.startsWith('LIVES'));
      expect(lives.filter((line) => !line.endsWith('True'))).toEqual([]);
      if (mode === 'forking') expect(lives.length).toBeGreaterThan(0);
    },
  );
});
