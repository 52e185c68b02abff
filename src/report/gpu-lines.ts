import { THROTTLE_WORDS, throttleReason } from '../core/gpu-reasons.ts';
import { METRIC } from '../core/semconv.ts';
import { GPU_ATTR } from '../core/semconv-gpu.ts';
import type { Metric } from '../core/types.ts';
import { formatBytes, formatRatio } from '../core/units.ts';
import { outside } from './layout.ts';
import type { SeriesSummary } from './metric-summary.ts';
import type { NumberLine } from './numbers.ts';
import type { Report } from './report.ts';

/** GPUs in a line each, and MIG slices below theirs; more than this are in the JSON document only. */
const LINES_SHOWN = 16;
/** Every reading says it, or nearly: the median of zeros and ones. */
const MOST_OF_THE_TIME = 1;

export function gpuLines(report: Report): readonly NumberLine[] {
  const devices = devicesOf(report);
  const lines = devices.slice(0, LINES_SHOWN).map((device): NumberLine => {
    const { index, parent, name } = device;
    const label = parent === null ? `GPU ${index ?? ''}`.trim() : '';
    return { label, text: `${outside(name, 60)}: ${textOf(device)}` };
  });
  const more = devices.length - lines.length;
  return more > 0 ? [...lines, { label: '', text: `and ${more} more in --json` }] : lines;
}

/** A GPU or a slice of one. Text is untrusted. */
interface Device {
  readonly name: string;
  readonly index: number | null;
  /** Of a slice. */
  readonly parent: string | null;
  series(metric: Metric, attributes?: Readonly<Record<string, string>>): SeriesSummary | undefined;
  all(metric: Metric): readonly SeriesSummary[];
}

function devicesOf(report: Report): readonly Device[] {
  const byMetric = new Map(report.metrics.map(({ name, series }) => [name, series]));
  const known = new Map<string, SeriesSummary['attributes']>();
  for (const metric of [METRIC.gpuMemoryUsage, METRIC.gpuTemperature, METRIC.gpuUtilization]) {
    for (const { attributes } of byMetric.get(metric.name) ?? []) {
      const id = attributes[GPU_ATTR.id];
      if (typeof id === 'string' && !known.has(id)) known.set(id, attributes);
    }
  }
  const devices = [...known].map(([id, attributes]): Device => {
    const all = (metric: Metric): readonly SeriesSummary[] =>
      (byMetric.get(metric.name) ?? []).filter((one) => one.attributes[GPU_ATTR.id] === id);
    const {
      [GPU_ATTR.index]: index,
      [GPU_ATTR.parent]: parent,
      [GPU_ATTR.instance]: instance,
    } = attributes;
    return {
      name:
        String(attributes[GPU_ATTR.name] ?? id) +
        (instance === undefined ? '' : ` (${String(instance)})`),
      index: typeof index === 'number' ? index : null,
      parent: parent === undefined ? null : String(parent),
      all,
      series: (metric, within = {}) =>
        all(metric).find((one) =>
          Object.entries(within).every(([key, value]) => one.attributes[key] === value),
        ),
    };
  });
  return devices.toSorted(
    (a, b) =>
      (a.index ?? 0) - (b.index ?? 0) || Number(a.parent !== null) - Number(b.parent !== null),
  );
}

function textOf(device: Device): string {
  const use = device.series(METRIC.gpuUtilization, { [GPU_ATTR.task]: 'general' });
  const memory = device.series(METRIC.gpuMemoryUsage);
  const limit = device.series(METRIC.gpuMemoryLimit)?.last;
  const power = device.series(METRIC.gpuPower);
  const powerLimit = device.series(METRIC.gpuPowerLimit)?.last;
  const temperature = device.series(METRIC.gpuTemperature, { [GPU_ATTR.sensor]: 'gpu' });
  const parts = [
    use && `utilization median ${formatRatio(use.p50)}, max ${formatRatio(use.max)}`,
    memory && `memory ${change(memory)}${limit ? ` of ${formatBytes(limit)}` : ''}`,
    power && `power median ${watts(power.p50)}${powerLimit ? ` of ${watts(powerLimit)}` : ''}`,
    temperature && `${Math.round(temperature.max)} °C at most`,
    throttleText(device),
  ].filter((part) => part !== undefined && part !== '');
  return parts.length === 0 ? 'nothing was told of it' : parts.join(', ');
}

function throttleText(device: Device): string {
  const active = device.all(METRIC.gpuThrottled).filter(({ max }) => max > 0);
  const reasons = active
    .toSorted((a, b) => b.p50 - a.p50)
    .map(({ attributes, p50 }) => {
      const reason = String(attributes[GPU_ATTR.reason]);
      const known = throttleReason(reason);
      const words = known === null ? outside(reason, 40) : THROTTLE_WORDS[known];
      return `${p50 >= MOST_OF_THE_TIME ? 'mostly' : 'at times'} by ${words}`;
    });
  return reasons.length === 0 ? '' : `clocks held down ${reasons.join(', ')}`;
}

function change({ first, last }: SeriesSummary): string {
  const [from, to] = [formatBytes(first ?? Number.NaN), formatBytes(last ?? Number.NaN)];
  return from === to ? to : `${from} → ${to}`;
}

function watts(value: number): string {
  return `${Math.round(value)} W`;
}
