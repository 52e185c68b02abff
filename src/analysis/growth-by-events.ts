import { METRIC } from '../core/semconv.ts';
import type { Bytes, Ratio, RecordingView, Seconds } from '../core/types.ts';

/** Whether memory grows with the work done: more in the stretches in which the event loop handled more. */

/** Stretches compared. From 15 on a rank correlation of 0.7 comes by chance once in 500 (Zar 1972, table of critical values). */
const STRETCHES = 15;
const LEAST_CORRELATION: Ratio = 0.7;
/** A load this even (coefficient of variation) gives every stretch the same work: nothing can be told apart. */
const LEAST_VARIATION: Ratio = 0.1;

export interface GrowthByEvents {
  /** Growth over events, of the whole run. */
  readonly bytes: Bytes;
  /** Spearman's, between growth and events of a stretch. */
  readonly correlation: Ratio;
}

/** Null where events are not counted (stock asyncio), the load was even, or growth did not follow it. */
export function growthByEvents(
  view: RecordingView,
  memory: { readonly at: readonly Seconds[]; readonly value: readonly Bytes[] },
): GrowthByEvents | null {
  const [events, ...others] = view.series(METRIC.loopEvents.name);
  const begin = memory.at[0];
  const end = memory.at.at(-1);
  if (events === undefined || others.length > 0 || begin === undefined || end === undefined) {
    return null;
  }
  const edges = Array.from(
    { length: STRETCHES + 1 },
    (_, i) => begin + ((end - begin) * i) / STRETCHES,
  );
  const grown = differences(edges.map((edge) => valueAt(memory, edge)));
  const handled = differences(edges.map((edge) => valueAt(events, edge)));
  const total = handled.reduce((sum, one) => sum + one, 0);
  const mean = total / STRETCHES;
  const spread = Math.sqrt(handled.reduce((sum, one) => sum + (one - mean) ** 2, 0) / STRETCHES);
  if (!(mean > 0) || spread < mean * LEAST_VARIATION) return null;
  const correlation = pearson(ranks(grown), ranks(handled));
  if (!(correlation >= LEAST_CORRELATION)) return null;
  const growth = (memory.value.at(-1) ?? 0) - (memory.value[0] ?? 0);
  return { bytes: growth / total, correlation };
}

/** The last reading that is not after `time`; before the first, the first. */
function valueAt(
  series: { readonly at: ArrayLike<number>; readonly value: ArrayLike<number> },
  time: Seconds,
): number {
  let low = 0;
  let high = series.at.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((series.at[middle] ?? 0) <= time) low = middle;
    else high = middle - 1;
  }
  return series.value[low] ?? 0;
}

function differences(values: readonly number[]): readonly number[] {
  return values.slice(1).map((value, i) => value - (values[i] ?? 0));
}

/** From 1; equal values share the mean of their ranks. */
function ranks(values: readonly number[]): readonly number[] {
  return values.map((value) => {
    const below = values.filter((other) => other < value).length;
    const equal = values.filter((other) => other === value).length;
    return below + (equal + 1) / 2;
  });
}

function pearson(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let products = 0;
  let squaresA = 0;
  let squaresB = 0;
  a.forEach((value, i) => {
    const other = (b[i] ?? 0) - meanB;
    products += (value - meanA) * other;
    squaresA += (value - meanA) ** 2;
    squaresB += other ** 2;
  });
  return squaresA * squaresB === 0 ? 0 : products / Math.sqrt(squaresA * squaresB);
}
