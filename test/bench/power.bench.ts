import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'vitest';
import { driftOf } from '../../src/core/drift.ts';
import { seededRandom } from '../../src/core/random.ts';
import { wilson } from '../../src/core/statistics.ts';
import { theilSen } from '../../src/core/theil-sen.ts';
import { trendOf } from '../../src/core/trend.ts';
import { setting, table } from './measurements.ts';
import { deadlockPower } from './power-deadlock.ts';

/* How often trends are seen that are there and that are not, and how good their slopes are; written into docs/detectors.md. Seeded: the same everywhere. */

const RUNS = setting('TRACEWRIGHT_BENCH_N', 1000);
const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'detectors.md');
const [BEGIN, END] = ['<!-- npm run bench -- power -->', '<!-- end -->'];

type Noise = () => number;
type Family = (n: number, noise: Noise, random: Noise) => (i: number) => number;
const normal = (random: Noise): Noise => {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
};

/** Noise of standard deviation 1. */
const correlated = (keep: number): Family => {
  return (_, noise) => {
    let level = noise();
    return () => (level = keep * level + Math.sqrt(1 - keep * keep) * noise());
  };
};
const walk: Family = (_, noise) => {
  let level = 0;
  return () => (level += noise());
};

const NULL: Readonly<Record<string, Family>> = {
  'random walk': walk,
  'AR(0.9)': correlated(0.9),
  'cache that fills': (n, noise, random) => {
    const constant = n * (0.05 + 0.28 * random());
    const size = 10 ** (1 + 2 * random());
    return (i) => size * (1 - Math.exp(-i / constant)) + noise();
  },
  'GC sawtooth': (n, noise, random) => {
    const [period, phase] = [n / (3 + 9 * random()), random()];
    return (i) => 100 * ((i / period + phase) % 1) + noise();
  },
  'one step': (n, noise, random) => {
    const at = n * random();
    return (i) => (i >= at ? 50 : 0) + noise();
  },
  'four steps up and down': (n, noise, random) => {
    const heights = Array.from({ length: 5 }, () => 50 * random());
    return (i) => (heights[Math.floor((i * 5) / n)] ?? 0) + noise();
  },
};

function made(family: Family, n: number, random: Noise): readonly number[] {
  const at = family(n, normal(random), random);
  return Array.from({ length: n }, (_, i) => at(i));
}

type Test = (at: readonly number[], value: readonly number[]) => boolean;
const grows: Test = (at, value) => trendOf(at, value).verdict === 'grows';
const drifts: Test = (at, value) => driftOf(at, value)?.drifts === true;

function share(test: Test, family: Family, n: number, seed: number): string {
  const random = seededRandom(seed);
  const at = Array.from({ length: n }, (_, i) => i);
  let hits = 0;
  for (let run = 0; run < RUNS; run++) if (test(at, made(family, n, random))) hits++;
  const { low, high } = wilson(hits, RUNS);
  const percent = (ratio: number): string => String(Number((100 * ratio).toFixed(1)));
  return `${percent(hits / RUNS)} (${percent(low)}–${percent(high)})`;
}

/** A line that rises by so many standard deviations of the noise over the run. */
const rising = (rise: number, family: Family): Family => {
  return (n, noise, random) => {
    const rest = family(n, noise, random);
    return (i) => (rise * i) / (n - 1) + rest(i);
  };
};

function slopes(keep: number, n: number, rise: number): readonly [string, string] {
  const random = seededRandom(n + 1000 * keep);
  const at = Array.from({ length: n }, (_, i) => i);
  const slope = rise / (n - 1);
  let covered = 0;
  let squares = 0;
  for (let run = 0; run < RUNS; run++) {
    const seen = theilSen(at, made(rising(rise, correlated(keep)), n, random));
    if (seen.low <= slope && slope <= seen.high) covered++;
    squares += (seen.slope - slope) ** 2;
  }
  // Least squares in noise of lag-1 correlation r: variance 12 / n³, times (1 + r) / (1 − r) for long runs.
  const theory = Math.sqrt((12 / (n * (n * n - 1))) * ((1 + keep) / (1 - keep)));
  return [(100 * (covered / RUNS)).toFixed(1), (Math.sqrt(squares / RUNS) / theory).toFixed(2)];
}

function falseTable(): string {
  const columns = [60, 180, 600].map((n) => ({ name: `trend, ${n}`, test: grows, n }));
  const all = [...columns, { name: 'drift, 400 latencies', test: drifts, n: 400 }];
  return table(
    ['does not grow', ...all.map(({ name }) => name)],
    Object.entries(NULL).map(([name, family], row) => [
      name,
      ...all.map(({ test, n }) => share(test, family, n, 100 * row + n)),
    ]),
  );
}

function powerTable(): string {
  const rises = [1, 2, 4, 8, 16, 32];
  const rows = [
    ['trend, white noise, 60', grows, 0, 60],
    ['trend, white noise, 180', grows, 0, 180],
    ['trend, AR(0.5), 180', grows, 0.5, 180],
    ['trend, AR(0.9), 180', grows, 0.9, 180],
    ['drift, white noise, 400 latencies', drifts, 0, 400],
    ['drift, white noise, 2000 latencies', drifts, 0, 2000],
  ] as const;
  return table(
    ['rise in standard deviations', ...rises.map(String)],
    rows.map(([name, test, keep, n]) => [
      name,
      ...rises.map((rise) => share(test, rising(rise, correlated(keep)), n, n + rise)),
    ]),
  );
}

function slopeTable(): string {
  const cases = [0, 0.5, 0.8].flatMap((keep) => [30, 60, 120, 300].map((n) => [keep, n] as const));
  return table(
    ['noise', 'readings', 'interval holds the slope, %', 'error over that of least squares'],
    cases.map(([keep, n]) => [
      keep === 0 ? 'white' : `AR(${keep})`,
      String(n),
      ...slopes(keep, n, 10),
    ]),
  );
}

it('false alarms, power and slopes', () => {
  const text = [
    `Of ${RUNS} seeded series each, in percent with the 95 % Wilson interval. Said to grow, and not growing:`,
    falseTable(),
    'Said to grow, and growing by a line of so many standard deviations of the noise over the run:',
    powerTable(),
    'The slope of a line that rises by 10 standard deviations: how often its 95 % interval holds it, and its error (root mean square) beside that of least squares in theory:',
    slopeTable(),
    ...deadlockPower(RUNS),
  ].join('\n\n');
  console.log(text);
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${PAGE} has no place for it`);
  writeFileSync(PAGE, `${before}${BEGIN}\n\n${text}\n\n${END}${after}`);
});
