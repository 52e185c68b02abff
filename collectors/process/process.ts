import { setTimeout as sleep } from 'node:timers/promises';
import { ATTR, EVENT } from '../../src/core/semconv.ts';
import { printable } from '../../src/core/text.ts';
import type {
  Attributes,
  Collector,
  Event,
  Gap,
  Observation,
  ObserveContext,
  ProcessTarget,
  Seconds,
} from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { kernelVerdict } from '../../src/platform/kernel-log.ts';
import { nextMoment, untilMoment } from '../../src/platform/common-moment.ts';
import { judgeAccess } from '../../src/platform/permission.ts';
import { uptime } from '../../src/platform/proc.ts';
import { isSameProcess } from '../../src/platform/target.ts';
import { type ProcessEnd, ProcessReader } from './readings.ts';
import { PROCESS_METRICS, type TimedReading, samplesOf } from './samples.ts';

/**
 * CPU, memory, threads, descriptors, I/O and scheduling of a process, from /proc, nothing executed in it. `smaps` is never read:
 * it holds the target's mmap lock (54 ms for a mapping of 6 GiB).
 */

/** Once a second: the rate `top` made familiar, and the period of a line in the recording. */
const INTERVAL: Seconds = 1;

/** A last reading that comes sooner than this after the one before gives rates in steps of 10 % or more: not worth taking. */
const SHORTEST_LAST_INTERVAL: Seconds = 0.1;

/** Exit statuses by pid, as far as they were heard. */
export interface ExitStatuses {
  /** In wait(2)'s encoding; null when it was not heard. */
  statusOf(pid: number): number | null;
}

export interface ProcessCollectorOptions {
  /** Time between two readings. */
  readonly interval?: Seconds;
  /** Knows how processes ended whose parents took the exit status at once. */
  readonly exits?: ExitStatuses | null;
}

export function processCollector(options: ProcessCollectorOptions = {}): Collector<ProcessTarget> {
  const { interval = INTERVAL, exits = null } = options;
  return {
    name: NAME,
    metrics: PROCESS_METRICS,
    async probe(target) {
      if (!isSameProcess(target))
        return { available: false, reason: `pid ${target.pid} is gone`, remedy: null };
      const { stats, details } = judgeAccess(target);
      if (!stats.available || details.available) return stats;
      return { available: true, detail: `without bytes read and written (${details.reason})` };
    },
    observe: (target, context) => observe(target, { ...context, interval, exits }),
  };
}

const NAME = 'process';

async function* observe(
  target: ProcessTarget,
  {
    signal,
    clock,
    interval,
    exits,
  }: ObserveContext & { readonly interval: Seconds; readonly exits: ExitStatuses | null },
): AsyncGenerator<Observation> {
  const reader = new ProcessReader(target);
  let last: TimedReading | null = null;
  let noted = false;
  try {
    while (!signal.aborted || isWorthAnother(last, clock.now())) {
      const reading = reader.read();
      const at = clock.now();
      if ('exitStatus' in reading) {
        const name = last?.reading.stat.comm ?? '';
        const heard = reading.exitStatus === null ? await hear(target.pid, exits) : null;
        const end = { ...reading, exitStatus: reading.exitStatus ?? heard };
        yield* farewell(target, end, { from: last?.at ?? at, to: at, name });
        return;
      }
      const gap = lateness(last, at, interval);
      if (gap !== null) yield gap;
      yield* samplesOf({ at, reading }, last);
      if (reading.threads.unfollowed > 0 && !noted) {
        noted = true;
        yield unfollowedNote(at, reading.threads.unfollowed);
      }
      last = { at, reading };
      if (signal.aborted) return;
      const now = clock.mono();
      await untilMoment(nextMoment(now, interval), { now, signal });
    }
  } finally {
    reader.close();
  }
}

/** When the run ends between two readings, the part of an interval since the last one is still seen. */
function isWorthAnother(last: TimedReading | null, now: Seconds): boolean {
  return last !== null && now - last.at >= SHORTEST_LAST_INTERVAL;
}

/** A reading a whole interval late leaves a stretch of which only the mean is known. */
function lateness(last: TimedReading | null, at: Seconds, interval: Seconds): Gap | null {
  if (last === null || at - last.at < 2 * interval) return null;
  const late = at - last.at - interval;
  return {
    kind: 'gap',
    from: last.at + interval,
    to: at,
    collector: NAME,
    reason: 'late',
    detail: `the reading due then came ${formatSeconds(late)} late: trace did not get the CPU`,
  };
}

function unfollowedNote(at: Seconds, count: number): Event {
  return {
    kind: 'event',
    at,
    name: EVENT.note,
    severity: 'info',
    body: `${count} threads are counted in the process's totals, but not told apart`,
  };
}

/** The news of an exit takes a moment through another process. */
const HEARING_TAKES: Seconds = 0.1;

async function hear(pid: number, exits: ExitStatuses | null): Promise<number | null> {
  if (exits === null) return null;
  const known = exits.statusOf(pid);
  if (known !== null) return known;
  await sleep(HEARING_TAKES * 1e3);
  return exits.statusOf(pid);
}

/** The kernel writes the end of a process down before it is one; its clock and ours may differ by a little. */
const KERNEL_LOG_MARGIN: Seconds = 2;

function* farewell(
  target: ProcessTarget,
  end: ProcessEnd,
  { from, to, name }: { from: Seconds; to: Seconds; name: string },
): Generator<Observation> {
  const how = describeExit(end.exitStatus);
  const logged = kernelVerdict(target.pid, name, uptime() - (to - from) - KERNEL_LOG_MARGIN);
  yield {
    kind: 'event',
    at: to,
    name: EVENT.targetExit,
    severity: 'warn',
    body: `pid ${target.pid} ${how}`,
    attributes: {
      ...exitAttributes(end.exitStatus),
      ...(logged === null
        ? causeByCgroup(end)
        : { [ATTR.exitCause]: logged.cause, [ATTR.kernelLog]: printable(logged.text, 300) }),
    },
  };
  yield {
    kind: 'gap',
    from,
    to,
    collector: NAME,
    reason: 'target-gone',
    detail: `pid ${target.pid} ${how} after the last reading`,
  };
}

/** wait(2): the low 7 bits are the signal, the next 8 the code. */
function splitStatus(status: number): { readonly signal: number; readonly code: number } {
  return { signal: status & 0x7f, code: (status >> 8) & 0xff };
}

function exitAttributes(status: number | null): Attributes {
  if (status === null) return {};
  const { signal, code } = splitStatus(status);
  return signal === 0 ? { [ATTR.exitCode]: code } : { [ATTR.exitSignal]: signal };
}

const SIGKILL = 9;

/** Where the kernel's log may not be read, its count tells: it killed in the same group in the same second. */
function causeByCgroup({ exitStatus, oomKills }: ProcessEnd): Attributes {
  const isFitting = exitStatus === null || splitStatus(exitStatus).signal === SIGKILL;
  return oomKills > 0 && isFitting ? { [ATTR.exitCause]: 'cgroup-out-of-memory' } : {};
}

function describeExit(status: number | null): string {
  if (status === null) return 'ended';
  const { signal, code } = splitStatus(status);
  return signal === 0 ? `exited with code ${code}` : `was killed by signal ${signal}`;
}
