import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type * as samplerModule from '../../../collectors/sampler/sampler.ts';
import type * as crewModule from '../../../collectors/sampler/sampling-crew.ts';
import { anchoredClock, takeAnchor } from '../../../src/core/clock.ts';
import { ATTR, SPAN } from '../../../src/core/semconv.ts';
import type { Availability, Gap, Observation, ProcessTarget } from '../../../src/core/types.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { interpreters } from '../../environments.ts';
import {
  type RunningTarget,
  startReady,
  startTarget,
  type TargetName,
} from '../../targets/harness.ts';

/* Real processes sampled by one worker thread, which has to be the compiled one. */

const DIST = join(import.meta.dirname, '..', '..', '..', 'dist', 'collectors', 'sampler');
const { Sampler } = (await import(join(DIST, 'sampler.js'))) as typeof samplerModule;
const { SamplingCrew } = (await import(join(DIST, 'sampling-crew.js'))) as typeof crewModule;

/** A block is looked for in all its length, and a sampler that came late is a gap: what is left must be there. */
const SHORTEST = 0.06;
const THRESHOLD = 0.05;

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function blocking(name: TargetName): Promise<RunningTarget> {
  const plan = { kinds: ['sleep'], durations: [80], reps: 1000, startS: 0, seconds: 30 };
  return started(startTarget(name, { ...plan, spacingMs: 150, jitterMs: 20 }));
}

async function started<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const one = await starting;
  stops.push(() => one.stop());
  return one;
}

const clock = anchoredClock(takeAnchor());
const targetOf = (pid: number): ProcessTarget => ({
  kind: 'process',
  pid,
  startTicks: readStat(pid)?.startTicks ?? 0,
});

interface Watching {
  readonly seen: Observation[];
  readonly pid: number;
  readonly opened: Availability;
  readonly sampler: samplerModule.Sampler;
  /** Unix time from which it is watched. */
  readonly from: number;
  /** Ends it; or it ends by itself. */
  stop(): Promise<void>;
  readonly ended: Promise<void>;
}

async function watch(
  target: ProcessTarget,
  runtime: 'python' | 'node',
  crew: crewModule.SamplingCrew,
): Promise<Watching> {
  const sampler = new Sampler({
    runtime,
    threshold: THRESHOLD,
    raw: false,
    stackSource: null,
    crew,
  });
  const opened = await sampler.probe(target);
  const stopped = new AbortController();
  const seen: Observation[] = [];
  const from = clock.now();
  const ended = (async () => {
    for await (const one of sampler.observe(target, { signal: stopped.signal, clock }))
      seen.push(one);
  })();
  const stop = async (): Promise<void> => {
    stopped.abort();
    await ended;
  };
  stops.push(stop);
  return { seen, pid: target.pid, opened, sampler, from, stop, ended };
}

const gapsOf = ({ seen }: Watching): Gap[] =>
  seen.flatMap((one) => (one.kind === 'gap' ? [one] : []));

/** Blocks of the target's own log, within what was watched, that no span covers by half and no gap excuses. */
function missed(watching: Watching, target: RunningTarget, to: number): number[] {
  const offset = clock.now() - clock.mono();
  const spans = watching.seen.flatMap((one) =>
    one.kind === 'span' && one.name === SPAN.blocked ? [one] : [],
  );
  const gaps = gapsOf(watching);
  const blocks = target
    .truth()
    .map(({ start, end }) => ({ from: start + offset, to: end + offset }))
    .filter((one) => one.from > watching.from + 0.1 && one.to < to - 0.1)
    .filter((one) => one.to - one.from >= SHORTEST);
  expect(blocks.length).toBeGreaterThan(4);
  const overlap = (a: { from: number; to: number }, b: { from: number; to: number }): number =>
    Math.min(a.to, b.to) - Math.max(a.from, b.from);
  return blocks
    .filter((block) => !spans.some((span) => overlap(span, block) > (block.to - block.from) / 2))
    .filter((block) => !gaps.some((gap) => overlap(gap, block) > 0))
    .map((block) => block.to - block.from);
}

describe('processes that share a worker', () => {
  it('are each seen as if alone, also by one that joins late and when one ends', async () => {
    const first = await blocking('asyncio');
    const second = await blocking('fastapi-uvloop');
    const late = await blocking('node-http');
    const crew = new SamplingCrew();
    const one = await watch(targetOf(first.pid), 'python', crew);
    const two = await watch(targetOf(second.pid), 'python', crew);
    // Real time: each is watched for a while.
    await wait(1500);
    const three = await watch(targetOf(late.pid), 'node', crew);
    // Real time: each is watched for a while.
    await wait(1500);
    const killedAt = clock.now();
    await second.stop();
    await two.ended;
    // Real time: the others are watched on.
    await wait(1500);
    const stoppedAt = clock.now();
    await Promise.all([one.stop(), three.stop()]);

    expect(missed(one, first, stoppedAt)).toEqual([]);
    expect(missed(three, late, stoppedAt)).toEqual([]);
    expect(gapsOf(two).at(-1)).toMatchObject({ reason: 'target-gone', pid: second.pid });
    expect(gapsOf(two).at(-1)?.to).toBeLessThan(killedAt + 3);
    expect(gapsOf(one).filter(({ reason }) => reason !== 'late')).toEqual([]);
    for (const { seen, pid } of [one, two, three]) {
      const pids = seen.flatMap((each) => {
        if (each.kind === 'gap') return [each.pid];
        return 'attributes' in each ? [each.attributes?.[ATTR.pid]] : [];
      });
      expect(new Set(pids)).toEqual(new Set([pid]));
    }
  });

  it('are watched on when one cannot be read, and when one is gone before it is opened', async () => {
    const readable = await blocking('asyncio');
    const other = spawn('sleep', ['30']);
    stops.push(() => other.kill('SIGKILL'));
    await once(other, 'spawn');
    const crew = new SamplingCrew();
    const one = await watch(targetOf(readable.pid), 'python', crew);
    const two = await watch(targetOf(other.pid ?? 0), 'python', crew);
    const three = await watch(
      { kind: 'process', pid: readable.pid, startTicks: 1 },
      'python',
      crew,
    );
    // Real time: it is watched for a while.
    await wait(1900);
    const stoppedAt = clock.now();
    await one.stop();
    expect(two.opened).toMatchObject({ available: false });
    expect(two.sampler.readsTurns).toBe(false);
    expect(three.opened).toEqual({ available: false, reason: 'the process is gone', remedy: null });
    expect(three.sampler.isOpen).toBe(false);
    expect(missed(one, readable, stoppedAt)).toEqual([]);
  });

  it('may be opened without being watched, and let trace end', async () => {
    const target = await started(
      startReady(interpreters()[0]?.path ?? 'python3', [
        join(import.meta.dirname, '..', '..', 'targets', 'python', 'heartbeat.py'),
        '30',
      ]),
    );
    const crew = new SamplingCrew();
    const options = {
      runtime: 'python',
      threshold: THRESHOLD,
      raw: false,
      stackSource: null,
      crew,
    } as const;
    const kept = new Sampler(options);
    const dropped = new Sampler(options);
    await Promise.all([kept.probe(targetOf(target.pid)), dropped.probe(targetOf(target.pid))]);
    await dropped.close();
    expect(dropped.isOpen).toBe(false);
    expect(kept.isOpen).toBe(true);
    await kept.close();
    // The thread is gone, and the next to join gets a new one.
    const again = await watch(targetOf(target.pid), 'python', crew);
    // Real time: it is watched for a while.
    await wait(700);
    await again.stop();
    expect(again.opened).toEqual({ available: true, detail: 'asyncio in thread main' });
    expect(again.sampler.statistics.samples).toBeGreaterThan(10);
  });
});
