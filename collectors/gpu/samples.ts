import { ATTR } from '../../src/core/semconv.ts';
import { GPU_ATTR, GPU_METRIC } from '../../src/core/semconv-gpu.ts';
import { printable } from '../../src/core/text.ts';
import type { Attributes, Bytes, Metric, Ratio, Sample, Seconds } from '../../src/core/types.ts';
import type { GpuReading } from './reading.ts';
import type { Slice } from './slices.ts';

/** From readings to samples: what changes by itself each time, what hardly ever does when it has changed. */

/** What stays the same is said again this often, so that a piece cut out of a recording has it. */
const REPEAT_EVERY: Seconds = 60;
const TEXT_LIMIT = 120;
/** Processes come and go for weeks. */
const ATTRIBUTES_LIMIT = 10_000;
const VENDOR = 'NVIDIA';

export class GpuSamples {
  /** Attributes are made once: sinks know series by them. */
  readonly #attributes = new Map<string, Attributes>();
  readonly #said = new Map<Attributes, Map<string, { value: number; at: Seconds }>>();
  readonly #ids = new Map<string, string>();

  /** Tells GPUs apart; called with all of them whenever they were listed. */
  identify(readings: readonly GpuReading[]): void {
    for (const { key, uuid } of readings) {
      const twins = readings.filter((one) => one.uuid === uuid);
      const id = uuid === null ? key : twins.length > 1 ? `${uuid} (${key})` : uuid;
      this.#ids.set(key, printable(id, TEXT_LIMIT));
    }
  }

  idOf(key: string): string {
    return this.#ids.get(key) ?? key;
  }

  /** Of one that was not listed before, too. */
  attributesOf(reading: GpuReading): Attributes {
    const { key, index, uuid, name, driver } = reading;
    if (!this.#ids.has(key)) this.#ids.set(key, printable(uuid ?? key, TEXT_LIMIT));
    return this.#made(`gpu ${key}`, () => ({
      [GPU_ATTR.id]: this.idOf(key),
      [GPU_ATTR.type]: 'gpu',
      [GPU_ATTR.vendor]: VENDOR,
      ...(name === null ? {} : { [GPU_ATTR.name]: printable(name, TEXT_LIMIT) }),
      ...(driver === null ? {} : { [GPU_ATTR.driverVersion]: printable(driver, TEXT_LIMIT) }),
      ...(index === null ? {} : { [GPU_ATTR.index]: index }),
    }));
  }

  *ofGpu(reading: GpuReading, at: Seconds, isWakeUp: boolean): Iterable<Sample> {
    const whole = this.attributesOf(reading);
    const { memoryUsed, memoryTotal } = reading;
    const share =
      memoryUsed === null || memoryTotal === null
        ? null
        : ((memoryUsed / memoryTotal) satisfies Ratio);
    // Waking a GPU shows as work on it, with nobody there to work.
    const utilization = isWakeUp && memoryUsed === 0 ? null : reading.utilization;
    const each: readonly Reading[] = [
      [GPU_METRIC.gpuUtilization, utilization, GPU_ATTR.task, 'general'],
      [GPU_METRIC.gpuMemoryUsage, memoryUsed],
      [GPU_METRIC.gpuMemoryUtilization, share],
      [GPU_METRIC.gpuMemoryActivity, utilization === null ? null : reading.memoryActivity],
      [GPU_METRIC.gpuPower, reading.power],
      [GPU_METRIC.gpuTemperature, reading.temperature, GPU_ATTR.sensor, 'gpu'],
      [GPU_METRIC.gpuTemperature, reading.temperatureMemory, GPU_ATTR.sensor, 'memory'],
      [GPU_METRIC.gpuClock, reading.clockSm, GPU_ATTR.clock, 'sm'],
      [GPU_METRIC.gpuClock, reading.clockMemory, GPU_ATTR.clock, 'memory'],
      ...[...reading.throttled].map(([reason, is]): Reading => [
        GPU_METRIC.gpuThrottled,
        Number(is),
        GPU_ATTR.reason,
        reason,
      ]),
    ];
    for (const one of each) yield* this.#sample(whole, one, at);
    for (const one of seldom(reading))
      if (this.#hasChanged(whole, one, at)) yield* this.#sample(whole, one, at);
  }

  /** `profile` as `-L` has it (`3g.40gb`), null where that is not known. */
  *ofSlice(
    slice: Slice,
    reading: GpuReading,
    { uuid, profile, at }: { uuid: string | null; profile: string | null; at: Seconds },
  ): Iterable<Sample> {
    const attributes = this.#made(`slice ${reading.key} ${slice.instance}`, () => ({
      ...this.attributesOf(reading),
      [GPU_ATTR.id]: this.sliceId(slice, reading, uuid),
      [GPU_ATTR.name]: printable(
        `${reading.name ?? 'GPU'} MIG ${profile ?? slice.instance}`,
        TEXT_LIMIT,
      ),
      [GPU_ATTR.parent]: this.idOf(reading.key),
      [GPU_ATTR.instance]: slice.instance,
    }));
    const { used, total } = slice;
    yield* this.#sample(attributes, [GPU_METRIC.gpuMemoryUsage, used], at);
    yield* this.#sample(attributes, [GPU_METRIC.gpuMemoryLimit, total], at);
    const share = used === null || total === null || total === 0 ? null : used / total;
    yield* this.#sample(attributes, [GPU_METRIC.gpuMemoryUtilization, share], at);
  }

  /** Without a UUID as MIG devices were called before they had one. */
  sliceId(slice: Slice, reading: GpuReading, uuid: string | null): string {
    return uuid === null
      ? `MIG-${this.idOf(reading.key)}/${slice.instance}`
      : printable(uuid, TEXT_LIMIT);
  }

  *ofProcess(
    { pid, id, memory, use }: { pid: number; id: string; memory: Bytes | null; use: Ratio | null },
    at: Seconds,
  ): Iterable<Sample> {
    const attributes = this.#made(`process ${pid} ${id}`, () => ({
      [ATTR.pid]: pid,
      [GPU_ATTR.id]: id,
    }));
    yield* this.#sample(attributes, [GPU_METRIC.gpuProcessMemory, memory], at);
    yield* this.#sample(attributes, [GPU_METRIC.gpuProcessUtilization, use], at);
  }

  *ofOthers(reading: GpuReading, memory: Bytes, at: Seconds): Iterable<Sample> {
    yield* this.#sample(this.attributesOf(reading), [GPU_METRIC.gpuMemoryOthers, memory], at);
  }

  *#sample(whole: Attributes, [metric, value, key, which]: Reading, at: Seconds): Iterable<Sample> {
    if (value === null) return;
    yield {
      kind: 'sample',
      at,
      metric: metric.name,
      value,
      attributes: this.#with(whole, key, which),
    };
  }

  #with(whole: Attributes, key: string | undefined, which: string | undefined): Attributes {
    if (key === undefined || which === undefined) return whole;
    return this.#made(`${String(whole[GPU_ATTR.id])}\0${key}\0${which}`, () => ({
      ...whole,
      [key]: which,
    }));
  }

  #hasChanged(whole: Attributes, [metric, value, , which]: Reading, at: Seconds): boolean {
    if (value === null) return false;
    let said = this.#said.get(whole);
    if (said === undefined) this.#said.set(whole, (said = new Map()));
    const name = `${metric.name} ${which ?? ''}`;
    const last = said.get(name);
    if (last?.value === value && at - last.at < REPEAT_EVERY) return false;
    said.set(name, { value, at });
    return true;
  }

  #made(name: string, make: () => Attributes): Attributes {
    let attributes = this.#attributes.get(name);
    if (attributes !== undefined) return attributes;
    if (this.#attributes.size >= ATTRIBUTES_LIMIT) this.#attributes.clear();
    attributes = make();
    this.#attributes.set(name, attributes);
    return attributes;
  }
}

type Reading = readonly [
  metric: Metric,
  value: number | null,
  attribute?: string,
  attributeValue?: string,
];

/** What is the same for hours. */
function seldom(reading: GpuReading): readonly Reading[] {
  const state = reading.fault !== null ? 'failed' : anyOf(reading.repairs) ? 'degraded' : 'ok';
  return [
    [GPU_METRIC.gpuUtilization, reading.encoder, GPU_ATTR.task, 'encoder'],
    [GPU_METRIC.gpuUtilization, reading.decoder, GPU_ATTR.task, 'decoder'],
    [GPU_METRIC.gpuMemoryLimit, reading.memoryTotal],
    [GPU_METRIC.gpuPowerLimit, reading.powerLimit],
    [GPU_METRIC.gpuTemperatureMargin, reading.temperatureMargin],
    [GPU_METRIC.gpuClockLimit, reading.clockSmLimit, GPU_ATTR.clock, 'sm'],
    [GPU_METRIC.gpuClockLimit, reading.clockMemoryLimit, GPU_ATTR.clock, 'memory'],
    [GPU_METRIC.gpuLinkGeneration, reading.linkGeneration],
    [GPU_METRIC.gpuLinkGenerationLimit, reading.linkGenerationLimit],
    [GPU_METRIC.gpuLinkWidth, reading.linkWidth],
    [GPU_METRIC.gpuLinkWidthLimit, reading.linkWidthLimit],
    [GPU_METRIC.gpuErrors, reading.eccUncorrected, GPU_ATTR.errorType, 'ecc.uncorrected'],
    [GPU_METRIC.gpuErrors, reading.eccCorrected, GPU_ATTR.errorType, 'ecc.corrected'],
    ...[...reading.throttledTime].map(([reason, time]): Reading => [
      GPU_METRIC.gpuThrottledTime,
      time,
      GPU_ATTR.reason,
      reason,
    ]),
    ...[...reading.repairs].map(([name, is]): Reading => [
      GPU_METRIC.gpuRepair,
      Number(is),
      GPU_ATTR.repair,
      name,
    ]),
    ...['ok', 'degraded', 'failed'].map((one): Reading => [
      GPU_METRIC.gpuStatus,
      Number(one === state),
      GPU_ATTR.state,
      one,
    ]),
  ];
}

function anyOf(flags: ReadonlyMap<string, boolean>): boolean {
  return [...flags.values()].includes(true);
}
