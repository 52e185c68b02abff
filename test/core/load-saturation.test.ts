import { describe, expect, it } from 'vitest';
import { clientLimits } from '../../src/core/load-client.ts';
import { saturationOf } from '../../src/core/load-saturation.ts';
import type { LoadResult, RequestRecord, Slo } from '../../src/core/load-types.ts';
import { seededRandom } from '../../src/core/random.ts';
import { failure, request } from '../load/results/sample-run.ts';
import { concurrency, loadResult, rate, type Level } from '../report/sample-load.ts';

const random = seededRandom(40);
const exponential = (mean: number): number => -mean * Math.log(1 - random());

/** One queue, one server: requests of Poisson arrivals are answered one after the other. */
function queueing(asked: number, capacity: number, seconds = 30): Level {
  let at = 0;
  let free = 0;
  const arrivals: number[] = [];
  while (at < seconds) {
    at += exponential(1 / asked);
    arrivals.push(at);
  }
  return {
    label: `${asked} req/s`,
    asked: rate(asked),
    seconds,
    perSecond: asked,
    make: (begin, i) => {
      // `begin` is evenly spaced; the queue has arrivals of its own.
      const start = begin - i / asked;
      const scheduledAt = start + Math.min(arrivals[i] ?? seconds, seconds);
      free = Math.max(free, scheduledAt) + exponential(1 / capacity);
      return request({
        scheduledAt,
        startedAt: scheduledAt,
        firstOutputAt: free,
        lastOutputAt: free + 0.09,
      });
    },
  };
}

function judged(levels: readonly Level[], slos: readonly Slo[] = []) {
  const result = loadResult(levels, { slos });
  return saturationOf(result, clientLimits(result));
}

const behind = (level: Level) => judged([level]).stages[0]?.behind;

describe('a stage', () => {
  it.each([0.3, 0.6, 0.8])('that uses %f of a server is kept up with, by and large', (load) => {
    let wrong = 0;
    for (let run = 0; run < 20; run++) if (behind(queueing(20 * load, 20)) !== null) wrong++;
    expect(wrong).toBeLessThanOrEqual(1);
  });

  it.each([1.5, 2, 4])('that asks %f times what a server can do is not', (load) => {
    let found = 0;
    for (let run = 0; run < 10; run++) if (behind(queueing(20 * load, 20)) !== null) found++;
    expect(found).toBeGreaterThanOrEqual(9);
  });

  it('names what the server did, and the slope that a queue has', () => {
    const [stage] = judged([queueing(40, 20)]).stages;
    expect(stage?.behind).toBe('latency-grows');
    expect(stage?.handled).toBeGreaterThan(16);
    expect(stage?.handled).toBeLessThan(24);
    // λ/μ − 1.
    expect(stage?.trend.slope).toBeGreaterThan(0.7);
    expect(stage?.trend.slope).toBeLessThan(1.4);
  });

  it('of long answers is not behind because they have not ended yet', () => {
    const long: Level = {
      label: '10 req/s',
      asked: rate(10),
      seconds: 20,
      perSecond: 10,
      make: (at) => request({ scheduledAt: at, startedAt: at, lastOutputAt: at + 25 }),
    };
    expect(behind(long)).toBeNull();
  });

  it('whose answers start at once and end ever later piles up', () => {
    // A server without a queue: everything is begun, and all together gets slower.
    const level: Level = {
      label: '20 req/s',
      asked: rate(20),
      seconds: 30,
      perSecond: 20,
      make: (at, i) =>
        request({ scheduledAt: at, startedAt: at, lastOutputAt: at + 0.5 + i * 0.018 }),
    };
    expect(judged([level]).stages[0]).toMatchObject({ behind: 'backlog-grows' });
  });

  /** Answers in 0.1 s, but from `from` on not until `until`; then one every `each` seconds. */
  const standsStill = (from: number, until: number, each: number): Level => {
    let answered = 0;
    return {
      label: '8 req/s',
      asked: rate(8),
      seconds: 6,
      perSecond: 8,
      make: (at, i) => {
        const start = at - i / 8;
        answered = Math.max(at + 0.1, i / 8 < from ? 0 : start + until, answered + each);
        return request({
          scheduledAt: at,
          startedAt: at,
          firstOutputAt: Math.min(at + 0.4, answered),
          lastOutputAt: answered,
        });
      },
    };
  };

  it('that stands still and then answers all at once keeps up', () => {
    // As vLLM did at 8 requests a second on a machine with other work: 19 under way, gone in 0.2 s.
    expect(behind(standsStill(3.6, 6.2, 0.01))).toBeNull();
  });

  it('that stands still and then answers no faster than before is behind', () => {
    expect(behind(standsStill(3.6, 6.2, 0.125))).toBe('backlog-grows');
  });

  it('that stands still and then fails all that waited is behind', () => {
    const level = standsStill(3.6, 6.2, 0.01);
    const make = (at: number, i: number): RequestRecord => {
      const made = level.make?.(at, i) ?? request({});
      return made.endedAt - at < 0.2
        ? made
        : failure({ class: 'reset' }, { scheduledAt: at, endedAt: made.endedAt });
    };
    expect(behind({ ...level, make })).toBe('backlog-grows');
  });

  it('that warms up, and then is steady, is kept up with', () => {
    const level: Level = {
      label: '20 req/s',
      asked: rate(20),
      seconds: 30,
      perSecond: 20,
      make: (at, i) => {
        const warm = 0.1 + 0.4 * (1 - Math.exp(-i / 60)) + 0.02 * random();
        return request({ scheduledAt: at, startedAt: at, firstOutputAt: at + warm });
      },
    };
    expect(behind(level)).toBeNull();
  });

  it('of a closed loop cannot get behind', () => {
    expect(behind({ ...queueing(40, 20), asked: concurrency(8) })).toBeNull();
  });

  it('of failures alone says nothing', () => {
    const level: Level = {
      label: '20 req/s',
      asked: rate(20),
      seconds: 10,
      perSecond: 20,
      make: (at): RequestRecord =>
        failure({ class: 'refused' }, { scheduledAt: at, endedAt: at + 0.001 }),
    };
    expect(judged([level])).toMatchObject({
      knee: null,
      sweep: 'none',
      stages: [{ behind: null }],
    });
  });
});

describe('the knee of a sweep', () => {
  const steady = (
    label: string,
    asked: Level['asked'],
    perSecond: number,
    extra: Partial<Level> = {},
  ): Level => ({
    label,
    asked,
    seconds: 10,
    perSecond,
    ...extra,
  });
  const closed = (n: number, perSecond: number, extra: Partial<Level> = {}) =>
    steady(`c=${n}`, concurrency(n), perSecond, extra);

  it('of rates is the highest that the server kept up with', () => {
    const { knee, sweep, stages } = judged([queueing(5, 20), queueing(10, 20), queueing(60, 20)]);
    expect(stages.map((stage) => stage.behind !== null)).toEqual([false, false, true]);
    expect({ sweep, label: knee?.label, of: knee?.of }).toEqual({
      sweep: 'knee',
      label: '10 req/s',
      of: 'throughput',
    });
  });

  it('of levels is where more of them bring no more, in whatever order they were tried', () => {
    const levels = [closed(16, 52), closed(1, 10), closed(8, 51), closed(4, 40), closed(2, 20)];
    expect(judged(levels).knee).toMatchObject({ label: 'c=8', asked: 8 });
  });

  it('is not reached while the highest level is the best', () => {
    expect(judged([closed(1, 10), closed(2, 20), closed(4, 40)])).toMatchObject({
      knee: null,
      sweep: 'not-reached',
    });
  });

  it('counts what met the objectives, where there are any', () => {
    const slow = (at: number) =>
      request({ scheduledAt: at, startedAt: at, firstOutputAt: at + 0.5 });
    const levels = [closed(1, 10), closed(2, 20), closed(4, 40, { make: slow })];
    expect(judged(levels, [{ metric: 'ttft', limit: 0.2 }]).knee).toMatchObject({
      label: 'c=2',
      of: 'goodput',
    });
    expect(
      judged(
        levels.map((level) => ({ ...level, make: slow })),
        [{ metric: 'ttft', limit: 0.2 }],
      ),
    ).toMatchObject({
      knee: null,
      sweep: 'all-behind',
    });
  });

  it('is not taken from levels at which the client was the limit', () => {
    const full = { client: { coreShare: 0.99 } };
    const levels = [closed(1, 10), closed(2, 20), closed(4, 21, full), closed(8, 21, full)];
    expect(judged(levels)).toMatchObject({ knee: null, sweep: 'client-limited' });
  });

  it('needs levels: one, or the same twice, is no sweep', () => {
    expect(judged([closed(4, 10)]).sweep).toBe('none');
    expect(judged([closed(4, 10), closed(4, 10)]).sweep).toBe('none');
    const mixed: LoadResult = loadResult([closed(4, 10), queueing(5, 20, 5)]);
    expect(saturationOf(mixed, clientLimits(mixed)).sweep).toBe('none');
  });
});
