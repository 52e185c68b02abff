import { afterAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { trendOf } from '../../src/core/trend.ts';
import { wilson } from '../../src/core/statistics.ts';

/*
 * By simulation, seeded: how often each kind of series that does not grow is said to. A naive Mann–Kendall test calls 88 % of random walks
 * trends.
 */

const SERIES = 400;
/** The upper end of the interval has to be below it. */
const MOST_FALSE = 0.05;
/** Readings: the fewest that are tested, and a run of a minute; three minutes, dearer, where every minute is taken for tests. */
const LENGTHS = process.env['TRACEWRIGHT_FULL'] === '1' ? [30, 60, 180] : [30, 60];

type Noise = () => number;
type Family = (n: number, noise: Noise, random: Noise) => readonly number[];

/** Standard normal, by the Box–Muller transform. */
const normal = (random: Noise): Noise => {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
};
const series = (n: number, at: (i: number) => number): readonly number[] =>
  Array.from({ length: n }, (_, i) => at(i));

function walk(n: number, keep: number, step: Noise): readonly number[] {
  let level = 0;
  return series(n, () => (level = level * keep + step()));
}

const SILENT: Readonly<Record<string, Family>> = {
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

const GROWING: Readonly<Record<string, Family>> = {
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
function shareThatGrows(
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

const each = (families: Readonly<Record<string, Family>>) =>
  Object.entries(families).flatMap(([name, family]) =>
    LENGTHS.map((n) => [name, n, family] as const),
  );

const measured: string[] = [];

function note(name: string, n: number, { share, low, high }: ReturnType<typeof shareThatGrows>) {
  const percent = (ratio: number): string => (100 * ratio).toFixed(2);
  measured.push(`${name}, ${n}: ${percent(share)} % (${percent(low)} to ${percent(high)})`);
}

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

  it('is seen in at most 5 in 100 random walks of three minutes', () => {
    const growing = shareThatGrows((n, noise) => walk(n, 1, noise), 180);
    expect(growing.high).toBeLessThanOrEqual(MOST_FALSE);
  });

  it.each(each(GROWING))('is seen in at least 90 in 100 %s of %i readings', (name, n, family) => {
    const growing = shareThatGrows(family, n);
    note(name, n, growing);
    expect(growing.low).toBeGreaterThanOrEqual(0.9);
  });

  it.each([8, 9, 11, 20])('is hardly ever seen in %i readings of what wanders', (n) => {
    for (const keep of [1, 0.9, 0]) {
      const family: Family = (length, noise) => walk(length, keep, noise);
      expect(shareThatGrows(family, n).share).toBeLessThanOrEqual(0.01);
    }
  });

  it('is seen in eight readings when every one is higher by about as much', () => {
    const { verdict, slope, p } = trendOf(series(8, Number), [9, 29, 49, 70, 89, 110, 130, 149]);
    expect(verdict).toBe('grows');
    expect(slope).toBeCloseTo(20, 0);
    expect(p).toBeNull();
    expect(
      trendOf(
        series(7, Number),
        series(7, (i) => 20 * i),
      ).verdict,
    ).toBe('too-short');
  });

  it('is not seen in a short run that warms up', () => {
    const warmUp = series(11, (i) => 100 * (1 - Math.exp(-i / 4)));
    expect(trendOf(series(11, Number), warmUp).verdict).not.toBe('grows');
  });

  it('goes by the time between readings: the last of a run comes early', () => {
    const at = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8.15];
    const value = [0, 20, 40, 60, 80, 100, 120, 140, 160, 160];
    expect(trendOf(at, value)).toMatchObject({ verdict: 'grows', readings: 9 });
  });

  it('gives the slope a second with an interval that holds it, of series of any length', () => {
    const noise = normal(seededRandom(7));
    const trend = trendOf(
      series(5000, (i) => 10 + i / 2),
      series(5000, (i) => i + 30 * noise()),
    );
    expect(trend.verdict).toBe('grows');
    expect(trend.slopeLow).toBeLessThanOrEqual(2);
    expect(trend.slopeHigh).toBeGreaterThanOrEqual(2);
    expect(trend.slopeHigh - trend.slopeLow).toBeLessThan(0.05);
  });

  it('of the same series is always the same', () => {
    const noise = normal(seededRandom(3));
    const values = series(60, (i) => i / 5 + noise());
    expect(trendOf(series(60, Number), values)).toEqual(trendOf(series(60, Number), values));
  });

  it('says that what filled up has levelled off', () => {
    const values = series(60, (i) => 100 * (1 - Math.exp(-i / 15)));
    expect(trendOf(series(60, Number), values).verdict).toBe('levels-off');
  });
});
