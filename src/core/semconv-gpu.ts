import type { Metric } from './types.ts';

/**
 * What is measured of GPUs. `hw.*` are OpenTelemetry's names (semantic conventions for hardware, v1.44.0); what these do not have (clocks, reasons of
 * throttling, the link to the host, processes) has ours.
 */

/** @see https://opentelemetry.io/docs/specs/semconv/hardware/gpu/ */
export const GPU_ATTR = {
  /** The UUID, also of a MIG slice; with the bus address behind it where several GPUs give the same. */
  id: 'hw.id',
  name: 'hw.name',
  vendor: 'hw.vendor',
  type: 'hw.type',
  driverVersion: 'hw.driver_version',
  /** Of a MIG slice: the GPU that it is a part of. */
  parent: 'hw.parent',
  /** `general`, `encoder`, `decoder`. */
  task: 'hw.gpu.task',
  /** `gpu`, `memory`. */
  sensor: 'hw.sensor_location',
  /** `ok`, `degraded`, `failed`. */
  state: 'hw.state',
  errorType: 'error.type',
  /** As nvidia-smi counts, from 0, in the order of the bus. */
  index: 'tracewright.gpu.index',
  /** Of a MIG slice: its GPU instance and its compute instance. */
  instance: 'tracewright.gpu.mig.instance',
  /** `sm`, `memory`. */
  clock: 'tracewright.gpu.clock',
  /** Why the clocks are held down, as in `clocks_event_reasons.*`: `sw_power_cap`, `hw_thermal_slowdown`, … */
  reason: 'tracewright.gpu.throttle.reason',
  /** `remapped_rows.pending` and the like; `recovery.<action>` for what the driver asks for. */
  repair: 'tracewright.gpu.repair',
  /** Of an event: `lost`, `no-handle`, `reset-required`, `driver`, `xid`. */
  fault: 'tracewright.gpu.fault',
  xid: 'tracewright.gpu.xid',
  /** PCI address, as far as the message that tells of the fault has one. */
  busId: 'tracewright.gpu.bus_id',
} as const;

export const GPU_EVENT = {
  /** A fault that the driver or the kernel put into words; the body is these words. */
  fault: 'tracewright.gpu.fault',
} as const;

export type GpuMetricKey =
  | 'gpuUtilization'
  | 'gpuMemoryUsage'
  | 'gpuMemoryLimit'
  | 'gpuMemoryUtilization'
  | 'gpuMemoryActivity'
  | 'gpuPower'
  | 'gpuPowerLimit'
  | 'gpuTemperature'
  | 'gpuTemperatureMargin'
  | 'gpuErrors'
  | 'gpuStatus'
  | 'gpuClock'
  | 'gpuClockLimit'
  | 'gpuThrottled'
  | 'gpuThrottledTime'
  | 'gpuLinkGeneration'
  | 'gpuLinkGenerationLimit'
  | 'gpuLinkWidth'
  | 'gpuLinkWidthLimit'
  | 'gpuRepair'
  | 'gpuProcessMemory'
  | 'gpuProcessUtilization'
  | 'gpuMemoryOthers';

const gauge = (name: string, unit: string, description: string): Metric => ({
  name,
  unit,
  instrument: 'gauge',
  description,
});
const counter = (name: string, unit: string, description: string): Metric => ({
  ...gauge(name, unit, description),
  instrument: 'counter',
});
const updown = (name: string, unit: string, description: string): Metric => ({
  ...gauge(name, unit, description),
  instrument: 'updowncounter',
});

export const GPU_METRIC: Readonly<Record<GpuMetricKey, Metric>> = {
  gpuUtilization: gauge(
    'hw.gpu.utilization',
    '1',
    'share of the last sample period (1/6 to 1 s) in which a kernel ran, or an engine worked',
  ),
  gpuMemoryUsage: updown('hw.gpu.memory.usage', 'By', 'memory that contexts have taken'),
  gpuMemoryLimit: updown('hw.gpu.memory.limit', 'By', 'memory of the GPU, or of a MIG slice'),
  gpuMemoryUtilization: gauge('hw.gpu.memory.utilization', '1', 'memory taken over memory there'),
  gpuMemoryActivity: gauge(
    'tracewright.gpu.memory.activity',
    '1',
    'share of the last sample period in which memory was read or written',
  ),
  gpuPower: gauge('hw.power', 'W', 'power drawn'),
  gpuPowerLimit: gauge('tracewright.gpu.power.limit', 'W', 'power that is enforced at most'),
  gpuTemperature: gauge('hw.temperature', 'Cel', 'temperature of the GPU and of its memory'),
  gpuTemperatureMargin: gauge(
    'tracewright.gpu.temperature.margin',
    'Cel',
    'degrees left to the temperature from which on it slows down',
  ),
  gpuErrors: counter(
    'hw.errors',
    '{error}',
    'ECC errors since the driver was loaded, those that could be corrected and those that could not',
  ),
  gpuStatus: updown('hw.status', '1', '1 for the state the GPU is in, 0 for the others'),
  gpuClock: gauge(
    'tracewright.gpu.clock.frequency',
    'Hz',
    'clock of the multiprocessors, of memory',
  ),
  gpuClockLimit: gauge('tracewright.gpu.clock.limit', 'Hz', 'the highest that each clock goes to'),
  gpuThrottled: gauge(
    'tracewright.gpu.throttle.active',
    '1',
    '1 while the clocks are held down, by reason',
  ),
  gpuThrottledTime: counter(
    'tracewright.gpu.throttle.time',
    's',
    'time in which the clocks were held down, by reason, as the driver counts it',
  ),
  gpuLinkGeneration: gauge('tracewright.gpu.pcie.generation', '1', 'PCIe generation in use'),
  gpuLinkGenerationLimit: gauge(
    'tracewright.gpu.pcie.generation.limit',
    '1',
    'PCIe generation that GPU and host could use',
  ),
  gpuLinkWidth: gauge('tracewright.gpu.pcie.width', '{lane}', 'PCIe lanes in use'),
  gpuLinkWidthLimit: gauge('tracewright.gpu.pcie.width.limit', '{lane}', 'PCIe lanes there are'),
  gpuRepair: gauge(
    'tracewright.gpu.repair.needed',
    '1',
    '1 where memory waits for a repair or could not be repaired, or the driver asks for an action',
  ),
  gpuProcessMemory: updown(
    'tracewright.process.gpu.memory.usage',
    'By',
    'GPU memory that a process of the target has taken',
  ),
  gpuProcessUtilization: gauge(
    'tracewright.process.gpu.utilization',
    '1',
    'share of time in which a kernel of the process ran',
  ),
  gpuMemoryOthers: updown(
    'tracewright.gpu.memory.others',
    'By',
    'GPU memory that processes have taken which are not the target’s',
  ),
};
