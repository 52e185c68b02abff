import { describe, expect, it } from 'vitest';
import { driftOf, studentTail5 } from '../../src/core/drift.ts';
import { seededRandom } from '../../src/core/random.ts';
import { wilson } from '../../src/core/statistics.ts';

/* By simulation, seeded: how often latencies that do not drift are said to. `npm run bench -- power` has more of them. */

const SERIES = 400;
const N = 400;
type Noise = () => number;
type Family = (noise: Noise, random: Noise) => (i: number) => number;

/** Latencies around 100 ms; log-normal with a tail, as they are. */
function walk(keep: number, step: number): Family {
  return (noise) => {
    let level = 0;
    return () => 0.1 * Math.exp((level = level * keep + step * noise()) + 0.2 * noise());
  };
}

const NULL: Readonly<Record<string, Family>> = {
  'that are independent': walk(0, 0),
  'of a random walk': walk(1, 0.03),
  'of AR(0.9)': walk(0.9, 0.15),
  'that warm up': (noise, random) => {
    const constant = N * (0.05 + 0.2 * random());
    return (i) => 0.1 * (1 - 0.5 * Math.exp(-i / constant)) * Math.exp(0.2 * noise());
  },
  'with a step': (noise, random) => {
    const at = N * random();
    return (i) => (i < at ? 0.1 : 0.2) * Math.exp(0.2 * noise());
  },
  'in a sawtooth': (noise, random) => {
    const [period, phase] = [N / (3 + 9 * random()), random()];
    return (i) => 0.1 * (1 + ((i / period + phase) % 1)) * Math.exp(0.2 * noise());
  },
  'that become shorter': (noise) => (i) => 0.1 * (2 - i / N) * Math.exp(0.2 * noise()),
};

function drifting(family: Family): ReturnType<typeof wilson> {
  const random = seededRandom(5);
  const noise = (): number =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  let hits = 0;
  for (let i = 0; i < SERIES; i++) {
    const at = family(noise, random);
    const values = Array.from({ length: N }, (_, k) => at(k));
    const times = values.map((_, k) => k / 10);
    if (driftOf(times, values)?.drifts === true) hits++;
  }
  return wilson(hits, SERIES);
}

describe('a drift of latencies', () => {
  it.each(Object.entries(NULL))('is seen in at most 5 in 100 runs %s', (_, family) => {
    expect(drifting(family).high).toBeLessThanOrEqual(0.05);
  });

  it('is seen in at least 90 in 100 runs that become three times as long', () => {
    expect(
      drifting((noise) => (i) => 0.1 * (1 + (2 * i) / N) * Math.exp(0.2 * noise())).low,
    ).toBeGreaterThanOrEqual(0.9);
  });

  it('needs 150 times', () => {
    const times = Array.from({ length: 149 }, (_, i) => i);
    expect(driftOf(times, times)).toBeNull();
    expect(driftOf([...times, 149], [...times, 149])?.drifts).toBe(true);
  });
});

describe('the tail of Student’s t with five degrees of freedom', () => {
  it.each([
    [0, 0.5],
    [2.015, 0.05],
    [3.365, 0.01],
    [5.893, 0.001],
  ])('beyond %d is %d', (t, p) => {
    expect(studentTail5(t)).toBeCloseTo(p, 4);
  });
});
