import { describe, expect, it } from 'vitest';
import { SecondTally } from '../../../collectors/sampler/second-tally.ts';
import type { TurnWatch } from '../../../collectors/sampler/turn-watch.ts';

const THREAD = { tid: 1, name: 'main', kind: 'asyncio' } as const;

/** How busy a second comes out in which turns last from `from` to `to`, sampled every 12 ms and while one lasts every 2 ms. */
function utilizationOf(turns: readonly (readonly [from: number, to: number])[], lostFrom = 2) {
  const seen = { idle: true, lost: false, age: 0 };
  const watch: TurnWatch = {
    kind: 'asyncio',
    basis: 'callback',
    turnId: 0,
    sample: () => {},
    stay: () => {},
    takeClosed: () => null,
    openTurn: () => null,
    confirm: () => true,
    get idle() {
      return seen.idle;
    },
    get lost() {
      return seen.lost;
    },
    get age() {
      return seen.age;
    },
    idleTotal: null,
    counters: null,
  };
  const tally = new SecondTally(0, watch, { cpu: 0, wait: 0 });
  for (let at = 0; at < 1; at += seen.idle ? 0.012 : 0.002) {
    const turn = turns.find(([from, to]) => from <= at && at < to);
    Object.assign(seen, { idle: turn === undefined, age: at - (turn?.[0] ?? at) });
    seen.lost = at >= lostFrom;
    tally.count(at, false);
  }
  return tally.drain(1, THREAD).utilization;
}

describe('how busy a loop was', () => {
  it('is the share of the time and not of the samples, of which a turn that lasts has more', () => {
    expect(utilizationOf([[0.3, 0.5]])).toBeCloseTo(0.2, 1);
    expect(
      utilizationOf([
        [0.1, 0.2],
        [0.7, 0.8],
      ]),
    ).toBeCloseTo(0.2, 1);
  });

  it('is nothing for a loop that waits, and all for one that does not', () => {
    expect(utilizationOf([])).toBe(0);
    expect(utilizationOf([[0, 1]])).toBe(1);
  });

  it('leaves out what could not be read', () => {
    expect(utilizationOf([[0.3, 0.5]], 0.6)).toBeCloseTo(0.33, 1);
    expect(utilizationOf([[0, 1]], 0)).toBe(0);
  });
});
