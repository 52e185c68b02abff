import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { ATTR, EVENT, METRIC, SPAN } from '../../src/core/semconv.ts';
import type { Finding, Observation, RecordingView } from '../../src/core/types.ts';
import { RecordingContents } from '../../src/recording/contents.ts';
import { summariseMetrics } from '../../src/report/metric-summary.ts';
import { MIB, START, T0 } from '../analysis/simulated-run.ts';
import { random } from './observations.ts';

/** A run too long for the memory it is given: what it says must be what it would have said with room for all of it. */

const HOUR = 3600;
const ROOMY = { points: 1e9, records: 1e9, alike: 1e9 };
const SMALL = { points: 4_000, records: 2_000, alike: 500 };

function contentsOf(observations: Iterable<Observation>, limits = ROOMY): RecordingContents {
  const contents = new RecordingContents(limits);
  for (const observation of observations) contents.add(observation);
  return contents;
}

const viewOf = (contents: RecordingContents): RecordingView =>
  contents.view({ start: START, end: null, problems: [] });

const sample = (second: number, metric: string, value: number): Observation => ({
  kind: 'sample',
  at: T0 + second,
  metric,
  value,
});

describe('a series', () => {
  const peaks = (second: number) => (second === 1234 ? 9.5 : second === 4321 ? -3 : 0.5);
  const course = Array.from({ length: 2 * HOUR }, (_, second) =>
    sample(second, METRIC.cpuUtilization.name, peaks(second)),
  );

  it('keeps its ends, its extremes and their times, and every n-th reading in between', () => {
    const [series] = viewOf(contentsOf(course, { ...SMALL, points: 500 })).series(
      METRIC.cpuUtilization.name,
    );
    expect(series?.at.length).toBeLessThan(500);
    expect(series?.at.at(-1)).toBe(T0 + 2 * HOUR - 1);
    expect(series?.extremes?.at).toEqual(Float64Array.of(T0 + 1234, T0 + 4321));
    expect(series?.extremes?.value).toEqual(Float64Array.of(9.5, -3));
    const steps = [...(series?.at ?? [])].slice(1).map((at, i) => at - (series?.at[i] ?? 0));
    expect(new Set(steps.slice(1, -1)).size).toBe(1);
    const summary = summariseMetrics(viewOf(contentsOf(course, { ...SMALL, points: 500 })));
    expect(summary[0]?.series[0]).toMatchObject({ min: -3, max: 9.5, p50: 0.5, p99: 0.5 });
  });

  it('is left alone while there is room', () => {
    const contents = contentsOf(course, { ...SMALL, points: 2 * HOUR });
    expect(viewOf(contents).series(METRIC.cpuUtilization.name)[0]?.value).toHaveLength(2 * HOUR);
    expect(contents.problems()).toEqual([]);
  });

  it('says that it was thinned out, and lost nothing beside', () => {
    const contents = contentsOf(course, { ...SMALL, points: 500 });
    expect(contents.problems()[0]).toMatch(/^a long run: of readings one in \d+ s is kept/);
    expect(contents.dropped).toBe(0);
  });

  it('that comes and goes with thousands of others leaves room for those that stay', () => {
    const contents = new RecordingContents(ROOMY);
    for (let n = 0; n < 12_000; n++) {
      contents.add(sample(n, METRIC.fds.name, n));
      const attributes = { [ATTR.threadId]: n };
      contents.add({
        ...sample(n, METRIC.threadCpuUtilization.name, 0.1),
        attributes,
      } as Observation);
    }
    const view = viewOf(contents);
    expect(view.series(METRIC.threadCpuUtilization.name).length).toBeLessThanOrEqual(10_000);
    expect(view.series(METRIC.fds.name)[0]?.value).toHaveLength(12_000);
    expect(contents.dropped).toBeGreaterThan(1_999);
  });
});

describe('distributions', () => {
  it('of many seconds become one, with every count', () => {
    const next = random(7);
    const histograms = Array.from({ length: HOUR }, (_, second): Observation => {
      const histogram = new ExponentialHistogram();
      for (let i = 0; i < 20; i++) histogram.record(next() * 0.05);
      const metric = METRIC.loopDelay.name;
      const [from, to] = [T0 + second, T0 + second + 1];
      return { kind: 'histogram', from, to, metric, buckets: histogram.drain() };
    });
    const full = viewOf(contentsOf(histograms));
    const small = viewOf(contentsOf(histograms, { ...SMALL, points: 40_000 }));
    expect(small.histograms(METRIC.loopDelay.name).length).toBeLessThan(100);
    const [all] = summariseMetrics(full);
    const [few] = summariseMetrics(small);
    expect(few?.series[0]).toEqual(all?.series[0]);
  });
});

/** What a day shows of one process, a second at a time. */
function* day(
  of: (second: number) => Iterable<Observation>,
  seconds: number,
): Iterable<Observation> {
  for (let second = 0; second < seconds; second++) yield* of(second);
}

const verdicts = (findings: readonly Finding[]) =>
  findings.map(({ code, severity, confidence, mechanism }) => [
    code,
    severity,
    confidence,
    mechanism,
  ]);

function bothWays(of: (second: number) => Iterable<Observation>, hours = 24) {
  const observations = [...day(of, hours * HOUR)];
  const full = detectAll(viewOf(contentsOf(observations)));
  const contents = contentsOf(observations, { points: 20_000, records: 50_000, alike: 2_000 });
  return { full, small: detectAll(viewOf(contents)), contents };
}

describe('what the detectors say of a day', () => {
  it('is the same of a leak: its kind, and its slope', () => {
    const next = random(11);
    const leak = function* (second: number): Iterable<Observation> {
      const leaked = Math.floor(second / 60);
      const busy = Math.floor(next() * 40);
      yield sample(second, METRIC.fds.name, 100 + leaked + busy);
      if (second % 10 !== 0) return;
      for (const [kind, value] of [
        ['file', 20 + leaked],
        ['socket', 80 + busy],
      ] as const) {
        const attributes = { [ATTR.descriptorKind]: kind };
        yield { ...sample(second, METRIC.descriptors.name, value), attributes } as Observation;
      }
      yield sample(second, METRIC.memoryUsage.name, (300 + 20 * next()) * MIB);
    };
    const { full, small, contents } = bothWays(leak);
    expect(contents.window).toBeGreaterThan(8);
    expect(verdicts(full)).toEqual([['TRC111', 'warning', 'likely', 'file']]);
    expect(verdicts(small)).toEqual(verdicts(full));
    const slopes = [full, small].map(([first]) => first?.measure['growth_per_s'] ?? 0);
    expect(slopes[1]).toBeCloseTo(slopes[0] ?? 0, 4);
    expect(slopes[0]).toBeCloseTo(1 / 60, 3);
  });

  it('is nothing of a warm-up and of noise, either way', () => {
    const next = random(12);
    const healthy = function* (second: number): Iterable<Observation> {
      yield sample(second, METRIC.fds.name, 200 * (1 - Math.exp(-second / 4000)) + 20 * next());
      yield sample(second, METRIC.threads.name, 30 + Math.floor(next() * 8));
    };
    const { full, small } = bothWays(healthy);
    expect(full).toEqual([]);
    expect(small).toEqual([]);
  });

  it('is the same of blocks: where, how often, how long in all, and the worst', () => {
    const next = random(13);
    const places = ['parse', 'render'];
    const blocked = function* (second: number): Iterable<Observation> {
      const which = second % 3 === 0 ? 0 : 1;
      const length = second === 20_000 ? 0.9 : 0.06 + 0.02 * next();
      if (second === 0)
        for (const name of places)
          yield {
            kind: 'stack',
            at: T0,
            id: name,
            frames: [{ function: name, file: '/srv/app.py', line: 1 }],
          };
      yield {
        kind: 'span',
        name: SPAN.blocked,
        from: T0 + second,
        to: T0 + second + length,
        attributes: {
          [ATTR.pid]: 42,
          [ATTR.threadId]: 42,
          [ATTR.mechanism]: 'cpu',
          [ATTR.codeFunctionName]: places[which] ?? '',
          [ATTR.durationMin]: length - 0.002,
          [ATTR.durationMax]: length + 0.002,
          [ATTR.onCpu]: length / 2,
          [ATTR.runQueueWait]: 0.001,
          [ATTR.stackShares]: [`${places[which]}=${length}`],
        },
      };
    };
    const { full, small, contents } = bothWays(blocked, 8);
    expect(verdicts(small)).toEqual(verdicts(full));
    expect(contents.dropped).toBe(0);
    for (const [i, finding] of full.entries()) {
      const other = small[i];
      expect(other?.summary).toBe(finding.summary);
      expect(other?.where[0]?.function).toBe(finding.where[0]?.function);
      for (const [key, value] of Object.entries(finding.measure))
        expect(other?.measure[key], key).toBeCloseTo(value, key === 'median_s' ? 2 : 5);
    }
    expect(full.map(({ measure }) => measure['count'])).toEqual([19_200, 9_600]);
  });

  it('is the same of a loop that spins for hours', () => {
    const spin = function* (second: number): Iterable<Observation> {
      if (second % 2 === 0) return;
      yield {
        kind: 'event',
        at: T0 + second,
        name: EVENT.activity,
        severity: 'info',
        body: '',
        attributes: {
          [ATTR.pid]: 42,
          [ATTR.threadId]: 42,
          [ATTR.activityOnCpu]: 0.9,
          [ATTR.activityRunQueueWait]: 0.05,
          [ATTR.activityStackSamples]: 10,
          [ATTR.activityIterations]: 50_000,
          [ATTR.activityEvents]: 1,
          [ATTR.stackShares]: [],
        },
      };
    };
    const { full, small } = bothWays(spin, 8);
    expect(verdicts(full)).toEqual([['TRC102', 'warning', 'confirmed', 'loop-without-wait']]);
    expect(verdicts(small)).toEqual(verdicts(full));
    for (const [key, value] of Object.entries(full[0]?.measure ?? {}))
      expect(small[0]?.measure[key], key).toBeCloseTo(value, 6);
  });
});

describe('more records than there is room for', () => {
  it('leave the worst: the longest gaps, the gravest events', () => {
    const contents = new RecordingContents({ ...ROOMY, records: 1_000 });
    for (let n = 0; n < 3_000; n++) {
      const long = n % 1_000 === 1 ? 5 : 0.01;
      contents.add({
        kind: 'gap',
        from: T0 + n,
        to: T0 + n + long,
        collector: 'event-loop',
        reason: 'late',
        detail: '',
      });
      const severity = n % 1_000 === 2 ? 'error' : 'info';
      contents.add({ kind: 'event', at: T0 + n, name: 'a', severity, body: '' });
    }
    const view = viewOf(contents);
    expect(view.gaps.filter(({ from, to }) => to - from > 1)).toHaveLength(3);
    expect(view.events('a').filter(({ severity }) => severity === 'error')).toHaveLength(3);
    expect(view.gaps.length + view.events('a').length).toBeLessThanOrEqual(1_000);
    expect(contents.dropped).toBe(6_000 - view.gaps.length - view.events('a').length);
  });
});
