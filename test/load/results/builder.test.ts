import { describe, expect, it } from 'vitest';
import { histogramQuantile } from '../../../src/core/exponential-histogram.ts';
import { errorRatio, goodputRatio, ratesOf, sentRate } from '../../../src/core/load-rates.ts';
import { LATENCY_KEYS, type RequestRecord } from '../../../src/core/load-types.ts';
import { ResultBuilder, type ResultMeta } from '../../../src/load/results/builder.ts';
import { batch, failure, meta, MONO, request } from './sample-run.ts';

const DONE = { interrupted: false, complete: true };

/** Requests one after the other, in batches of a second. */
function run(
  requests: readonly RequestRecord[],
  options: { meta?: Partial<ResultMeta>; sendingEnded?: number; begun?: number } = {},
) {
  const builder = new ResultBuilder({ ...meta, ...options.meta });
  builder.stage({ stage: 0, what: 'begun', at: options.begun ?? MONO });
  const ends = Math.max(MONO + 1, ...requests.map((one) => one.endedAt));
  let isSending = true;
  for (let from = MONO; from < ends; from++) {
    if (isSending && options.sendingEnded !== undefined && options.sendingEnded <= from) {
      builder.stage({ stage: 0, what: 'sending-ended', at: options.sendingEnded });
      isSending = false;
    }
    const within = requests.filter((one) => one.endedAt >= from && one.endedAt < from + 1);
    builder.add(batch(within, { from, to: from + 1, worker: 0, stage: 0 }));
  }
  return builder;
}

describe('a result', () => {
  it('is counts and histograms of successes, and failures apart', () => {
    const result = run([
      request({ index: 0 }),
      request({ index: 1, inputTokens: null, outputTokens: null, outputs: 7 }),
      failure({ class: 'http.429', status: 429, retryAfter: 2, detail: 'slow down' }),
      failure({ class: 'http.429', status: 429, retryAfter: 5, detail: 'slower' }),
      failure({ class: 'cut', status: 200, detail: 'ended' }),
      failure({ class: 'unfinished' }),
      request({ warmup: true }),
    ]).result(DONE);
    const { requests, tokens, latency } = result.total;
    expect(requests).toEqual({
      sent: 6,
      ok: 2,
      failed: 3,
      unfinished: 1,
      warmup: 1,
      queued: 0,
      resent: 0,
      errors: { 'http.429': 2, cut: 1 },
      statuses: { '429': 2, '200': 1 },
      examples: {
        'http.429': { detail: 'slow down', retryAfter: 5 },
        cut: { detail: 'ended', retryAfter: null },
      },
    });
    expect(tokens).toEqual({
      input: 20,
      output: 17,
      cached: 8,
      reasoning: 0,
      counted: 1,
      uncounted: 1,
      events: 17,
    });
    expect(latency.ttft.count).toBe(2);
    expect(latency.itl.count).toBe(9 + 6);
    expect(histogramQuantile(latency.ttft, 0.5)).toBeCloseTo(0.1, 3);
    expect(errorRatio(result.total)).toBeCloseTo(3 / 5);
    expect(LATENCY_KEYS.every((key) => latency[key].scale === 8)).toBe(true);
  });

  it('takes rates of what ended while requests were sent, so a server that is behind does not get the asked rate', () => {
    // 10 a second are asked for 10 s, and 5 a second come back, until 20 s.
    const slow = Array.from({ length: 100 }, (_, i) =>
      request({
        scheduledAt: MONO + i / 10,
        firstOutputAt: MONO + (i + 1) / 5 - 0.101,
        endedAt: MONO + (i + 1) / 5 - 0.01,
      }),
    );
    const { total } = run(slow, { sendingEnded: MONO + 10 }).result(DONE);
    expect(sentRate(total)).toBeCloseTo(10);
    expect(total.window).toMatchObject({ seconds: 10, whole: false, ok: 50, outputTokens: 500 });
    expect(ratesOf(total)).toMatchObject({ requests: 5, outputTokens: 50, goodput: null });
    expect(total.to - total.from).toBeCloseTo(20, 1);
  });

  it('takes rates over everything when most of it ended after the sending', () => {
    const once = Array.from({ length: 4 }, () =>
      request({ scheduledAt: MONO, endedAt: MONO + 1.5 }),
    );
    const { total } = run(once, { sendingEnded: MONO }).result(DONE);
    expect(total.window).toMatchObject({ seconds: 1.5, whole: true, ok: 4 });
  });

  it('counts in the rates what the warm-up left running, and nowhere else', () => {
    const { total } = run(
      [
        request({ warmup: true, endedAt: MONO + 1.5 }),
        request({ warmup: true, endedAt: MONO + 0.5 }),
        request({ scheduledAt: MONO + 1.1 }),
      ],
      { begun: MONO + 1, sendingEnded: MONO + 2 },
    ).result(DONE);
    expect(total.window.ok).toBe(2);
    expect(total.requests).toMatchObject({ ok: 1, warmup: 2 });
    expect(total.latency.ttft.count).toBe(1);
  });

  it('judges objectives request by request, from the schedule where there is one', () => {
    const slos = [
      { metric: 'ttft', limit: 0.15 },
      { metric: 'tpot', limit: 0.02 },
    ] as const;
    const requests = [
      request(),
      // It met the limit from the wire, and waited for its turn.
      request({ scheduledAt: MONO + 1, startedAt: MONO + 1.1 }),
      request({ lastOutputAt: MONO + 9 }),
      failure({ class: 'refused' }),
    ];
    const open = run(requests, {
      meta: { slos, stages: [{ label: 'x', asked: null, hasSchedule: true }] },
    }).result(DONE);
    expect(open.total.goodput).toEqual({ met: 1 });
    expect(goodputRatio(open.total)).toBe(0.25);
    const closed = run(requests, { meta: { slos } }).result(DONE);
    expect(closed.total.goodput).toEqual({ met: 2 });
    expect(run(requests).result(DONE).total.goodput).toBeNull();
  });

  it('weights core shares and requests in flight by time, a worker at a time', () => {
    const builder = new ResultBuilder({ ...meta, workers: 2 });
    builder.stage({ stage: 0, what: 'begun', at: MONO });
    builder.add(batch([request()], { coreShare: 0.1, from: MONO, to: MONO + 3 }));
    builder.add(batch([], { coreShare: 0.5, from: MONO + 3, to: MONO + 4 }));
    builder.add(batch([request({ worker: 1 })], { coreShare: 0.8, from: MONO, to: MONO + 1 }));
    const { health, inFlight } = builder.result(DONE).total;
    expect(health.coreShare.map((share) => Number(share.toFixed(3)))).toEqual([0.2, 0.8]);
    expect(inFlight).toEqual({ mean: 8 / 4 + 4, max: 8 });
  });

  it('leaves out stages that never began, and says nothing of them', () => {
    const stages = ['a', 'b'].map((label) => ({ label, asked: null, hasSchedule: true }));
    const builder = new ResultBuilder({ ...meta, stages });
    builder.stage({ stage: 0, what: 'begun', at: MONO });
    builder.add(batch([request()]));
    const result = builder.result({ interrupted: true, complete: true });
    expect(result.stages.map((stage) => stage.label)).toEqual(['a']);
    expect(result).toMatchObject({ interrupted: true, total: { label: 'total' } });
  });

  it('of a run that did nothing is empty, not undefined', () => {
    const { total, stages } = new ResultBuilder(meta).result(DONE);
    expect(stages).toEqual([]);
    expect(total.latency.ttft.count).toBe(0);
    expect(ratesOf(total)).toBeNull();
    expect(errorRatio(total)).toBeNull();
  });

  it('keeps the bounds that all threads agree on for the server’s clock', () => {
    const builder = new ResultBuilder(meta);
    const offset = (low: number, high: number) => ({ low, high, samples: 3 });
    builder.add(batch([], { worker: 0, serverOffset: offset(-0.5, 0.5) }));
    builder.add(batch([], { worker: 1, serverOffset: offset(0.2, 1.2) }));
    builder.add(batch([], { worker: 0, serverOffset: offset(-0.1, 0.4) }));
    expect(builder.result(DONE).parts.present[0]?.serverOffset).toEqual({
      low: 0.2,
      high: 0.4,
      samples: 6,
    });
  });

  it('does not grow with the number of requests', () => {
    const builder = new ResultBuilder(meta);
    builder.stage({ stage: 0, what: 'begun', at: MONO });
    const size = () => JSON.stringify(builder.result(DONE)).length;
    const feed = (seconds: number, from: number) => {
      for (let s = 0; s < seconds; s++) {
        const at = MONO + from + s;
        const requests = [request({ scheduledAt: at }), request({ scheduledAt: at + 0.5 })];
        builder.add(batch(requests, { from: at, to: at + 1 }));
      }
    };
    feed(2000, 0);
    const before = size();
    feed(6000, 2000);
    expect(builder.result(DONE).total.requests.ok).toBe(16_000);
    expect(size()).toBeLessThan(before * 1.5);
  });
});

describe('a stage over time', () => {
  it('is counted in windows that widen as it goes on, and nothing is lost', () => {
    const builder = new ResultBuilder(meta);
    builder.stage({ stage: 0, what: 'begun', at: MONO });
    const requests = Array.from({ length: 1000 }, (_, i) => request({ scheduledAt: MONO + i }));
    builder.add(batch(requests));
    const course = builder.result(DONE).stages[0]?.course;
    expect(course?.width).toBe(2);
    const sum = (values: readonly number[] | undefined) =>
      (values ?? []).reduce((a, b) => a + b, 0);
    expect(sum(course?.scheduled)).toBe(1000);
    expect(sum(course?.ended)).toBe(1000);
    expect(sum(course?.ttft)).toBeCloseTo(101, 6);
    expect(course?.scheduled.slice(0, 3)).toEqual([2, 2, 2]);
  });
});
