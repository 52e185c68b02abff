import { ATTR, METRIC } from '../../src/core/semconv.ts';
import type { Attributes, Metric, Sample, Seconds } from '../../src/core/types.ts';
import { clockTicks, uptime } from '../../src/platform/proc.ts';
import { CGROUP_METRICS, addCgroup } from './cgroup-samples.ts';
import type { ProcessReading } from './readings.ts';

/** From two readings to samples: levels and totals as they stand, rates over the time between the two. */

/** A reading and when it was taken. */
export interface TimedReading {
  readonly at: Seconds;
  readonly reading: ProcessReading;
}

/** Every metric that `samplesOf` can give. */
export const PROCESS_METRICS: readonly Metric[] = [
  METRIC.cpuTime,
  METRIC.cpuUtilization,
  METRIC.memoryUsage,
  METRIC.memoryByKind,
  METRIC.memoryVirtual,
  METRIC.swap,
  METRIC.stopped,
  METRIC.threads,
  METRIC.fds,
  METRIC.diskIo,
  METRIC.ioSyscalls,
  METRIC.contextSwitches,
  METRIC.faults,
  METRIC.threadCpuUtilization,
  METRIC.runQueueWait,
  METRIC.uptime,
  METRIC.descriptors,
  METRIC.sockets,
  METRIC.threadsByName,
  ...CGROUP_METRICS,
];

/** The name under which threads that are not told apart are summed. */
export const OTHER_THREADS = '(other threads)';

/** Rates need `before`; the first reading gives levels and totals alone. */
export function samplesOf(now: TimedReading, before: TimedReading | null): readonly Sample[] {
  const at = now.at;
  const samples: Sample[] = [];
  const add = (metric: Metric, value: number | null | undefined, attributes?: Attributes): void => {
    // What could not be read is left out: it is not zero.
    if (value === null || value === undefined || !Number.isFinite(value)) return;
    const sample = { kind: 'sample', at, metric: metric.name, value } as const;
    samples.push(attributes === undefined ? sample : { ...sample, attributes });
  };
  const { stat, status, io, descriptors, sweep, threads, cgroup } = now.reading;
  const tick = 1 / clockTicks();

  add(METRIC.cpuTime, stat.userTicks * tick, { [ATTR.cpuMode]: 'user' });
  add(METRIC.cpuTime, stat.systemTicks * tick, { [ATTR.cpuMode]: 'system' });
  // `status` sums the counters of all cores; `stat` and `statm` may be off by some hundred pages a core (Linux 6.2 and later).
  add(METRIC.memoryUsage, status.residentBytes);
  add(METRIC.memoryByKind, status.anonymousBytes, { [ATTR.memoryKind]: 'anonymous' });
  add(METRIC.memoryByKind, status.fileBytes, { [ATTR.memoryKind]: 'file' });
  add(METRIC.memoryByKind, status.sharedBytes, { [ATTR.memoryKind]: 'shared' });
  add(METRIC.memoryVirtual, status.virtualBytes);
  add(METRIC.swap, status.swapBytes);
  // Hardly ever so, and then it explains everything: only said where it is.
  if (stat.state === 'T' || stat.state === 't' || cgroup.frozen) add(METRIC.stopped, 1);
  add(METRIC.threads, status.threads ?? stat.threads);
  add(METRIC.fds, descriptors);
  for (const [kind, count] of sweep?.kinds ?? []) {
    add(METRIC.descriptors, count, { [ATTR.descriptorKind]: kind });
  }
  for (const { state, peer, count } of sweep?.sockets ?? []) {
    const whose: Attributes = peer === '' ? {} : { [ATTR.socketPeer]: peer };
    add(METRIC.sockets, count, { [ATTR.connectionState]: state, ...whose });
  }
  for (const [name, count] of threads.names ?? []) {
    add(METRIC.threadsByName, count, { [ATTR.threadName]: name });
  }
  add(METRIC.diskIo, io?.readStorage, { [ATTR.diskIoDirection]: 'read' });
  add(METRIC.diskIo, io?.writeStorage, { [ATTR.diskIoDirection]: 'write' });
  add(METRIC.ioSyscalls, io?.readCalls, { [ATTR.diskIoDirection]: 'read' });
  add(METRIC.ioSyscalls, io?.writeCalls, { [ATTR.diskIoDirection]: 'write' });
  const { switches } = threads;
  add(METRIC.contextSwitches, switches?.voluntary, { [ATTR.contextSwitchType]: 'voluntary' });
  add(METRIC.contextSwitches, switches?.involuntary, { [ATTR.contextSwitchType]: 'involuntary' });
  add(METRIC.faults, stat.minorFaults, { [ATTR.pagingFaultType]: 'minor' });
  add(METRIC.faults, stat.majorFaults, { [ATTR.pagingFaultType]: 'major' });
  add(METRIC.uptime, Math.max(0, uptime() - stat.startTicks * tick));
  addCgroup(cgroup, add);
  if (before !== null) addRates(now, before, add);
  return samples;
}

function addRates(
  now: TimedReading,
  before: TimedReading,
  add: (metric: Metric, value: number, attributes?: Attributes) => void,
): void {
  const elapsed = now.at - before.at;
  if (elapsed <= 0) return;
  const { stat, threads } = now.reading;
  const earlier = before.reading.stat;
  const ticks = stat.userTicks + stat.systemTicks - earlier.userTicks - earlier.systemTicks;
  const total = ticks / clockTicks() / elapsed;
  add(METRIC.cpuUtilization, total);
  if (threads.reported.length === 0) return;
  let told = 0;
  for (const thread of threads.reported) {
    const attributes = { [ATTR.threadId]: thread.id, [ATTR.threadName]: thread.name };
    const share = thread.onCpuNs / 1e9 / elapsed;
    told += share;
    add(METRIC.threadCpuUtilization, share, attributes);
    if (thread.id === stat.pid)
      add(METRIC.runQueueWait, thread.runQueueWaitNs / 1e9 / elapsed, attributes);
  }
  // Two clocks are subtracted here, one of them in steps of 10 ms: what is left may come out slightly below nothing.
  add(METRIC.threadCpuUtilization, Math.max(0, total - told), { [ATTR.threadName]: OTHER_THREADS });
}
