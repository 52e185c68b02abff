import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { growingCost } from '../../src/analysis/growing-cost.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ATTR, SPAN } from '../../src/core/semconv.ts';
import { wilson } from '../../src/core/statistics.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { START, T0 } from './simulated-run.ts';

type CostAt = (i: number, noise: () => number) => number;

function costs(n: number, cpu: CostAt, random: () => number, onCpu = 1) {
  const noise = (): number => 0.8 + 0.4 * random();
  return Array.from({ length: n }, (_, i) => {
    const own = cpu(i, noise);
    return { at: T0 + i, cpu: own, duration: own / onCpu };
  });
}

/** How often, of 400 runs of 80 blocks. */
function share(make: (random: () => number) => CostAt): ReturnType<typeof wilson> {
  const random = seededRandom(4);
  let hits = 0;
  for (let i = 0; i < 400; i++) if (growingCost(costs(80, make(random), random)) !== null) hits++;
  return wilson(hits, 400);
}

describe('work that grows with what was gathered', () => {
  it.each<[string, (random: () => number) => CostAt]>([
    ['stays', () => (_, noise) => 0.1 * noise()],
    [
      'is a walk',
      (random) => {
        let level = 0;
        return (_, noise) => 0.1 * Math.exp((level += 0.3 * (random() - 0.5))) * noise();
      },
    ],
    ['warms up', () => (i, noise) => 0.3 * (1 - 0.8 * Math.exp(-i / 12)) * noise()],
    [
      'steps up',
      (random) => {
        const at = 80 * random();
        return (i, noise) => (i < at ? 0.1 : 0.4) * noise();
      },
    ],
    ['becomes less', () => (i, noise) => (0.1 + 0.4 / (i + 1)) * noise()],
  ])('is seen in at most 5 in 100 runs where it %s', (_, make) => {
    expect(share(make).high).toBeLessThanOrEqual(0.05);
  });

  it('is seen in most runs where it grows fivefold', () => {
    expect(share(() => (i, noise) => (0.1 + i / 200) * noise()).low).toBeGreaterThan(0.9);
  });

  it('is not computation where little of the time is spent on a core', () => {
    const grows: CostAt = (i) => 0.1 + i / 100;
    const random = seededRandom(1);
    expect(growingCost(costs(40, grows, random))).not.toBeNull();
    expect(growingCost(costs(40, grows, random, 0.2))).toBeNull();
  });

  it.each([
    ['grows', 'quadratic work', (i: number) => 0.06 + i * 0.005],
    ['stays', 'cpu', () => 0.1],
  ] as const)('is the mechanism of a blocked loop where it %s', (_, mechanism, cost) => {
    const recording = memoryRecording(START);
    recording.write({
      kind: 'stack',
      at: T0,
      id: 's',
      frames: [{ function: 'total', file: '/srv/app.py', line: 3 }],
    });
    for (let i = 0; i < 20; i++) {
      const took = cost(i);
      recording.write({
        kind: 'span',
        name: SPAN.blocked,
        from: T0 + i,
        to: T0 + i + took,
        attributes: {
          [ATTR.pid]: 42,
          [ATTR.threadId]: 42,
          [ATTR.durationMin]: took,
          [ATTR.durationMax]: took,
          [ATTR.onCpu]: took * 0.99,
          [ATTR.mechanism]: 'cpu',
          [ATTR.starved]: false,
          [ATTR.stackId]: 's',
        },
      });
    }
    const [finding] = detectAll(recording.view());
    expect(finding).toMatchObject({ code: 'TRC101', mechanism });
    expect(finding?.evidence.some(({ kind }) => kind === 'growing-cost')).toBe(
      mechanism === 'quadratic work',
    );
  });
});
