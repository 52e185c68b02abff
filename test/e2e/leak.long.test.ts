import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { start } from '../platform/processes.ts';
import { parseReport, type ReportDocument, runCli, verdicts } from './cli.ts';

/*
 * A program that loses 20 descriptors a second is caught in the default ten seconds, with what it loses; its twin, which closes what it opens,
 * is not. In .ci/run also what takes a minute: memory, and one descriptor a second.
 */

const TARGETS = join(import.meta.dirname, '..', 'targets');
const A_SECOND = 20;
const WATCH_S = 10;
/** A crowded machine blocks a loop as well; here what grows is judged. */
const leaks = (report: ReportDocument) =>
  verdicts(report).filter(({ kind }) => kind.endsWith('-leak'));

interface Plan {
  readonly runtime?: 'python' | 'node';
  readonly rate?: number;
  readonly watchS?: number;
  /** Whether V8 may be asked. */
  readonly inspect?: boolean;
}

async function watch(
  what: string,
  { runtime = 'python', rate = A_SECOND, watchS = WATCH_S, inspect = false }: Plan = {},
): Promise<{ code: number | null; report: ReportDocument }> {
  const [command, program] =
    runtime === 'node'
      ? [process.execPath, join(TARGETS, 'node', 'leaking.js')]
      : [interpreters()[0]?.path ?? 'python3', join(TARGETS, 'python', 'leaking.py')];
  const target = await start(command, [program, what, String(rate)]);
  const args = ['attach', String(target.pid), '-d', String(watchS), '--json', '--no-recording'];
  if (inspect) args.push('--inspect');
  const run = await runCli(args, { limitS: watchS + 30 });
  return { code: run.code, report: parseReport(run) };
}

describe.concurrent('a program', () => {
  it('that leaves files open is found, with the kind', async () => {
    const { code, report } = await watch('file');
    expect(report.findings).toMatchObject([{ code: 'TRC111', kind: 'fd-leak', mechanism: 'file' }]);
    const perSecond = report.findings[0]?.measure['growth_per_s'];
    expect(perSecond).toBeGreaterThan(A_SECOND * 0.8);
    expect(perSecond).toBeLessThan(A_SECOND * 1.2);
    expect(code).toBe(1);
  });

  it('that leaves connections open which the peer has closed is found, with their state and the peer', async () => {
    const { code, report } = await watch('socket');
    expect(report.findings).toMatchObject([
      { code: 'TRC113', kind: 'socket-leak', mechanism: 'close_wait' },
    ]);
    expect(report.findings[0]?.summary).toMatch(/most of them with 127\.0\.0\.1:\d+$/);
    expect(code).toBe(1);
  });

  it('that opens as many and closes them is not', async () => {
    const { code, report } = await watch('nothing');
    expect(report.findings).toEqual([]);
    expect(code).toBe(0);
  });

  it('that runs on Node and leaves files open is found', async () => {
    const { report } = await watch('file', { runtime: 'node' });
    expect(leaks(report)).toMatchObject([{ kind: 'fd-leak', mechanism: 'file' }]);
  });

  it('that runs on Node and leaves connections open which the peer has closed is found', async () => {
    const { report } = await watch('socket', { runtime: 'node' });
    expect(leaks(report)).toMatchObject([{ kind: 'socket-leak', mechanism: 'close_wait' }]);
  });

  it('that starts threads which never end is found', async () => {
    const { report } = await watch('thread', { rate: 12 });
    expect(leaks(report)).toMatchObject([{ kind: 'thread-leak' }]);
  });
});

/** What is watched at the same time: the programs wait for most of it. */
const MINUTE = {
  waves: ['memory-waves', { watchS: 60, rate: 40 }],
  even: ['memory', { watchS: 60, rate: 10 }],
  arrays: ['arrays', { watchS: 40, rate: 30 }],
  ring: ['ring', { watchS: 40, rate: 30 }],
  files: ['file', { watchS: 40, rate: 12 }],
  threads: ['thread', { watchS: 40, rate: 12 }],
  buffers: ['buffers', { runtime: 'node', watchS: 45, rate: 80, inspect: true }],
  python: ['file', { runtime: 'python', watchS: 60, rate: 1 }],
  node: ['file', { runtime: 'node', watchS: 60, rate: 1 }],
  nothing: ['nothing', { watchS: 60 }],
} as const;

describe('within a minute a program', () => {
  const watched = new Map<keyof typeof MINUTE, Awaited<ReturnType<typeof watch>>>();
  it('is watched beside the others', async () => {
    const all = Object.entries(MINUTE) as [keyof typeof MINUTE, readonly [string, Plan]][];
    await Promise.all(
      all.map(async ([name, [what, plan]]) => watched.set(name, await watch(what, plan))),
    );
    expect(watched.size).toBe(all.length);
  });
  const of = (name: keyof typeof MINUTE): Awaited<ReturnType<typeof watch>> => {
    const one = watched.get(name);
    if (one === undefined) throw new Error(`${name} was not watched`);
    return one;
  };
  /** The list of the program that keeps it. */
  const HELD = {
    kind: 'memory-leak',
    mechanism: 'python-objects',
    where: [{ function: '__main__.held' }],
  };

  it('that keeps something of each request is found, when the load varies', () => {
    expect(leaks(of('waves').report)).toMatchObject([HELD]);
  });

  it('whose memory grows evenly is found, with what holds it', () => {
    const { code, report } = of('even');
    expect(leaks(report)).toMatchObject([HELD]);
    expect(code).toBe(1);
  });

  it('that keeps what stands for memory of a library is found, with what holds it', () => {
    expect(leaks(of('arrays').report)).toMatchObject([{ ...HELD, mechanism: 'native-held' }]);
  });

  it('that keeps the last hundred of them is not', () => {
    expect(leaks(of('ring').report)).toEqual([]);
  });

  it.each([
    ['files', 'fd-leak'],
    ['threads', 'thread-leak'],
  ] as const)('that keeps %s is found, with who holds them', (name, kind) => {
    const [leak] = leaks(of(name).report);
    expect(leak?.kind).toBe(kind);
    expect(leak?.where.map((place) => place.function)).toContain('__main__.held');
  });

  it('on node that keeps buffers is found, with who makes them', () => {
    const [leak] = leaks(of('buffers').report);
    expect(leak).toMatchObject({ kind: 'memory-leak', mechanism: 'v8-external' });
    expect(leak?.where[0]?.function).toBe('keepBuffer');
  });

  it.each(['python', 'node'] as const)('on %s that loses one file a second is found', (runtime) => {
    expect(leaks(of(runtime).report)).toMatchObject([{ kind: 'fd-leak', mechanism: 'file' }]);
  });

  it('that closes what it opens is not', () => {
    expect(of('nothing').report.findings).toEqual([]);
  });
});
