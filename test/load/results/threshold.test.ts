import { describe, expect, it } from 'vitest';
import { TraceError } from '../../../src/core/errors.ts';
import type { LoadResult } from '../../../src/core/load-types.ts';
import { evaluateThreshold } from '../../../src/load/results/threshold-evaluate.ts';
import { parseThreshold } from '../../../src/load/results/threshold-parse.ts';
import { concurrency, failing, loadResult } from '../../report/sample-load.ts';
import { histogram, request } from './sample-run.ts';

describe('a --fail-on expression', () => {
  it.each([
    ['ttft.p99>500ms', { kind: 'latency', key: 'ttft', of: 0.99 }, '>', 0.5],
    ['itl.p99.9 >= 1.5 s', { kind: 'latency', key: 'itl', of: 0.999 }, '>=', 1.5],
    ['e2e_scheduled.max>2s', { kind: 'latency', key: 'e2e_scheduled', of: 'max' }, '>', 2],
    ['tpot.mean>900us', { kind: 'latency', key: 'tpot', of: 'mean' }, '>', 0.0009],
    ['error_ratio>1%', { kind: 'error-ratio' }, '>', 0.01],
    ['error_ratio>.01', { kind: 'error-ratio' }, '>', 0.01],
    ['errors>0', { kind: 'errors', of: null }, '>', 0],
    ['errors.http.429>0', { kind: 'errors', of: 'http.429' }, '>', 0],
    ['errors.timeout.first_byte>3', { kind: 'errors', of: 'timeout.first_byte' }, '>', 3],
    ['requests.ok<1000', { kind: 'requests', of: 'ok' }, '<', 1000],
    ['rate<20req/s', { kind: 'rate', of: 'ok' }, '<', 20],
    ['tokens<=5000tok/s', { kind: 'rate', of: 'output-tokens' }, '<=', 5000],
    ['goodput<99%', { kind: 'goodput', of: 'ratio' }, '<', 0.99],
  ] as const)('%s is read', (expression, metric, operator, limit) => {
    const parsed = parseThreshold(expression);
    expect(parsed).toMatchObject({ expression, metric, operator, isRelative: false });
    expect(parsed.limit).toBeCloseTo(limit, 12);
  });

  it.each([
    ['ttft.p99>+15%', 1.15],
    ['rate<-10%', 0.9],
    ['error_ratio>+100%', 2],
  ])('%s is read as relative', (expression, limit) => {
    const parsed = parseThreshold(expression);
    expect(parsed.isRelative).toBe(true);
    expect(parsed.limit).toBeCloseTo(limit, 12);
  });

  it.each([
    ['', /--fail-on '': it must be a metric, one of > >= < <=, and a value/],
    ['ttft.p99', /it must be a metric/],
    ['ttft.p99>', /nothing follows >/],
    ['ttft.p99=500ms', /it must be a metric/],
    ['ttft>500ms', /ttft of what\? ttft\.mean, min, max, or a percentile such as p99/],
    ['ttft.p0>5ms', /'p0' is no statistic of ttft/],
    ['ttft.p100>5ms', /'p100' is no statistic/],
    ['ttft.median>5ms', /'median' is no statistic of ttft; it is mean/],
    ['ttfb.p99>5ms', /no metric is called 'ttfb\.p99'; they are ttft, itl/],
    [
      'ttft.p99>500',
      /no unit came, and this is a time, so us, ms, s, min, h or d must follow the number/,
    ],
    ['ttft.p99>500req/s', /'req\/s' came, and this is a time/],
    ['error_ratio>5ms', /'ms' came, and this is a share/],
    ['errors.http.418>0', /no class of errors is called 'http\.418'; they are dns, refused/],
    ['errors>1%', /'%' came, and this is a count/],
    ['ttft.p99>+15ms', /'\+15ms' has a sign, so it must be a percentage of the baseline/],
    ['ttft.p99>-150%', /'-150%' is less than nothing/],
    ['ttft.p99>abc', /'abc' is no value/],
    ['ttft.p99>1e400s', /'e400s' came/],
    ['__proto__>1', /no metric is called '__proto__'/],
    ['rate>1constructor', /'constructor' came/],
    ['\u001b[31m>1', /no metric is called '\\x1b\[31m'/],
  ])('%s is refused, and what came is named', (expression, message) => {
    expect(() => parseThreshold(expression)).toThrow(TraceError);
    expect(() => parseThreshold(expression)).toThrow(message);
  });
});

/** `count` requests whose time to the first output is `of(i)`. */
function withTtft(
  count: number,
  of: (i: number) => number,
  client: Parameters<typeof loadResult>[0][0]['client'] = {},
): LoadResult {
  return loadResult([
    {
      label: 'c=4',
      asked: concurrency(4),
      seconds: 10,
      perSecond: count / 10,
      make: (at, i) => request({ scheduledAt: at, startedAt: at, firstOutputAt: at + of(i) }),
      client,
    },
  ]);
}

const outcome = (expression: string, result: LoadResult, baseline?: LoadResult) =>
  evaluateThreshold(parseThreshold(expression), result.total, baseline?.total ?? null);

describe('judging one', () => {
  const spread = (i: number) => 0.1 + (i % 100) / 1000;
  const many = withTtft(1000, spread);
  const few = withTtft(50, spread);

  it('fails when it holds and passes when it does not, and says from how many', () => {
    expect(outcome('ttft.p99>150ms', many)).toMatchObject({
      status: 'fail',
      measured: expect.closeTo(0.198, 3) as number,
      limit: 0.15,
      unit: 's',
      reason: 'from 1000',
    });
    expect(outcome('ttft.p99>250ms', many).status).toBe('pass');
    expect(outcome('ttft.p99<250ms', many).status).toBe('fail');
    expect(outcome('rate<90', many).status).toBe('pass');
    expect(outcome('requests.ok<1001', many)).toMatchObject({ status: 'fail', measured: 1000 });
    expect(outcome('errors.http.429>19', failing).status).toBe('fail');
    expect(outcome('errors.http.429>20', failing).status).toBe('pass');
    expect(outcome('errors>=40', failing).status).toBe('fail');
    expect(outcome('goodput<90%', failing).status).toBe('pass');
    expect(outcome('goodput<=90%', failing).status).toBe('fail');
  });

  it('cannot tell a p99 from 50 requests, unless it is clear all the same', () => {
    expect(outcome('ttft.p99>250ms', few)).toMatchObject({
      status: 'unknown',
      reason: 'too few samples: 50, and 299 are needed',
    });
    // More than half of them are above 90 ms: so is the p99, from however few.
    expect(outcome('ttft.p99>90ms', few).status).toBe('fail');
    expect(outcome('ttft.p50>90ms', few).status).toBe('fail');
    expect(outcome('ttft.p50>250ms', few).status).toBe('pass');
  });

  it('cannot tell a rare failure from few requests, and takes what was seen where none is allowed', () => {
    const fine = withTtft(20, spread);
    expect(outcome('error_ratio>1%', fine)).toMatchObject({
      status: 'unknown',
      reason: 'too few samples: 20, and 299 are needed',
    });
    expect(outcome('error_ratio>1%', many).status).toBe('pass');
    expect(outcome('error_ratio>50%', fine).status).toBe('pass');
    expect(outcome('error_ratio>0%', fine).status).toBe('pass');
    expect(outcome('error_ratio>0', failing).status).toBe('fail');
  });

  it('cannot tell what lies within the client’s own delay, and can tell what lies beyond it', () => {
    const late = withTtft(1000, spread, {
      readLag: histogram(Array.from({ length: 1000 }, () => 0.05)),
    });
    expect(outcome('ttft.p50>130ms', late)).toMatchObject({
      status: 'unknown',
      reason: "the client's own delay may account for the difference",
    });
    expect(outcome('ttft.p50>90ms', late)).toMatchObject({ status: 'fail' });
    // The client can only have made it longer.
    expect(outcome('ttft.p50>160ms', late)).toMatchObject({ status: 'pass' });
  });

  it('of a value that the run does not have is unknown', () => {
    expect(outcome('goodput<99%', many)).toMatchObject({ status: 'unknown', measured: null });
    expect(outcome('connect.p50>1ms', many).reason).toBe('the run has no such value');
    expect(outcome('ttft.p50>+5%', many).reason).toBe('there is no baseline to compare with');
  });

  it('against a baseline fails only beyond what two runs differ by chance', () => {
    const random = (seed: number) => (i: number) =>
      0.1 + ((Math.imul(i + seed, 2654435761) >>> 8) % 1000) / 10_000;
    const [before, same] = [withTtft(1000, random(1)), withTtft(1000, random(77))];
    const slower = withTtft(1000, (i) => random(5)(i) * 1.3);
    expect(outcome('ttft.p50>+15%', slower, before)).toMatchObject({
      status: 'fail',
      limit: expect.closeTo(0.15 * 1.15, 2) as number,
    });
    expect(outcome('ttft.p50>+15%', same, before).status).toBe('pass');
    // A tenth of the sample: the median is slower by more than 1 %, and that may be chance.
    const noisy = withTtft(30, (i) => random(9)(i) * 1.04);
    expect(outcome('ttft.p50>+1%', noisy, before).status).toBe('unknown');
    expect(outcome('rate<-10%', same, before).status).toBe('pass');
  });
});
