import type { Metric, RecordingView, RunEnd, RunStart, Sink } from '../core/types.ts';
import { type ContentsLimits, RecordingContents } from './contents.ts';

/** A sink that can be read: what detectors look at when a run ends, also when no disk could be written. */
export interface MemoryRecording extends Sink {
  /** Everything written so far, as a recording of it would be read. */
  view(end?: RunEnd | null): RecordingView;
  readonly dropped: number;
}

/**
 * Over an hour of 50 series a second before any of them is thinned out to one reading in two seconds; a server's page with 70 more comes to it in
 * half an hour. 4 MB at most, and about a quarter of that, as times are shared and most values are short (column.ts): more would be memory
 * that rises for hours, for readings that no detector looks at one by one.
 */
const MEMORY_POINTS = 250_000;
/** 256 kB: five minutes of one event loop as they come, hours of it by the minute. */
const MEMORY_HISTOGRAMS = 16_384;
const MEMORY_RECORDS = 50_000;
/** A blocked span with its stack takes about 1.5 kB. */
const MEMORY_ALIKE = 20_000;

/** A bounded recording in memory; `metrics` gives units beyond those of semconv.ts. */
export function memoryRecording(
  start: RunStart,
  options: { readonly metrics?: readonly Metric[]; readonly limits?: Partial<ContentsLimits> } = {},
): MemoryRecording {
  const limits = {
    points: MEMORY_POINTS,
    histograms: MEMORY_HISTOGRAMS,
    records: MEMORY_RECORDS,
    alike: MEMORY_ALIKE,
    ...options.limits,
  };
  const contents = new RecordingContents(limits);
  const units = new Map((options.metrics ?? []).map((metric) => [metric.name, metric]));
  let closed = false;
  let late = 0;
  const dropped = () => contents.dropped + late;
  return {
    name: 'memory',
    get dropped() {
      return dropped();
    },
    write(observation) {
      if (closed) {
        late++;
        return;
      }
      if ('metric' in observation) {
        const metric = units.get(observation.metric);
        if (metric !== undefined) {
          contents.describe(metric);
          units.delete(metric.name);
        }
      }
      contents.add(observation);
    },
    view(end = null) {
      const lost = dropped();
      const problems = [
        ...contents.problems(),
        ...(lost === 0
          ? []
          : [`${lost} observations were not kept: the limit in memory was reached`]),
      ];
      return contents.view({ start, end, problems });
    },
    close() {
      closed = true;
      return Promise.resolve({ dropped: dropped() });
    },
  };
}
