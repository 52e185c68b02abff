import { GPU_ATTR, GPU_METRIC } from '../core/semconv-gpu.ts';
import { printable } from '../core/text.ts';
import type { Attributes, Metric, RecordingView, Series } from '../core/types.ts';
import { numberAttribute, textAttribute } from './attributes.ts';

/** The GPUs of a recording, each with its series. */

/** A GPU, or a MIG slice of one. */
export interface RecordedGpu {
  /** `hw.id`. */
  readonly id: string;
  /** `GPU 0 (NVIDIA H100)`. Made printable. */
  readonly label: string;
  /** Of a slice: the GPU it is a part of. */
  readonly parent: string | null;
  /** All series of a metric that are of it. */
  all(metric: Metric): readonly Series[];
  /** The one that has these attributes too. */
  one(metric: Metric, attributes?: Attributes): Series | undefined;
}

/** Whose series tell which GPUs there are. */
const TELLING = [
  GPU_METRIC.gpuMemoryUsage,
  GPU_METRIC.gpuUtilization,
  GPU_METRIC.gpuTemperature,
  GPU_METRIC.gpuThrottled,
  GPU_METRIC.gpuErrors,
  GPU_METRIC.gpuRepair,
];

/** Those that were recorded, by index. */
export function gpusOf(view: RecordingView): readonly RecordedGpu[] {
  const known = new Map<string, Attributes>();
  for (const metric of TELLING) {
    for (const { attributes } of view.series(metric.name)) {
      const id = textAttribute(attributes, GPU_ATTR.id);
      if (id !== null && !known.has(id)) known.set(id, attributes);
    }
  }
  return [...known]
    .map(([id, attributes]): RecordedGpu => {
      const all = (metric: Metric): readonly Series[] =>
        view.series(metric.name, { [GPU_ATTR.id]: id });
      return {
        id,
        label: labelOf(id, attributes),
        parent: textAttribute(attributes, GPU_ATTR.parent),
        all,
        one: (metric, within = {}) =>
          all(metric).find((series) =>
            Object.entries(within).every(([key, value]) => series.attributes[key] === value),
          ),
      };
    })
    .toSorted((a, b) => (a.label < b.label ? -1 : a.label > b.label ? 1 : 0));
}

/** `GPU 0 (NVIDIA H100 80GB HBM3)`. */
function labelOf(id: string, attributes: Attributes): string {
  const index = numberAttribute(attributes, GPU_ATTR.index);
  const name = textAttribute(attributes, GPU_ATTR.name) ?? id;
  return index === null ? printable(name, 60) : `GPU ${index} (${printable(name, 60)})`;
}

/** Utilisation of the whole GPU; undefined under MIG. */
export function utilizationOf(gpu: RecordedGpu): Series | undefined {
  return gpu.one(GPU_METRIC.gpuUtilization, { [GPU_ATTR.task]: 'general' });
}
