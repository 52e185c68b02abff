import { afterAll, describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import { wilson } from '../../src/core/statistics.ts';
import type { Attributes, Metric, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

/*
 * The detectors of growth by simulation, seeded: how slow a leak they still find among clients that come and go, and how often they call
 * healthy memory a leak because it happens to move with the load.
 */

const SERIES = 400;
/** The upper end of the 95 % Wilson interval has to be below it. */
const MOST_FALSE = 0.05;
/** The lower end has to be above it. */
const LEAST_FOUND = 0.9;

type Noise = () => number;

const normal = (random: Noise): Noise => {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
};

/** An AR(1) process; 1 keeps everything: a random walk. */
function wander(n: number, keep: number, step: Noise): readonly number[] {
  let level = 0;
  return Array.from({ length: n }, () => (level = level * keep + step()));
}

const samples = (
  metric: Metric,
  values: readonly number[],
  attributes: Attributes = {},
): readonly Observation[] =>
  values.map((value, second) => ({
    kind: 'sample',
    at: T0 + second,
    metric: metric.name,
    value,
    attributes,
  }));

/** The share of runs with a verdict, not a note, among what `simulate` makes. */
function shareWithVerdict(seed: number, simulate: (random: Noise) => readonly Observation[]) {
  const random = seededRandom(seed);
  let found = 0;
  for (let i = 0; i < SERIES; i++) {
    const recording = memoryRecording(START);
    for (const observation of simulate(random)) recording.write(observation);
    if (detectAll(recording.view()).some(({ severity }) => severity !== 'note')) found++;
  }
  return { share: found / SERIES, ...wilson(found, SERIES) };
}

const measured: string[] = [];

function note(name: string, { share, low, high }: ReturnType<typeof shareWithVerdict>): void {
  const percent = (ratio: number): string => (100 * ratio).toFixed(1);
  measured.push(`${name}: ${percent(share)} % (${percent(low)} to ${percent(high)})`);
}

afterAll(() => {
  // oxlint-disable-next-line no-console -- the figures of docs/detectors.md
  console.info(`with a verdict, of ${SERIES} each (95 % Wilson):\n${measured.join('\n')}`);
});

/** Descriptors: 60 of their own, clients that come and go (standard deviation 5), and some lost a second at random moments. */
function descriptors(seconds: number, rate: number) {
  return (random: Noise): readonly Observation[] => {
    const clients = wander(seconds, 0.7, () => 3.6 * normal(random)());
    let lost = 0;
    const files = clients.map(() => (lost += lostIn(rate, random)));
    const sockets = clients.map((one) => Math.max(0, Math.round(60 + one)));
    return [
      ...samples(
        METRIC.fds,
        sockets.map((one, i) => one + (files[i] ?? 0)),
      ),
      ...samples(METRIC.descriptors, files, { [ATTR.descriptorKind]: 'file' }),
      ...samples(METRIC.descriptors, sockets, { [ATTR.descriptorKind]: 'socket' }),
    ];
  };
}

/** How many of a Poisson process of this rate fall into a second (Knuth's method). */
function lostIn(rate: number, random: Noise): number {
  const limit = Math.exp(-rate);
  let product = random();
  let count = 0;
  for (; product > limit; count++) product *= random();
  return count;
}

describe('a leak of descriptors', () => {
  it.each([
    [1, 60],
    [2, 30],
    [5, 30],
    [0.5, 120],
  ])(
    'of %d a second is found in %d s among clients that come and go',
    (rate, seconds) => {
      const found = shareWithVerdict(seconds, descriptors(seconds, rate));
      note(`${rate} a second in ${seconds} s`, found);
      expect(found.low).toBeGreaterThanOrEqual(LEAST_FOUND);
      // Seconds of work, which a busy machine makes many.
    },
    120_000,
  );

  it.each([30, 60])('is not seen in %d s where only clients come and go', (seconds) => {
    const found = shareWithVerdict(seconds, descriptors(seconds, 0));
    note(`none in ${seconds} s`, found);
    expect(found.high).toBeLessThanOrEqual(MOST_FALSE);
  });
});

describe('files that come and go', () => {
  it.each([
    [1, 'a random walk'],
    [0.9, 'AR(0.9)'],
  ])('are not called a leak (kept from second to second: %d, %s)', (keep, name) => {
    const seconds = 60;
    const found = shareWithVerdict(9, (random) => {
      const step = normal(random);
      const files = wander(seconds, keep, () => 3 * step()).map((one) =>
        Math.max(0, Math.round(40 + one)),
      );
      const sockets = wander(seconds, 0.7, () => 3.6 * step()).map((one) => Math.round(60 + one));
      const all = files.map((one, i) => one + (sockets[i] ?? 0));
      return [
        ...samples(METRIC.fds, all),
        ...samples(METRIC.descriptors, files, { [ATTR.descriptorKind]: 'file' }),
        ...samples(METRIC.descriptors, sockets, { [ATTR.descriptorKind]: 'socket' }),
      ];
    });
    note(`files as ${name}`, found);
    expect(found.high).toBeLessThanOrEqual(MOST_FALSE);
  });
});

/** CPU time whose rate goes up and down by half within 30 s. */
function cpuTime(seconds: number, random: Noise): readonly number[] {
  const phase = random();
  let total = 0;
  return Array.from(
    { length: seconds },
    (_, i) => (total += 0.4 + 0.2 * Math.sin(2 * Math.PI * (i / 30 + phase)) + 0.02 * random()),
  );
}

const MEMORY: Readonly<
  Record<string, (n: number, noise: Noise, random: Noise) => readonly number[]>
> = {
  'random walks': (n, noise) => wander(n, 1, () => 2 * noise()),
  'AR(0.9)': (n, noise) => wander(n, 0.9, () => 5 * noise()),
  'caches that fill and level off': (n, noise, random) => {
    const constant = n * (0.05 + 0.28 * random());
    return Array.from({ length: n }, (_, i) => 100 * (1 - Math.exp(-i / constant)) + noise());
  },
  'GC sawtooth': (n, noise, random) => {
    const period = n / (3 + 9 * random());
    return Array.from({ length: n }, (_, i) => 50 * ((i / period) % 1) + noise());
  },
};

describe('memory under a load in waves', () => {
  it.each(Object.entries(MEMORY))('is not called a leak when it moves as %s do', (name, family) => {
    const seconds = 120;
    const found = shareWithVerdict(7, (random) => [
      ...samples(
        METRIC.memoryUsage,
        family(seconds, normal(random), random).map((one) => (150 + one) * MIB),
      ),
      ...samples(METRIC.cpuTime, cpuTime(seconds, random), { [ATTR.cpuMode]: 'user' }),
    ]);
    note(`memory, ${name}`, found);
    expect(found.high).toBeLessThanOrEqual(MOST_FALSE);
  });

  it('is not called one when it grows evenly, whenever it was read', () => {
    const found = shareWithVerdict(10, (random) => {
      const noise = normal(random);
      const at = Array.from({ length: 61 }, (_, i) => i + 0.02 * noise());
      const read = (metric: Metric, value: (second: number) => number): Observation[] =>
        at.map((second) => ({
          kind: 'sample',
          at: T0 + second,
          metric: metric.name,
          value: value(second),
        }));
      return [
        ...read(METRIC.memoryUsage, (second) => (50 + second + 0.1 * noise()) * MIB),
        // In ticks, as the kernel counts.
        ...read(
          METRIC.cpuTime,
          (second) => Math.round(100 * (0.3 * second + 0.02 * noise())) / 100,
        ),
      ];
    });
    note('memory that grows evenly under an even load', found);
    expect(found.high).toBeLessThanOrEqual(MOST_FALSE);
  });

  it('is called one when each request leaves something behind', () => {
    const found = shareWithVerdict(8, (random) => {
      const cpu = cpuTime(120, random);
      const noise = normal(random);
      const held = cpu.map((work) => (150 + work + 0.3 * noise()) * MIB);
      return [
        ...samples(METRIC.memoryUsage, held),
        ...samples(METRIC.cpuTime, cpu, { [ATTR.cpuMode]: 'user' }),
      ];
    });
    note('memory, 0.4 MiB a second with the work', found);
    expect(found.low).toBeGreaterThanOrEqual(LEAST_FOUND);
  });
});
