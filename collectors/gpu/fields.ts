/**
 * What is asked of each GPU. nvidia-smi refuses a query with one name that it does not know, and its names change: which it knows is read from
 * `--help-query-gpu` first. Names of drivers 535 to 610.
 */

/** A property of a GPU, by all names it has had; the first that is known is asked for. */
export type FieldNames = readonly [string, ...string[]];

type FieldKey =
  | 'index'
  | 'uuid'
  | 'name'
  | 'busId'
  | 'driver'
  | 'persistence'
  | 'mig'
  | 'utilization'
  | 'memoryActivity'
  | 'encoder'
  | 'decoder'
  | 'memoryTotal'
  | 'memoryUsed'
  | 'power'
  | 'powerInstant'
  | 'powerLimit'
  | 'temperature'
  | 'temperatureMemory'
  | 'temperatureMargin'
  | 'clockSm'
  | 'clockMemory'
  | 'clockSmLimit'
  | 'clockMemoryLimit'
  | 'linkGeneration'
  | 'linkGenerationLimit'
  | 'linkWidth'
  | 'linkWidthLimit'
  | 'eccUncorrected'
  | 'eccCorrected'
  | 'sramThreshold'
  | 'rowsPending'
  | 'rowsFailed'
  | 'pagesPending'
  | 'recovery';

export const FIELD: Readonly<Record<FieldKey, FieldNames>> = {
  index: ['index'],
  uuid: ['uuid', 'gpu_uuid'],
  name: ['name', 'gpu_name'],
  busId: ['pci.bus_id', 'gpu_bus_id'],
  driver: ['driver_version'],
  persistence: ['persistence_mode'],
  mig: ['mig.mode.current'],
  utilization: ['utilization.gpu'],
  memoryActivity: ['utilization.memory'],
  encoder: ['utilization.encoder'],
  decoder: ['utilization.decoder'],
  memoryTotal: ['memory.total'],
  memoryUsed: ['memory.used'],
  power: ['power.draw', 'power.draw.average', 'gpu.power.draw.average'],
  powerInstant: ['power.draw.instant', 'gpu.power.draw.instant'],
  powerLimit: ['enforced.power.limit', 'gpu.power.current_limit'],
  temperature: ['temperature.gpu'],
  temperatureMemory: ['temperature.memory'],
  temperatureMargin: ['temperature.gpu.tlimit'],
  clockSm: ['clocks.current.sm', 'clocks.sm'],
  clockMemory: ['clocks.current.memory', 'clocks.mem'],
  clockSmLimit: ['clocks.max.sm'],
  clockMemoryLimit: ['clocks.max.memory', 'clocks.max.mem'],
  linkGeneration: ['pcie.link.gen.current', 'pcie.link.gen.gpucurrent'],
  linkGenerationLimit: ['pcie.link.gen.max'],
  linkWidth: ['pcie.link.width.current'],
  linkWidthLimit: ['pcie.link.width.max'],
  eccUncorrected: ['ecc.errors.uncorrected.volatile.total'],
  eccCorrected: ['ecc.errors.corrected.volatile.total'],
  sramThreshold: ['ecc.errors.uncorrected.aggregate.sram.thresholdExceeded'],
  rowsPending: ['remapped_rows.pending'],
  rowsFailed: ['remapped_rows.failure'],
  pagesPending: ['retired_pages.pending'],
  recovery: ['gpu_recovery_action'],
};

/** Reasons to hold the clocks down that are trouble: not that there is nothing to do, nor that somebody set a clock. */
const THROTTLE_REASONS: readonly string[] = [
  'sw_power_cap',
  'hw_slowdown',
  'hw_thermal_slowdown',
  'hw_power_brake_slowdown',
  'sw_thermal_slowdown',
];

/** Whether the clocks are held down for that reason now, by reason. */
export const REASON_FIELD: ReadonlyMap<string, FieldNames> = new Map(
  THROTTLE_REASONS.map((reason) => [
    reason,
    [`clocks_event_reasons.${reason}`, `clocks_throttle_reasons.${reason}`],
  ]),
);

/** For how long they have been, in all. */
export const REASON_TIME_FIELD: ReadonlyMap<string, FieldNames> = new Map(
  THROTTLE_REASONS.map((reason) => [reason, [`clocks_event_reasons_counters.${reason}`]]),
);

const ALL: readonly FieldNames[] = [
  ...Object.values(FIELD),
  ...REASON_FIELD.values(),
  ...REASON_TIME_FIELD.values(),
];

/** Every name that a header may have. */
export const KNOWN_FIELDS: ReadonlySet<string> = new Set(ALL.flat());

/** The names that `--help-query-gpu` lists: lines of `"name"` or `"name" or "other name"`. */
export function listedFields(help: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const line of help.split('\n')) {
    if (!/^\s*"[^"]+"(?:\s+or\s+"[^"]+")*\s*:?\s*$/.test(line)) continue;
    for (const [, name = ''] of line.matchAll(/"([^"]+)"/g)) names.add(name);
  }
  return names;
}

/** What to ask of a driver that lists these names, each property once. Empty where it lists none of ours. */
export function queryFor(listed: ReadonlySet<string>): readonly string[] {
  return ALL.flatMap((names) => names.find((name) => listed.has(name)) ?? []);
}
