import { CGROUP_ATTR, CGROUP_METRIC } from '../../src/core/semconv-cgroup.ts';
import { printable } from '../../src/core/text.ts';
import type { Attributes, Metric } from '../../src/core/types.ts';
import type { CgroupReading } from '../../src/platform/cgroup-reader.ts';

/** What is told of the control groups that limit a process. Without a limit: only whether the kernel killed in them. */

export const CGROUP_METRICS: readonly Metric[] = Object.values(CGROUP_METRIC);

/** Longer paths are cut: a pod's is about 180 characters. */
const FOLDER_LENGTH = 300;

export function addCgroup(
  { cpu, memory, oomKills }: CgroupReading,
  add: (metric: Metric, value: number | null, attributes?: Attributes) => void,
): void {
  if (cpu !== null) {
    add(CGROUP_METRIC.cgroupCpuLimit, cpu.limit, folderOf(cpu));
    add(CGROUP_METRIC.containerCpuTime, cpu.used);
    add(CGROUP_METRIC.cgroupPeriods, cpu.periods);
    add(CGROUP_METRIC.cgroupThrottledPeriods, cpu.throttledPeriods);
    add(CGROUP_METRIC.cgroupThrottledTime, cpu.throttled);
  }
  if (memory !== null) {
    add(CGROUP_METRIC.cgroupMemoryLimit, memory.limit, folderOf(memory));
    add(CGROUP_METRIC.cgroupMemoryHigh, memory.high, folderOf(memory));
    add(CGROUP_METRIC.containerMemoryUsage, memory.usage);
    add(CGROUP_METRIC.containerWorkingSet, memory.workingSet);
    add(CGROUP_METRIC.cgroupUnreclaimable, memory.unreclaimable);
    add(CGROUP_METRIC.cgroupMemoryEvents, memory.atLimit, event('max'));
    add(CGROUP_METRIC.cgroupMemoryEvents, memory.atHigh, event('high'));
  }
  add(CGROUP_METRIC.cgroupMemoryEvents, oomKills, event('oom_kill'));
}

function folderOf({ folder }: { readonly folder: string }): Attributes {
  return { [CGROUP_ATTR.folder]: printable(folder, FOLDER_LENGTH) };
}

function event(name: string): Attributes {
  return { [CGROUP_ATTR.memoryEvent]: name };
}
