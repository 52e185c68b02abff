import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import { interpreters, pythonEnvironment } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const MOVING = join(import.meta.dirname, '../../fixtures/python-stacks/moving.py');
const run = promisify(execFile);

const SECONDS = 2;
/** py-spy samples a second; it stops the target for each. */
const PY_SPY_RATE = 100;
/** Standard errors allowed: chance alone exceeds 4.5 in one of 150 000 comparisons; there are some 100. */
const ERRORS = 4.5;
/**
 * A stretch in one function lasts 1.75 ms on average, as long as the time between two samples: neighbouring samples are not
 * independent, so two count as one.
 */
const DEPENDENCE = 2;
/** What the time between two stretches (the choice of the next, the bookkeeping) can take. */
const BETWEEN = 0.01;

describe.each(interpreters())('a moving thread of CPython $version', ({ path }) => {
  it('is seen in each function for the share of time it spends there, as by py-spy', async () => {
    const target = await startReady(path, [MOVING]);
    try {
      const opened = openPython(target.pid);
      if (!opened.ok) throw new Error(opened.reason);
      const before = await spent(target);
      const [ours, theirs] = await Promise.all([
        sample(opened.reader, target.pid),
        recordPySpy(target.pid),
      ]);
      const truth = shares(difference(await spent(target), before));

      // All but a few stacks are read; what is not read is counted.
      expect(count(ours)).toBeGreaterThan(300);
      const { reads, rejected } = opened.reader.counters;
      const lost = Object.values(rejected).reduce((sum, n) => sum + n, 0);
      expect(lost / reads).toBeLessThan(0.01);

      const n = count(ours) / DEPENDENCE;
      for (const [name, share] of truth) {
        const error = Math.sqrt((share * (1 - share)) / n);
        const seen = (ours.get(name) ?? 0) / count(ours);
        expect(Math.abs(seen - share), `${name}: ${seen}, truly ${share}`).toBeLessThan(
          ERRORS * error + BETWEEN,
        );
      }
      if (theirs === null) return;
      for (const [name, share] of shares(theirs)) {
        const error = Math.sqrt(share * (1 - share) * (1 / n + DEPENDENCE / count(theirs)));
        const seen = (ours.get(name) ?? 0) / count(ours);
        expect(Math.abs(seen - share), `${name}: ${seen}, by py-spy ${share}`).toBeLessThan(
          ERRORS * error + BETWEEN,
        );
      }
      opened.reader.close();
    } finally {
      await target.stop();
    }
  });
});

/** Samples by innermost function of the fixture, at times that have no rhythm. */
async function sample(reader: PythonReader, tid: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end;) {
    const stack = reader.stack(tid);
    const name = stack?.frames.find(({ file }) => file === MOVING)?.function;
    if (name !== undefined) add(counts, group(name), 1);
    // Real time: the samples are spread at random.
    await delay(1 + Math.random() * 2);
  }
  return counts;
}

async function recordPySpy(pid: number): Promise<Map<string, number> | null> {
  const { bin } = await pythonEnvironment(['py-spy']);
  const folder = await mkdtemp(join(tmpdir(), 'tracewright-py-spy-'));
  const output = join(folder, 'stacks');
  const flags = ['--format', 'raw', '--function', '--idle', '--full-filenames', '--output', output];
  const rate = ['--rate', String(PY_SPY_RATE), '--duration', String(SECONDS)];
  try {
    await run(join(bin, 'py-spy'), ['record', '--pid', String(pid), ...flags, ...rate]);
    const stacks = await readFile(output, 'utf8');
    const counts = new Map<string, number>();
    for (const line of stacks.trim().split('\n')) {
      const match = /^(.*) (\d+)$/.exec(line);
      const frames = match?.[1]?.split(';') ?? [];
      const leaf = frames.findLast((frame) => frame.includes(`(${MOVING}:`))?.replace(/ \(.*$/, '');
      if (leaf !== undefined && frames.some((frame) => frame.startsWith('main ')))
        add(counts, group(leaf), Number(match?.[2]));
    }
    return counts;
  } catch (error) {
    if (/permission denied/i.test(String(error))) return null;
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The generator resumes and yields within a microsecond, so it and its caller share their time. */
function group(name: string): string {
  const last = name.slice(name.lastIndexOf('.') + 1);
  return last === 'generator' || last === 'in_generator' ? 'generator or its caller' : last;
}

async function spent(target: Running): Promise<Map<string, number>> {
  const known = target.lines.length;
  target.child.stdin?.write('\n');
  while (target.lines.length === known) {
    await once(target.child.stdout ?? target.child, 'data');
    await new Promise(setImmediate);
  }
  return new Map(Object.entries(JSON.parse(target.lines.at(-1) ?? '') as Record<string, number>));
}

function difference(after: Map<string, number>, before: Map<string, number>): Map<string, number> {
  return new Map([...after].map(([name, seconds]) => [name, seconds - (before.get(name) ?? 0)]));
}

function shares(amounts: Map<string, number>): Map<string, number> {
  const all = count(amounts);
  return new Map([...amounts].map(([name, amount]) => [name, amount / all]));
}

function count(amounts: Map<string, number>): number {
  return [...amounts.values()].reduce((sum, n) => sum + n, 0);
}

function add(counts: Map<string, number>, name: string, amount: number): void {
  counts.set(name, (counts.get(name) ?? 0) + amount);
}
