import { METRIC } from '../core/semconv.ts';
import type { Bytes, Ratio, RecordingView, Seconds } from '../core/types.ts';

/** Whether memory grows with the work done: more in the stretches in which the process did more. */

/** Stretches compared. From 15 on a rank correlation of 0.7 comes by chance once in 500 (Zar 1972, table of critical values). */
const STRETCHES = 15;
const LEAST_CORRELATION: Ratio = 0.7;
/** A load this even (coefficient of variation) gives every stretch the same work: nothing can be told apart. */
const LEAST_VARIATION: Ratio = 0.1;
/** The kernel counts CPU time in ticks of 10 ms: with less than 20 in a stretch their rounding looks like load that varies. */
const LEAST_CPU: Seconds = 0.2;
/** Runtimes whose work may be judged by CPU time. A native server's large caches (a database's, llama.cpp's of prompts) fill with the load too. */
const CPU_TELLS: ReadonlySet<string> = new Set(['python', 'node']);

/** Readings in the order of their times. */
export interface Readings {
  readonly at: ArrayLike<Seconds>;
  readonly value: ArrayLike<number>;
}

export interface GrowthByWork {
  /** `event`: I/O events that the loop handled. `cpu`: seconds of CPU time, where those are not counted. */
  readonly by: 'event' | 'cpu';
  /** Growth over work, of the whole run. */
  readonly bytes: Bytes;
  /** Spearman's, between growth and work of a stretch. */
  readonly correlation: Ratio;
}

/** Null where the load was even, growth did not follow it, or the work cannot be counted. */
export function growthByWork(view: RecordingView, memory: Readings): GrowthByWork | null {
  const [events, ...others] = view.series(METRIC.loopEvents.name);
  // With several loops it is not known whose work it was.
  if (others.length > 0) return null;
  if (events !== undefined) return byWork('event', events, memory);
  const runtime = view.start.targets[0]?.runtime ?? '';
  const cpu = sumOf(view.series(METRIC.cpuTime.name));
  return CPU_TELLS.has(runtime) && cpu.at.length > 0 ? byWork('cpu', cpu, memory) : null;
}

/** Series read at the same moments, as one. */
export function sumOf(all: readonly Readings[]): {
  readonly at: readonly Seconds[];
  readonly value: readonly number[];
} {
  const sums = new Map<Seconds, { sum: number; count: number }>();
  for (const { at, value } of all) {
    for (let i = 0; i < at.length; i++) {
      const entry = sums.get(at[i] ?? 0) ?? { sum: 0, count: 0 };
      sums.set(at[i] ?? 0, { sum: entry.sum + (value[i] ?? 0), count: entry.count + 1 });
    }
  }
  // A moment at which one of them is missing would look like a fall.
  const whole = [...sums].filter(([, { count }]) => count === all.length);
  whole.sort(([a], [b]) => a - b);
  return { at: whole.map(([at]) => at), value: whole.map(([, { sum }]) => sum) };
}

function byWork(by: GrowthByWork['by'], work: Readings, memory: Readings): GrowthByWork | null {
  const begin = memory.at[0];
  const last = memory.at.length - 1;
  const end = memory.at[last];
  if (begin === undefined || end === undefined) return null;
  const edges = Array.from(
    { length: STRETCHES + 1 },
    (_, i) => begin + ((end - begin) * i) / STRETCHES,
  );
  const grown = differences(edges.map((edge) => valueAt(memory, edge)));
  const done = differences(edges.map((edge) => valueAt(work, edge)));
  const total = done.reduce((sum, one) => sum + one, 0);
  const mean = total / STRETCHES;
  const spread = Math.sqrt(done.reduce((sum, one) => sum + (one - mean) ** 2, 0) / STRETCHES);
  if (!(mean > (by === 'cpu' ? LEAST_CPU : 0)) || spread < mean * LEAST_VARIATION) return null;
  const correlation = pearson(ranks(grown), ranks(done));
  if (!(correlation >= LEAST_CORRELATION)) return null;
  const growth = (memory.value[last] ?? 0) - (memory.value[0] ?? 0);
  return { by, bytes: growth / total, correlation };
}

/**
 * By the line between the readings before and after. Taking the nearest reading instead would make some stretches longer than others, and
 * then everything that rises goes together.
 */
function valueAt({ at, value }: Readings, time: Seconds): number {
  let low = 0;
  let high = at.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((at[middle] ?? 0) <= time) low = middle;
    else high = middle - 1;
  }
  const [from, before] = [at[low] ?? 0, value[low] ?? 0];
  const [to, after] = [at[low + 1] ?? from, value[low + 1] ?? before];
  const share = to > from ? Math.max(0, (time - from) / (to - from)) : 0;
  return before + share * (after - before);
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
