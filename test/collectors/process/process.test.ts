import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { processCollector } from '../../../collectors/process/process.ts';
import { anchoredClock, takeAnchor } from '../../../src/core/clock.ts';
import { ATTR, EVENT, METRIC } from '../../../src/core/semconv.ts';
import { CGROUP_METRIC } from '../../../src/core/semconv-cgroup.ts';
import type { Observation, ProcessTarget, Sample } from '../../../src/core/types.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { findTarget } from '../../../src/platform/target.ts';
import { end, start, startShell, type Started, until } from '../../platform/processes.ts';

/** Short, so that tests see many readings. */
const INTERVAL = 0.02;
const collector = processCollector({ interval: INTERVAL });

/** What a control group without limits does not tell, and of a process that runs nobody says that it is stopped. */
const NOT_ALWAYS = new Set(
  [...Object.values(CGROUP_METRIC), METRIC.stopped].map(({ name }) => name),
);

function targetOf(pid: number): ProcessTarget {
  return findTarget({ pid }).target;
}

/** Observes until `enough` of what came; then aborts, and takes what still comes. */
async function observe(
  target: ProcessTarget,
  enough: (seen: readonly Observation[]) => boolean,
): Promise<Observation[]> {
  const stop = new AbortController();
  const seen: Observation[] = [];
  const clock = anchoredClock(takeAnchor());
  for await (const observation of collector.observe(target, { signal: stop.signal, clock })) {
    seen.push(observation);
    if (enough(seen)) stop.abort();
  }
  return seen;
}

const samplesOf = (
  seen: readonly Observation[],
  metric: string,
  attributes: object = {},
): Sample[] =>
  seen.filter(
    (one): one is Sample =>
      one.kind === 'sample' &&
      one.metric === metric &&
      Object.entries(attributes).every(([key, value]) => one.attributes?.[key] === value),
  );

const readings = (count: number) => (seen: readonly Observation[]) =>
  samplesOf(seen, METRIC.uptime.name).length >= count;

/** What a process does, a line a command: `python3` is not needed, Node is here. */
const PROGRAM = `
const lines = require('node:readline').createInterface({ input: process.stdin });
const kept = [];
lines.on('line', (command) => { kept.push(eval(command)); console.log('done'); });
console.log('up');`;

async function tell(started: Started, command: string): Promise<void> {
  const done = new Promise((resolve) => started.child.stdout?.once('data', resolve));
  started.child.stdin?.write(`${command}\n`);
  await done;
}

describe('the contract of a collector', () => {
  it('probing and observing change nothing in the target', async () => {
    const started = await startShell('echo; read nothing');
    const picture = () =>
      ['status', 'maps', 'limits', 'cmdline', 'oom_score_adj', 'coredump_filter']
        .map((name) => readFileSync(`/proc/${started.pid}/${name}`, 'utf8'))
        .concat(readdirSync(`/proc/${started.pid}/fd`))
        .join('\n')
        // Signals queued for all processes of the user: others' doing.
        .replace(/^SigQ:.*$/m, '');
    await until(() => readStat(started.pid)?.state === 'S');
    const before = picture();
    const target = targetOf(started.pid);
    expect(await collector.probe(target)).toEqual({ available: true });
    await observe(target, readings(5));
    expect(picture()).toBe(before);
  });

  it('stops when it is aborted, long before its next reading is due', async () => {
    const { pid } = await startShell('echo; read nothing');
    const stop = new AbortController();
    const slow = processCollector({ interval: 3600 });
    let hasBegun = false;
    const context = { signal: stop.signal, clock: anchoredClock(takeAnchor()) };
    for await (const observation of slow.observe(targetOf(pid), context)) {
      if (hasBegun || observation.kind !== 'sample' || observation.metric !== METRIC.uptime.name)
        continue;
      hasBegun = true;
      setTimeout(() => stop.abort());
    }
    // An hour later would be too late for the test's own time.
    expect(hasBegun).toBe(true);
  });

  it('yields nothing when it is aborted before it begins', async () => {
    const { pid } = await startShell('echo; read nothing');
    const context = { signal: AbortSignal.abort(), clock: anchoredClock(takeAnchor()) };
    for await (const observation of collector.observe(targetOf(pid), context))
      expect(observation).toBeUndefined();
  });

  it('declares every metric, never goes back in time, and totals never fall', async () => {
    const started = await start(process.execPath, [
      '-e',
      'console.log(1); setInterval(() => { for (let i = 0; i < 1e5; i++); }, 1)',
    ]);
    const seen = await observe(targetOf(started.pid), readings(10));
    const declared = new Map(collector.metrics.map((metric) => [metric.name, metric]));
    const totals = new Map<string, number>();
    let last = 0;
    for (const one of seen) {
      if (one.kind !== 'sample') continue;
      const metric = declared.get(one.metric);
      expect(metric, one.metric).toBeDefined();
      expect(Number.isFinite(one.value)).toBe(true);
      expect(one.at).toBeGreaterThanOrEqual(last);
      last = one.at;
      if (metric?.instrument !== 'counter') continue;
      const key = one.metric + JSON.stringify(one.attributes);
      expect(one.value).toBeGreaterThanOrEqual(totals.get(key) ?? 0);
      totals.set(key, one.value);
    }
    // On this kernel, and as the owner, nothing declared is missing.
    const always = (names: readonly string[]) =>
      new Set(names.filter((name) => !NOT_ALWAYS.has(name)));
    expect(always(seen.flatMap((one) => (one.kind === 'sample' ? [one.metric] : [])))).toEqual(
      always([...declared.keys()]),
    );
  });

  it('does not throw when the target ends under it: an event, a gap, and the end', async () => {
    const started = await startShell('echo; read nothing');
    const target = targetOf(started.pid);
    const begun = observe(target, () => false);
    await end(started);
    const seen = await begun;
    expect(seen.at(-2)).toMatchObject({ kind: 'event', name: EVENT.targetExit, severity: 'warn' });
    expect(seen.at(-1)).toMatchObject({ kind: 'gap', collector: 'process', reason: 'target-gone' });
  });

  it('closes what it opened', async () => {
    const { pid } = await startShell('echo; read nothing');
    const open = () =>
      readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(`/proc/${pid}/`));
    await observe(targetOf(pid), readings(3));
    expect(open()).toEqual([]);
  });
});

/** What a descriptor of ours leads to; it may have been closed meanwhile. */
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}

describe('a process that has ended', () => {
  it('is told with its exit code while its parent has not taken it', async () => {
    // The shell starts a child that exits with 3 when told, and becomes a program that never waits.
    const started = await startShell(
      'exec 3<&0; { read go <&3; exit 3; } & echo $!; exec sleep 60',
    );
    await until(() => readStat(started.pid)?.comm === 'sleep');
    const { said } = started;
    const begun = observe(targetOf(Number(said)), () => false);
    started.child.stdin?.write('go\n');
    const seen = await begun;
    expect(seen.at(-2)).toMatchObject({ body: `pid ${said} exited with code 3` });
  });

  it('is not mistaken for the one that has its pid now', async () => {
    const { pid } = await startShell('echo; read nothing');
    const target = targetOf(pid);
    const earlier = { ...target, startTicks: target.startTicks - 1 };
    expect(await collector.probe(earlier)).toMatchObject({
      available: false,
      reason: `pid ${pid} is gone`,
    });
    const seen = await observe(earlier, () => false);
    expect(seen.map(({ kind }) => kind)).toEqual(['event', 'gap']);
  });
});

describe('what is seen', () => {
  it('follows memory, descriptors and threads of the target, as /proc has them', async () => {
    const started = await start(process.execPath, ['-e', PROGRAM]);
    const target = targetOf(started.pid);
    const last = async (metric: string) =>
      samplesOf(await observe(target, readings(2)), metric).at(-1)?.value ?? Number.NaN;
    const fds = await last(METRIC.fds.name);
    expect(fds).toBe(readdirSync(`/proc/${started.pid}/fd`).length);
    await tell(started, `Array.from({ length: 50 }, () => require('fs').openSync('/dev/null'))`);
    expect(await last(METRIC.fds.name)).toBe(fds + 50);
    const memory = await last(METRIC.memoryUsage.name);
    await tell(started, 'Buffer.alloc(64 << 20, 1)');
    expect((await last(METRIC.memoryUsage.name)) - memory).toBeGreaterThan(60 << 20);
    const threads = await last(METRIC.threads.name);
    await tell(
      started,
      `new (require('worker_threads').Worker)('setInterval(() => {}, 1e3)', { eval: true })`,
    );
    expect(await last(METRIC.threads.name)).toBeGreaterThan(threads);
    expect(await last(METRIC.threads.name)).toBe(readdirSync(`/proc/${started.pid}/task`).length);
  });

  it('tells the thread that burns CPU from the main thread that sleeps', async () => {
    // It says so once the worker burns: starting one keeps the main thread busy.
    const burn = `const { Worker } = require('worker_threads');
      const online = new Int32Array(new SharedArrayBuffer(4));
      new Worker('Atomics.store(require("worker_threads").workerData, 0, 1); for (;;);', { eval: true, workerData: online });
      const timer = setInterval(() => { if (online[0]) { clearInterval(timer); console.log('up'); setInterval(() => {}, 1e6); } }, 5)`;
    const { pid } = await start(process.execPath, ['-e', burn]);
    const useOf = (so: readonly Observation[]) => {
      const total = new Map<unknown, number>();
      for (const { attributes, value } of samplesOf(so, METRIC.threadCpuUtilization.name)) {
        const id = attributes?.[ATTR.threadId];
        if (id !== undefined) total.set(id, (total.get(id) ?? 0) + value * INTERVAL);
      }
      return [...total].toSorted(([, a], [, b]) => b - a);
    };
    const burnt = 0.2;
    const seen = await observe(targetOf(pid), (so) => (useOf(so)[0]?.[1] ?? 0) > burnt);
    const use = useOf(seen);
    expect(use[0]?.[0]).not.toBe(pid);
    expect(new Map(use).get(pid)).toBeLessThan(burnt / 4);
    // The main thread is there although it does nothing, with its wait for a core.
    expect(
      samplesOf(seen, METRIC.runQueueWait.name, { [ATTR.threadId]: pid }).length,
    ).toBeGreaterThan(5);
  });

  it('counts the context switches of all threads, also of those that have ended', async () => {
    const started = await start(process.execPath, ['-e', PROGRAM]);
    const parked = 300;
    const body = `const a = new Int32Array(new SharedArrayBuffer(4));
      for (;;) Atomics.wait(a, 0, 0, 1)`;
    await tell(
      started,
      `(globalThis.parking = new (require('worker_threads').Worker)(${JSON.stringify(body)}, { eval: true }), 0)`,
    );
    const switched = (seen: readonly Observation[]) =>
      samplesOf(seen, METRIC.contextSwitches.name, {
        [ATTR.contextSwitchType]: 'voluntary',
      }).map(({ value }) => value);
    let told = false;
    let readingsAtEnd = Number.POSITIVE_INFINITY;
    const seen = await observe(targetOf(started.pid), (so) => {
      if (!told && (switched(so).at(-1) ?? 0) >= parked) {
        told = true;
        started.child.stdout?.on('data', (text: Buffer) => {
          if (text.includes('over')) readingsAtEnd = switched(so).length;
        });
        void tell(started, `(parking.once('exit', () => console.log('over')).terminate(), 0)`);
      }
      return switched(so).length > readingsAtEnd + 2;
    });
    const counts = switched(seen);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(counts.at(-1)).toBeGreaterThanOrEqual(parked);
  });

  it('gives rates over the time between two readings, the first reading without', async () => {
    const { pid } = await startShell('echo; while :; do :; done');
    const seen = await observe(targetOf(pid), readings(8));
    const firstAt = seen[0]?.kind === 'sample' ? seen[0].at : Number.NaN;
    const rates = samplesOf(seen, METRIC.cpuUtilization.name);
    expect(rates[0]?.at).toBeGreaterThan(firstAt);
    const user = samplesOf(seen, METRIC.cpuTime.name, { [ATTR.cpuMode]: 'user' });
    const system = samplesOf(seen, METRIC.cpuTime.name, { [ATTR.cpuMode]: 'system' });
    const spent = (list: Sample[]) => (list.at(-1)?.value ?? 0) - (list[0]?.value ?? 0);
    const integral = rates.reduce(
      (sum, { at, value }, i) => sum + value * (at - (rates[i - 1]?.at ?? firstAt)),
      0,
    );
    expect(integral).toBeCloseTo(spent(user) + spent(system), 6);
    expect(integral).toBeGreaterThan(0);
  });

  it('is a gap when trace itself did not get to read in time', async () => {
    const { pid } = await startShell('echo; read nothing');
    let stalled = false;
    const seen = await observe(targetOf(pid), (so) => {
      if (readings(2)(so) && !stalled) {
        stalled = true;
        const until = performance.now() + INTERVAL * 5e3;
        while (performance.now() < until);
      }
      return readings(4)(so);
    });
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'gap', reason: 'late', collector: 'process' }),
    );
  });

  it('keeps its last partial interval when the run ends', async () => {
    const { pid } = await startShell('echo; read nothing');
    const stop = new AbortController();
    const slow = processCollector({ interval: 3600 });
    const context = { signal: stop.signal, clock: anchoredClock(takeAnchor()) };
    const at = new Set<number>();
    for await (const one of slow.observe(targetOf(pid), context)) {
      if (one.kind === 'sample') at.add(one.at);
      setTimeout(() => stop.abort(), 150);
    }
    expect(at.size).toBe(2);
    expect(readStat(pid)?.state).toMatch(/[SR]/);
  });
});
