import { describe, expect, it } from 'vitest';
import { TriggerWatch } from '../../src/analysis/trigger.ts';
import { parseTrigger } from '../../src/commands/flight/trigger-parse.ts';
import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { ATTR, EVENT, METRIC, SNAPSHOT, SPAN } from '../../src/core/semconv.ts';
import type { Attributes, Observation } from '../../src/core/types.ts';

const MIB = 2 ** 20;
const watching = (...expressions: string[]) => new TriggerWatch(expressions.map(parseTrigger));

function sample(metric: string, at: number, value: number, attributes?: Attributes): Observation {
  const one = { kind: 'sample', at, metric, value } as const;
  return attributes === undefined ? one : { ...one, attributes };
}
const rss = (at: number, mib: number, pid = 7): Observation =>
  sample(METRIC.memoryUsage.name, at, mib * MIB, { [ATTR.pid]: pid });

function delays(to: number, ...ages: number[]): Observation {
  const histogram = new ExponentialHistogram();
  for (const age of ages) histogram.record(age);
  const buckets = histogram.drain();
  const attributes = { [ATTR.pid]: 7 };
  return {
    kind: 'histogram',
    from: to - 1,
    to,
    metric: METRIC.loopDelay.name,
    buckets,
    attributes,
  };
}
const block = (from: number, to: number, name: string = SPAN.blocked): Observation => ({
  kind: 'span',
  name,
  from,
  to,
  attributes: { [ATTR.pid]: 7 },
});

/** The moments at which something fires, one after the other. */
const firings = (watch: TriggerWatch, observations: readonly Observation[]) =>
  observations.flatMap((one) => watch.take(one)).map(({ at, value }) => [at, value]);

describe('a level', () => {
  it('fires when it comes to hold, and again only after it did not', () => {
    const seen = [90, 101, 150, 100, 99, 102].map((mib, at) => rss(at, mib));
    expect(firings(watching('rss>100MiB'), seen)).toEqual([
      [1, 101 * MIB],
      [5, 102 * MIB],
    ]);
  });

  it('is watched for each process and each series by itself', () => {
    const watch = watching('rss>100MiB');
    const seen = [rss(1, 200, 7), rss(1, 50, 8), rss(2, 200, 7), rss(2, 150, 8)];
    expect(seen.flatMap((one) => watch.take(one)).map(({ at, pid }) => [at, pid])).toEqual([
      [1, 7],
      [2, 8],
    ]);
  });

  it('can be one from below', () => {
    const seen = [3, 1, 1, 2, 1].map((value, at) => sample('vllm:running_x', at, value));
    expect(firings(watching('vllm:running_x<2'), seen)).toEqual([
      [1, 1],
      [4, 1],
    ]);
  });

  it('of a distribution is its greatest value', () => {
    const watch = watching('tracewright.eventloop.delay>=50ms');
    expect(firings(watch, [delays(1, 0.01), delays(2, 0.01, 0.05), delays(3)])).toEqual([
      [2, 0.05],
    ]);
  });

  it('of another metric fires nothing', () => {
    const watch = watching('rss>1MiB', 'fds>1');
    expect(firings(watch, [sample(METRIC.memoryVirtual.name, 1, 1e12)])).toEqual([]);
  });
});

describe('a delay', () => {
  it('fires at each block that lasts longer, and at no shorter one', () => {
    const seen = [block(1, 1.1), block(2, 2.5), block(3, 3.15), block(4, 4.25)];
    expect(firings(watching('delay>200ms'), seen)).toEqual([
      [2.5, 0.5],
      [4.25, 0.25],
    ]);
  });

  it('fires while a block still lasts, once, and again with the whole of it', () => {
    const watch = watching('delay>200ms');
    const seen = [
      delays(1, 0.01),
      delays(2, 0.7),
      delays(3, 1.7),
      block(1.3, 3.4),
      delays(4, 0.01),
    ];
    const fired = seen.flatMap((one) => watch.take(one));
    expect(fired.map(({ at, value, isWhole }) => [at, Number(value?.toFixed(3)), isWhole])).toEqual(
      [
        [2, 0.7, false],
        [3.4, 2.1, true],
      ],
    );
  });

  it('does not fire again with the second that a block fell into', () => {
    const watch = watching('delay>200ms');
    const seen = [delays(1, 0.01), block(1.3, 1.6), delays(2, 0.29), delays(3, 0.4)];
    expect(firings(watch, seen).map(([at]) => at)).toEqual([1.6]);
    // The next second still holds, and one after a pause is of something else.
    expect(firings(watch, [delays(4, 0.01), delays(5, 0.5)]).map(([at]) => at)).toEqual([5]);
  });

  it('does not fire at spans of another name', () => {
    expect(firings(watching('delay>200ms'), [block(1, 9, SPAN.busy)])).toEqual([]);
  });
});

describe('growth', () => {
  it('fires when a minute has brought more than the limit, and not when it was slower', () => {
    const slow = Array.from({ length: 300 }, (_, at) => rss(at, 100 + at));
    expect(firings(watching('rss.growth>100MiB/min'), slow)).toEqual([]);
    const fast = Array.from({ length: 300 }, (_, at) => rss(at, 100 + 2 * at));
    expect(firings(watching('rss.growth>100MiB/min'), fast)).toEqual([[51, 102 * MIB]]);
  });

  it('does not fire at a high level that stays, nor at what shrinks', () => {
    const watch = watching('rss.growth>1MiB/s');
    expect(firings(watch, [rss(1, 9000), rss(2, 9000), rss(3, 10), rss(4, 10)])).toEqual([]);
  });

  it('holds for an hour with a bounded number of readings', () => {
    const watch = watching('fds.growth>600/h');
    const fds = (at: number) => sample(METRIC.fds.name, at, at / 10);
    const hours = Array.from({ length: 4 * 3600 }, (_, at) => fds(at));
    expect(firings(watch, hours)).toEqual([]);
    expect(firings(watch, [sample(METRIC.fds.name, 4 * 3600, 1440 + 300)])).toHaveLength(1);
  });
});

describe('the end of a process', () => {
  const gone = (to: number, pid?: number): Observation => ({
    kind: 'gap',
    from: to,
    to,
    collector: 'process',
    reason: 'target-gone',
    detail: 'gone',
    ...(pid === undefined ? {} : { pid }),
  });
  const exited = (at: number, pid: number): Observation => ({
    kind: 'event',
    at,
    name: EVENT.targetExit,
    severity: 'warn',
    body: `pid ${pid} was killed by signal 9`,
    attributes: { [ATTR.pid]: pid },
  });

  it('fires once, by whichever tells of it first, and once for each process', () => {
    const watch = watching('exit');
    const fired = [exited(1, 7), gone(1.1, 7), gone(2, 8), exited(2, 8)].flatMap((one) =>
      watch.take(one),
    );
    expect(fired.map(({ at, pid, value }) => [at, pid, value])).toEqual([
      [1, 7, null],
      [2, 8, null],
    ]);
    expect(fired[0]?.detail).toBe('pid 7 was killed by signal 9');
  });

  it('fires again for a process that got the same pid', () => {
    const watch = watching('exit');
    const body = { pid: 7, startTicks: 9, runtime: 'node', title: '' };
    const joined: Observation = { kind: 'snapshot', at: 3, of: SNAPSHOT.target, body };
    expect(firings(watch, [gone(1, 7), joined, gone(4, 7)]).map(([at]) => at)).toEqual([1, 4]);
  });

  it('is no other gap', () => {
    const late: Observation = {
      kind: 'gap',
      from: 0,
      to: 1,
      collector: 'process',
      reason: 'late',
      detail: '',
    };
    expect(firings(watching('exit'), [late])).toEqual([]);
  });
});

it('tells which conditions were never read', () => {
  const watch = watching('delay>1s', 'rss>1GiB', 'vllm:num_requests_waiting>9', 'exit');
  watch.take(rss(1, 5));
  expect(watch.unread().map(({ expression }) => expression)).toEqual([
    'delay>1s',
    'vllm:num_requests_waiting>9',
  ]);
});
