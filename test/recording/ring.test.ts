import { describe, expect, it } from 'vitest';
import type { Observation, Sample } from '../../src/core/types.ts';
import { ObservationRing, weightOf } from '../../src/recording/ring.ts';
import { KnownStacks } from '../../src/recording/stack-references.ts';
import { ATTR } from '../../src/core/semconv.ts';

const sample = (at: number): Sample => ({ kind: 'sample', at, metric: 'm', value: at });
const times = (observations: readonly Observation[]) =>
  observations.map((one) => ('to' in one ? one.to : one.at));

describe('the ring', () => {
  it('holds the last stretch and forgets what was before, within a second', () => {
    const ring = new ObservationRing({ span: 10, bytes: 1e6 });
    for (let at = 0; at < 1000; at += 0.25) ring.push(sample(at));
    const held = times(ring.since(0));
    expect(held.at(-1)).toBe(999.75);
    expect(held[0]).toBeGreaterThanOrEqual(988);
    expect(held[0]).toBeLessThanOrEqual(989.75);
    expect(ring.bytes).toBe(held.length * weightOf(sample(0)));
    expect(ring.dropped).toBe(0);
  });

  it('keeps to its size, and counts what had to go and up to when', () => {
    const each = weightOf(sample(0));
    const ring = new ObservationRing({ span: 1000, bytes: 100 * each });
    let most = 0;
    for (let at = 0; at < 500; at += 0.1) {
      ring.push(sample(at));
      most = Math.max(most, ring.bytes);
    }
    const held = times(ring.since(0));
    expect(most).toBeLessThanOrEqual(100 * each);
    expect(held.length).toBeGreaterThan(85);
    expect(ring.dropped).toBe(5000 - held.length);
    expect(ring.lostUntil).toBeLessThan(held[0] ?? 0);
    expect(ring.lostUntil).toBeGreaterThan(485);
  });

  it('gives what ended since a moment, in the order in which it came', () => {
    const ring = new ObservationRing({ span: 100, bytes: 1e6 });
    const span: Observation = { kind: 'span', name: 's', from: 1, to: 6, attributes: {} };
    for (const one of [sample(1), sample(5), span, sample(7), sample(4)]) ring.push(one);
    expect(times(ring.since(5))).toEqual([5, 6, 7]);
  });
});

describe('known stacks', () => {
  const stack = (id: string) => ({ kind: 'stack', at: 0, id, frames: [] }) as const;

  it('are found by the ids a span names, each once told', () => {
    const known = new KnownStacks(10);
    for (const id of ['a', 'b', 'c']) known.add(stack(id));
    const attributes = { [ATTR.stackId]: 'a', [ATTR.stackShares]: ['c=0.5', 'x=0.5'] };
    expect(known.referredBy(attributes).map(({ id }) => id)).toEqual(['a', 'c']);
    expect(known.referredBy(undefined)).toEqual([]);
  });

  it('go when they were not referred to for longest', () => {
    const known = new KnownStacks(2);
    known.add(stack('a'));
    known.add(stack('b'));
    known.referredBy({ [ATTR.stackId]: 'a' });
    known.add(stack('c'));
    expect(
      known.referredBy({ [ATTR.stackShares]: ['a=1', 'b=1', 'c=1'] }).map(({ id }) => id),
    ).toEqual(['a', 'c']);
  });
});
