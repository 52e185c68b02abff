import type { Metric } from './types.ts';

/**
 * What a control group tells of the processes in it together. OpenTelemetry's names of containers where they have the meaning; limits and
 * throttling have none there.
 */

export type CgroupMetricKey =
  | 'containerCpuTime'
  | 'containerMemoryUsage'
  | 'containerWorkingSet'
  | 'cgroupCpuLimit'
  | 'cgroupPeriods'
  | 'cgroupThrottledPeriods'
  | 'cgroupThrottledTime'
  | 'cgroupMemoryLimit'
  | 'cgroupMemoryHigh'
  | 'cgroupUnreclaimable'
  | 'cgroupMemoryEvents';

export const CGROUP_METRIC: Readonly<Record<CgroupMetricKey, Metric>> = {
  containerCpuTime: {
    name: 'container.cpu.time',
    unit: 's',
    instrument: 'counter',
    description: 'CPU time of all processes in the control group that limits the process',
  },
  containerMemoryUsage: {
    name: 'container.memory.usage',
    unit: 'By',
    instrument: 'updowncounter',
    description: 'memory charged to the control group, with the page cache',
  },
  containerWorkingSet: {
    name: 'container.memory.working_set',
    unit: 'By',
    instrument: 'updowncounter',
    description: 'that without file pages not used lately, as the kubelet counts it',
  },
  cgroupCpuLimit: {
    name: 'tracewright.cgroup.cpu.limit',
    unit: '{cpu}',
    instrument: 'gauge',
    description: 'cores that the control group may use: quota over period',
  },
  cgroupPeriods: {
    name: 'tracewright.cgroup.cpu.periods',
    unit: '{period}',
    instrument: 'counter',
    description: 'periods of the quota in which the group had something to run',
  },
  cgroupThrottledPeriods: {
    name: 'tracewright.cgroup.cpu.throttled.periods',
    unit: '{period}',
    instrument: 'counter',
    description: 'those of them in which the quota was used up and the group was stopped',
  },
  cgroupThrottledTime: {
    name: 'tracewright.cgroup.cpu.throttled.time',
    unit: 's',
    instrument: 'counter',
    description: 'how long it was stopped, summed over the cores it was stopped on',
  },
  cgroupMemoryLimit: {
    name: 'tracewright.cgroup.memory.limit',
    unit: 'By',
    instrument: 'gauge',
    description: 'memory.max: above it the kernel ends processes',
  },
  cgroupMemoryHigh: {
    name: 'tracewright.cgroup.memory.high',
    unit: 'By',
    instrument: 'gauge',
    description: 'memory.high: above it the kernel holds up whoever asks for more',
  },
  cgroupUnreclaimable: {
    name: 'tracewright.cgroup.memory.unreclaimable',
    unit: 'By',
    instrument: 'updowncounter',
    description: 'memory of the control group without the page cache: what the kernel cannot drop',
  },
  cgroupMemoryEvents: {
    name: 'tracewright.cgroup.memory.events',
    unit: '{event}',
    instrument: 'counter',
    description: 'how often a memory limit was met (max, high), and processes killed (oom_kill)',
  },
};

export const CGROUP_ATTR = {
  /** Where the limit was read, so that it can be read again. */
  folder: 'tracewright.cgroup.folder',
  /** `max`, `high` or `oom_kill`, as memory.events spells them. */
  memoryEvent: 'tracewright.cgroup.memory.event',
} as const;
