import type { Bytes, Ratio, Seconds } from '../../src/core/types.ts';
import { busKey } from './faults.ts';
import { FIELD, type FieldNames, REASON_FIELD, REASON_TIME_FIELD } from './fields.ts';
import type { Row } from './table.ts';
import { flagOf, numberOf, textOf } from './values.ts';

/** One line of the query for GPUs, understood. Null is everywhere what this GPU or this driver does not tell. */
export interface GpuReading {
  /** By what other lists know it too: PCI address, else UUID, else index. */
  readonly key: string;
  readonly index: number | null;
  readonly uuid: string | null;
  readonly name: string | null;
  readonly driver: string | null;
  /** Whether the driver stays loaded while nobody uses the GPU. */
  readonly isPersistent: boolean | null;
  readonly hasMig: boolean;
  readonly utilization: Ratio | null;
  readonly encoder: Ratio | null;
  readonly decoder: Ratio | null;
  readonly memoryActivity: Ratio | null;
  readonly memoryUsed: Bytes | null;
  readonly memoryTotal: Bytes | null;
  readonly power: number | null;
  readonly powerLimit: number | null;
  readonly temperature: number | null;
  readonly temperatureMemory: number | null;
  readonly temperatureMargin: number | null;
  /** Hz. */
  readonly clockSm: number | null;
  readonly clockMemory: number | null;
  readonly clockSmLimit: number | null;
  readonly clockMemoryLimit: number | null;
  readonly linkGeneration: number | null;
  readonly linkGenerationLimit: number | null;
  readonly linkWidth: number | null;
  readonly linkWidthLimit: number | null;
  readonly eccUncorrected: number | null;
  readonly eccCorrected: number | null;
  /** Why its clocks are held down, and for how long they have been. */
  readonly throttled: ReadonlyMap<string, boolean>;
  readonly throttledTime: ReadonlyMap<string, Seconds>;
  /** What waits for a repair or asks for an action, by name. */
  readonly repairs: ReadonlyMap<string, boolean>;
  /** A cell that says that the GPU is no longer there. */
  readonly fault: string | null;
}

/** No GPU has more, and none less: a number beyond is not what it is called. */
const BOUNDS: Readonly<
  Record<'ratio' | 'memory' | 'power' | 'temperature' | 'clock', readonly [number, number]>
> = {
  ratio: [0, 1],
  memory: [0, 4 * 2 ** 40],
  power: [0, 20_000],
  temperature: [-100, 250],
  clock: [0, 20e9],
};

const LOST = /\[?GPU (?:is lost|requires reset)\]?/i;
const ACTION = /^(?:gpu )?(?:reset|reboot|drain\b[\w ]{0,40})$/i;

/** Null for a row that names no GPU. */
export function readingOf(row: Row): GpuReading | null {
  const text = (names: FieldNames): string | null => textOf(row.cell(names));
  const number = (names: FieldNames, unit: string | null): number | null =>
    numberOf(row.cell(names), unit, row.unit(names));
  const within = (bounds: keyof typeof BOUNDS, names: FieldNames, unit: string): number | null => {
    const value = number(names, unit);
    const [least, most] = BOUNDS[bounds];
    return value === null || value < least || value > most ? null : value;
  };
  const [uuid, bus, index] = [text(FIELD.uuid), text(FIELD.busId), number(FIELD.index, null)];
  const key = bus === null ? (uuid ?? (index === null ? null : `GPU ${index}`)) : busKey(bus);
  if (key === null) return null;
  const memoryTotal = within('memory', FIELD.memoryTotal, 'MiB');
  const memoryUsed = within('memory', FIELD.memoryUsed, 'MiB');
  return {
    key,
    index,
    uuid,
    name: text(FIELD.name),
    driver: text(FIELD.driver),
    isPersistent: flagOf(row.cell(FIELD.persistence)),
    hasMig: flagOf(row.cell(FIELD.mig)) === true,
    utilization: within('ratio', FIELD.utilization, '%'),
    encoder: within('ratio', FIELD.encoder, '%'),
    decoder: within('ratio', FIELD.decoder, '%'),
    memoryActivity: within('ratio', FIELD.memoryActivity, '%'),
    memoryUsed: (memoryUsed ?? 0) > (memoryTotal ?? Infinity) ? null : memoryUsed,
    memoryTotal: memoryTotal === 0 ? null : memoryTotal,
    power: within('power', FIELD.power, 'W') ?? within('power', FIELD.powerInstant, 'W'),
    powerLimit: within('power', FIELD.powerLimit, 'W'),
    temperature: within('temperature', FIELD.temperature, 'C'),
    temperatureMemory: within('temperature', FIELD.temperatureMemory, 'C'),
    temperatureMargin: within('temperature', FIELD.temperatureMargin, 'C'),
    clockSm: within('clock', FIELD.clockSm, 'MHz'),
    clockMemory: within('clock', FIELD.clockMemory, 'MHz'),
    clockSmLimit: within('clock', FIELD.clockSmLimit, 'MHz'),
    clockMemoryLimit: within('clock', FIELD.clockMemoryLimit, 'MHz'),
    linkGeneration: number(FIELD.linkGeneration, null),
    linkGenerationLimit: number(FIELD.linkGenerationLimit, null),
    linkWidth: number(FIELD.linkWidth, null),
    linkWidthLimit: number(FIELD.linkWidthLimit, null),
    eccUncorrected: number(FIELD.eccUncorrected, null),
    eccCorrected: number(FIELD.eccCorrected, null),
    throttled: present(REASON_FIELD, (names) => flagOf(row.cell(names))),
    throttledTime: present(REASON_TIME_FIELD, (names) => number(names, 'us')),
    repairs: repairsOf(row),
    fault: LOST.exec(row.line)?.[0] ?? null,
  };
}

const REPAIRS: ReadonlyMap<string, FieldNames> = new Map([
  ['remapped_rows.pending', FIELD.rowsPending],
  ['remapped_rows.failure', FIELD.rowsFailed],
  ['retired_pages.pending', FIELD.pagesPending],
  ['sram.threshold_exceeded', FIELD.sramThreshold],
]);

function repairsOf(row: Row): ReadonlyMap<string, boolean> {
  const repairs = new Map(present(REPAIRS, (names) => flagOf(row.cell(names))));
  const action = row.cell(FIELD.recovery)?.trim() ?? '';
  if (ACTION.test(action))
    repairs.set(`recovery.${action.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')}`, true);
  return repairs;
}

function present<T>(
  fields: ReadonlyMap<string, FieldNames>,
  read: (names: FieldNames) => T | null,
): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  for (const [name, names] of fields) {
    const value = read(names);
    if (value !== null) found.set(name, value);
  }
  return found;
}
