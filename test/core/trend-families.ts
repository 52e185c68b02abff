import { afterAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { wilson } from '../../src/core/statistics.ts';
import { trendOf } from '../../src/core/trend.ts';

/*
 * By simulation, seeded: how often each kind of series that does not grow is said to. A naive Mann–Kendall test calls 88 % of random
 * walks trends.
 */

export const SERIES = 400;
/** The upper end of the interval has to be below it. */
export const MOST_FALSE = 0.05;

export type Noise = () => number;
export type Family = (n: number, noise: Noise, random: Noise) => readonly number[];

/** Standard normal, by the Box–Muller transform. */
export const normal = (random: Noise): Noise => {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
};
export const series = (n: number, at: (i: number) => number): readonly number[] =>
  Array.from({ length: n }, (_, i) => at(i));

export function walk(n: number, keep: number, step: Noise): readonly number[] {
  let level = 0;
  return series(n, () => (level = level * keep + step()));
}

export const SILENT: Readonly<Record<string, Family>> = {
  'random walks': (n, noise) => walk(n, 1, noise),
  'random walks in whole steps': (n, _, random) => walk(n, 1, () => Math.floor(random() * 3) - 1),
  'AR(0.9)': (n, noise) => walk(n, 0.9, noise),
  'white noise': (n, noise) => series(n, noise),
  // Level off within the run: the time constant is at most a third of it.
  'caches that fill and level off': (n, noise, random) => {
    const constant = n * (0.05 + 0.28 * random());
    const size = 10 ** (1 + 2 * random());
    return series(n, (i) => size * (1 - Math.exp(-i / constant)) + noise());
  },
  'caches that fill by a straight line up to a bound': (n, noise, random) => {
    const full = n * (0.2 + 0.5 * random());
    return series(n, (i) => 100 * Math.min(1, i / full) + noise());
  },
  // At least three cycles within the run, cut anywhere.
  'GC sawtooth': (n, noise, random) => {
    const period = n / (3 + 9 * random());
    const phase = random();
    return series(n, (i) => 100 * ((i / period + phase) % 1) + noise());
  },
  'one step up': (n, noise, random) => {
    const at = n * random();
    return series(n, (i) => (i >= at ? 50 : 0) + noise());
  },
  'four steps up and down': (n, noise, random) => {
    const heights = series(5, () => 50 * random());
    return series(n, (i) => (heights[Math.floor((i * 5) / n)] ?? 0) + noise());
  },
  'a constant': (n) => series(n, () => 7),
  'falling lines': (n, noise) => series(n, (i) => -i + noise()),
};

export const GROWING: Readonly<Record<string, Family>> = {
  'lines of slope 1 in noise of 2': (n, noise) => series(n, (i) => i + 2 * noise()),
  'lines of slope 1 in AR(0.5) noise': (n, noise) => {
    const rest = walk(n, 0.5, noise);
    return series(n, (i) => i + (rest[i] ?? 0));
  },
  'leaks by one in whole numbers, at random times': (n, _, random) => {
    let held = 20;
    return series(n, () => (held += random() < 0.7 ? 1 : 0));
  },
};

/** With its 95 % Wilson interval over `SERIES` series. */
export function shareThatGrows(
  family: Family,
  n: number,
): { readonly share: number; readonly low: number; readonly high: number } {
  const random = seededRandom(n);
  const noise = normal(random);
  let growing = 0;
  for (let i = 0; i < SERIES; i++) {
    const { verdict } = trendOf(series(n, Number), family(n, noise, random));
    if (verdict === 'grows') growing++;
  }
  return { share: growing / SERIES, ...wilson(growing, SERIES) };
}

/** Tests of every family, in series of these numbers of readings. */
export function testFamilies(lengths: readonly number[]): void {
  const each = (families: Readonly<Record<string, Family>>) =>
    Object.entries(families).flatMap(([name, family]) =>
      lengths.map((n) => [name, n, family] as const),
    );
  const measured: string[] = [];
  const note = (
    name: string,
    n: number,
    { share, low, high }: ReturnType<typeof shareThatGrows>,
  ): void => {
    const percent = (ratio: number): string => (100 * ratio).toFixed(2);
    measured.push(`${name}, ${n}: ${percent(share)} % (${percent(low)} to ${percent(high)})`);
  };

  describe('a trend', () => {
    afterAll(() => {
      // oxlint-disable-next-line no-console -- the figures of docs/detectors.md
      console.info(`said to grow, of ${SERIES} each (95 % Wilson):\n${measured.join('\n')}`);
    });

    it.each(each(SILENT))('is seen in at most 5 in 100 %s of %i readings', (name, n, family) => {
      const growing = shareThatGrows(family, n);
      note(name, n, growing);
      expect(growing.high).toBeLessThanOrEqual(MOST_FALSE);
    });

    it.each(each(GROWING))('is seen in at least 90 in 100 %s of %i readings', (name, n, family) => {
      const growing = shareThatGrows(family, n);
      note(name, n, growing);
      expect(growing.low).toBeGreaterThanOrEqual(0.9);
    });
  });
}
