import { describe, expect, it } from 'vitest';
import { PAUSE_AFTER_FAILURE } from '../../../src/load/engine/closed-loop.ts';
import { usefulWorkers } from '../../../src/load/engine/workload.ts';
import {
  type Behaviour,
  closed,
  gapsOf,
  latencyOf,
  loadPlan,
  open,
  PROMPT,
  simulate,
  type Simulated,
  stage,
  START,
} from './simulation.ts';

/** One request lasts 120 ms (see PROMPT). */
const REQUEST = 0.12;

const indicesOf = ({ records }: Simulated) => records.map(({ index }) => index);
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);
const eventsOf = ({ events }: Simulated) =>
  events.map(({ what, stage: index, at }) => `${index} ${what} ${(at - START).toFixed(3)}`);

describe('a closed loop', () => {
  it('keeps so many under way: each user sends when its last is over', () => {
    const run = simulate(loadPlan([stage(closed(3), { requests: 9 })]));
    expect(indicesOf(run)).toEqual(upTo(9));
    expect(run.mostAtOnce).toBe(3);
    expect(run.records.map(({ scheduledAt }) => scheduledAt - START)).toEqual(
      [0, 0, 0, 0.12, 0.12, 0.12, 0.24, 0.24, 0.24].map((at) => expect.closeTo(at, 9)),
    );
  });

  it('of a duration sends nothing after it, and lets what is under way end', () => {
    const run = simulate(loadPlan([stage(closed(2), { duration: 1 })]));
    // Users begin a request at 0, 0.12, … 0.96.
    expect(run.records).toHaveLength(18);
    expect(run.records.every(({ error }) => error === null)).toBe(true);
    expect(eventsOf(run)).toEqual(['0 begun 0.000', '0 sending-ended 1.000', '0 drained 1.080']);
  });

  it('begins its users one after the other over the ramp', () => {
    const run = simulate(loadPlan([stage(closed(4, 0.08), { duration: 0.1 })]));
    expect(gapsOf(run.records)).toEqual([0.02, 0.02, 0.02].map((gap) => expect.closeTo(gap, 9)));
  });

  it('ends when the data do', () => {
    const run = simulate(loadPlan([stage(closed(2), { duration: 60 })]), { length: 5 });
    expect(indicesOf(run)).toEqual(upTo(5));
    expect(eventsOf(run).at(-1)).toBe('0 drained 0.360');
  });

  it('waits before it asks again what gave no byte, and at once after an error that was an answer', () => {
    const down = simulate(loadPlan([stage(closed(1), { requests: 3 })]), {
      behave: () => ({ outputs: [], end: 0, error: 'refused' }),
    });
    expect(gapsOf(down.records)).toEqual(
      [PAUSE_AFTER_FAILURE, PAUSE_AFTER_FAILURE].map((gap) => expect.closeTo(gap, 9)),
    );
    const cut = simulate(loadPlan([stage(closed(1), { requests: 2 })]), {
      behave: () => ({ outputs: [0.01], end: 0.02, error: 'cut' }),
    });
    expect(gapsOf(cut.records)).toEqual([expect.closeTo(0.02, 9)]);
  });

  it('counts requests over all workers, whichever is faster', () => {
    // One of the two users of worker 1 waits for long.
    const run = simulate(loadPlan([stage(closed(4), { requests: 40 })]), {
      workers: 2,
      behave: (index) => (index === 2 ? { ...PROMPT, end: 3 } : PROMPT),
    });
    expect(indicesOf(run)).toEqual(upTo(40));
    const byWorker = upTo(2).map((w) => run.records.filter(({ worker }) => worker === w).length);
    expect(byWorker[0]).toBeGreaterThan(byWorker[1] ?? 0);
  });
});

describe('an open loop', () => {
  it('sends when it is due, whatever the server does', () => {
    const run = simulate(loadPlan([stage(open(100), { duration: 1 })]), {
      behave: () => ({ ...PROMPT, end: 2 }),
    });
    expect(run.records).toHaveLength(100);
    expect(gapsOf(run.records).every((gap) => Math.abs(gap - 0.01) < 1e-9)).toBe(true);
    expect(run.mostAtOnce).toBe(100);
    expect(eventsOf(run)).toEqual(['0 begun 0.000', '0 sending-ended 1.000', '0 drained 2.990']);
  });

  it('of a number ends when the next would have been due', () => {
    const run = simulate(loadPlan([stage(open(10), { requests: 5 })]));
    expect(indicesOf(run)).toEqual(upTo(5));
    expect(eventsOf(run)).toContain('0 sending-ended 0.500');
  });

  it.each([2, 3])('is the same over %d workers as in one', (workers) => {
    const plan = loadPlan([
      stage(open(200, 0.7), { duration: 2 }),
      stage(open(50, 1), { requests: 20 }),
    ]);
    const pick = ({ records }: Simulated) =>
      records.map(({ index, stage: of, scheduledAt }) => [index, of, scheduledAt.toFixed(6)]);
    const one = simulate(plan);
    expect(one.records.length).toBeGreaterThan(300);
    const many = simulate(plan, { workers });
    const relative = (run: Simulated, of: number) => {
      const of_ = run.records.filter((record) => record.stage === of);
      return of_.map(({ index, scheduledAt }) => [
        index,
        (scheduledAt - (of_[0]?.scheduledAt ?? 0)).toFixed(6),
      ]);
    };
    expect(pick(many).map(([index]) => index)).toEqual(pick(one).map(([index]) => index));
    for (const of of [0, 1]) expect(relative(many, of)).toEqual(relative(one, of));
    expect(new Set(many.records.map(({ worker }) => worker)).size).toBe(workers);
  });

  it('under a limit queues what is due, which keeps its time', () => {
    // 10 a second, each 0.5 s, three at once: 6 a second go through.
    const run = simulate(loadPlan([stage(open(10), { requests: 12, maxConcurrency: 3 })]), {
      behave: () => ({ ...PROMPT, end: 0.5 }),
    });
    expect(run.mostAtOnce).toBe(3);
    expect(indicesOf(run)).toEqual(upTo(12));
    expect(gapsOf(run.records).every((gap) => Math.abs(gap - 0.1) < 1e-9)).toBe(true);
    expect(run.records.map(({ startedAt }) => startedAt - START)).toEqual(
      [0, 0.1, 0.2, 0.5, 0.6, 0.7, 1, 1.1, 1.2, 1.5, 1.6, 1.7].map((at) => expect.closeTo(at, 9)),
    );
    const queued = run.stages.reduce((sum, one) => sum + one.queued, 0);
    expect(queued).toBe(9);
    // From the schedule the wait counts; it is not the client's lateness.
    expect(latencyOf(run, 'e2e_scheduled').max).toBeCloseTo(1.1, 6);
    expect(latencyOf(run, 'e2e').max).toBeCloseTo(0.5, 6);
    expect(run.stages.every(({ lateness }) => lateness.max < 1e-9)).toBe(true);
  });

  it('splits a limit over the workers, and uses no more of them than there are places', () => {
    const plan = loadPlan([stage(open(100), { requests: 50, maxConcurrency: 5 })]);
    expect(simulate(plan, { workers: 2 }).mostAtOnce).toBe(5);
    expect(usefulWorkers({ ...plan, workers: 8 })).toBe(5);
    expect(usefulWorkers({ ...loadPlan([stage(closed(2))]), workers: 8 })).toBe(2);
    expect(usefulWorkers({ ...loadPlan([stage(open(9))]), workers: 8 })).toBe(8);
  });

  it('goes on when everything fails at once, without a stack for each', () => {
    const run = simulate(loadPlan([stage(open(100_000), { duration: 0.2, maxConcurrency: 1 })]), {
      behave: (index) =>
        index === 0 ? { outputs: [0.1], end: 0.19 } : { outputs: [], end: 0, error: 'refused' },
    });
    expect(run.records).toHaveLength(20_000);
  });

  it('sends what waits during the drain, and gives up what it could not send', () => {
    const run = simulate(
      loadPlan([stage(open(10), { duration: 1, maxConcurrency: 1 })], { drain: 1.9 }),
      { behave: () => ({ ...PROMPT, end: 0.5 }) },
    );
    // One each half second until 2.9 s; the one that is under way then is ended.
    const unfinished = run.records.filter(({ error }) => error?.class === 'unfinished');
    expect(run.records).toHaveLength(10);
    expect(unfinished).toHaveLength(5);
    const givenUp = unfinished.filter(({ error }) => error?.detail.startsWith('never sent'));
    expect(givenUp).toHaveLength(4);
    // Nothing of the requests that the slots had before.
    for (const { startedAt, sentAt, endedAt, ...rest } of givenUp) {
      expect([startedAt, sentAt]).toEqual([endedAt, endedAt]);
      expect(endedAt - START).toBeCloseTo(2.9, 6);
      expect(rest).toMatchObject({ outputs: 0, outputTokens: null, firstByteAt: null });
    }
    expect(latencyOf(run, 'e2e').count).toBe(5);
  });
});

describe('a replay', () => {
  const dues = [0, 0.1, 0.1, 0.5, 2];
  const replay = (speed: number) => ({ kind: 'replay', speed }) as const;

  it('sends at the times of the data', () => {
    const run = simulate(loadPlan([stage(replay(1))]), { dues, length: 5 });
    expect(run.records.map(({ scheduledAt }) => scheduledAt - START)).toEqual(
      dues.map((at) => expect.closeTo(at, 9)),
    );
  });

  it('may be faster, and ends by time or count', () => {
    const twice = simulate(loadPlan([stage(replay(2))]), { dues, length: 5 });
    expect(twice.records.at(-1)?.scheduledAt).toBeCloseTo(START + 1, 9);
    const timed = simulate(loadPlan([stage(replay(1), { duration: 1 })]), { dues, length: 5 });
    expect(indicesOf(timed)).toEqual(upTo(4));
    expect(eventsOf(timed)).toContain('0 sending-ended 1.000');
    const counted = simulate(loadPlan([stage(replay(1), { requests: 2 })]), { dues, length: 5 });
    expect(indicesOf(counted)).toEqual(upTo(2));
  });

  it('is the same over two workers', () => {
    const run = simulate(loadPlan([stage(replay(1))]), { dues, length: 5, workers: 2 });
    expect(indicesOf(run)).toEqual(upTo(5));
    expect(run.records.map(({ scheduledAt }) => scheduledAt - START)).toEqual(
      dues.map((at) => expect.closeTo(at, 9)),
    );
  });
});

describe('stages', () => {
  it('come one after the other, each when the one before has drained', () => {
    const run = simulate(
      loadPlan([stage(closed(1), { requests: 2 }), stage(closed(4), { requests: 8 })]),
    );
    expect(indicesOf(run)).toEqual(upTo(10));
    expect(run.records.map(({ stage: index }) => index)).toEqual([0, 0, ...Array(8).fill(1)]);
    const first = run.events.find(({ what }) => what === 'drained')?.at ?? 0;
    expect(Math.min(...run.records.slice(2).map(({ startedAt }) => startedAt))).toBe(first);
    expect(latencyOf(run, 'e2e', 0).count).toBe(2);
    expect(latencyOf(run, 'e2e', 1).count).toBe(8);
  });

  it('that are continuous begin at once, and users with a request under way bring it to its end', () => {
    const run = simulate(
      loadPlan([
        stage(closed(2), { duration: 0.3 }),
        stage(closed(4), { duration: 0.3, continuous: true }),
      ]),
    );
    const second = run.records.filter(({ stage: index }) => index === 1);
    const starts = second.map(({ startedAt }) => Number((startedAt - START).toFixed(3)));
    // Two new users at 0.3; the two others when their requests of the first stage end, at 0.36.
    expect(starts.slice(0, 4)).toEqual([0.3, 0.3, 0.36, 0.36]);
    expect(run.mostAtOnce).toBe(4);
  });

  it('of a sweep in an open loop have their own rate and no holes in the index', () => {
    const run = simulate(
      loadPlan([stage(open(10), { duration: 1 }), stage(open(20), { duration: 1 })]),
      { workers: 2 },
    );
    expect(indicesOf(run)).toEqual(upTo(30));
    expect(run.records.filter(({ stage: index }) => index === 1)).toHaveLength(20);
  });

  it('may be many users and then few', () => {
    const run = simulate(
      loadPlan([
        stage(closed(6), { duration: 0.3 }),
        stage(closed(1), { duration: 0.3, continuous: true }),
      ]),
    );
    const second = run.records.filter(({ stage: index }) => index === 1);
    expect(second.length).toBeGreaterThan(0);
    expect(gapsOf(second).every((gap) => gap > REQUEST - 1e-9)).toBe(true);
  });
});

describe('warm-up', () => {
  it('by count is sent, marked, and in no latency', () => {
    const run = simulate(
      loadPlan([stage(closed(2), { requests: 4 })], { warmup: { requests: 3 } }),
      { behave: (index) => (index < 3 ? { ...PROMPT, end: 5 } : PROMPT) },
    );
    expect(run.records.filter(({ warmup }) => warmup)).toHaveLength(3);
    expect(run.records.filter(({ warmup }) => !warmup)).toHaveLength(4);
    expect(latencyOf(run, 'e2e').count).toBe(4);
    expect(latencyOf(run, 'e2e').max).toBeCloseTo(REQUEST, 6);
    expect(run.stages.reduce((sum, { lateness }) => sum + lateness.count, 0)).toBe(4);
    // Measuring begins with the first measured request.
    expect(eventsOf(run)[0]).toBe('0 begun 5.000');
  });

  it('by time comes before the duration', () => {
    const run = simulate(loadPlan([stage(open(10), { duration: 1 })], { warmup: { duration: 2 } }));
    expect(run.records.map(({ warmup }) => warmup)).toEqual([
      ...Array(20).fill(true),
      ...Array(10).fill(false),
    ]);
    expect(eventsOf(run)).toEqual(['0 begun 2.000', '0 sending-ended 3.000', '0 drained 3.020']);
  });

  it('by time is in every stage, by count before the first only', () => {
    const stages = [stage(closed(1), { duration: 0.5 }), stage(closed(1), { duration: 0.5 })];
    const timed = simulate(loadPlan(stages, { warmup: { duration: 0.3 } }));
    const counted = simulate(loadPlan(stages, { warmup: { requests: 2 } }));
    const warm = ({ records }: Simulated, of: number) =>
      records.filter(({ stage: index, warmup }) => index === of && warmup).length;
    expect([warm(timed, 0), warm(timed, 1)]).toEqual([3, 3]);
    expect([warm(counted, 0), warm(counted, 1)]).toEqual([2, 0]);
  });

  it('by time leaves the number of measured requests as asked', () => {
    const run = simulate(
      loadPlan([stage(closed(2), { requests: 5 })], { warmup: { duration: 0.3 } }),
    );
    expect(run.records.filter(({ warmup }) => !warmup)).toHaveLength(5);
    expect(run.records.filter(({ warmup }) => warmup)).toHaveLength(6);
  });

  it('counts nothing as under way', () => {
    const run = simulate(
      loadPlan([stage(closed(2), { duration: 1 })], { warmup: { duration: 1 } }),
    );
    const seconds = run.stages.reduce((sum, one) => sum + one.inFlightSeconds, 0);
    expect(seconds).toBeCloseTo(2, 6);
    expect(Math.max(...run.stages.map(({ inFlightMax }) => inFlightMax))).toBe(2);
  });
});

describe('the end', () => {
  const hanging = (index: number): Behaviour => (index === 1 ? { ...PROMPT, hangs: true } : PROMPT);

  it('waits for what is under way no longer than the drain', () => {
    const run = simulate(loadPlan([stage(closed(2), { duration: 1 })], { drain: 3 }), {
      behave: hanging,
    });
    const unfinished = run.records.filter(({ error }) => error?.class === 'unfinished');
    expect(unfinished.map(({ index }) => index)).toEqual([1]);
    expect(eventsOf(run).at(-1)).toBe('0 drained 4.000');
    expect(latencyOf(run, 'ttft').count).toBe(run.records.length - 1);
  });

  it('by stop lets what is under way end, and sends nothing more', () => {
    const run = simulate(loadPlan([stage(closed(2), { duration: 60 })]), {
      at: [[0.3, (drivers) => drivers.forEach((driver) => driver.stop())]],
    });
    expect(run.records).toHaveLength(6);
    expect(run.records.every(({ error }) => error === null)).toBe(true);
    expect(eventsOf(run)).toEqual(['0 begun 0.000', '0 sending-ended 0.300', '0 drained 0.360']);
  });

  it('by a second stop ends what is under way', () => {
    const run = simulate(loadPlan([stage(open(10), { duration: 60 })]), {
      behave: () => ({ ...PROMPT, hangs: true }),
      at: [
        [0.35, (drivers) => drivers.forEach((driver) => driver.stop())],
        [0.5, (drivers) => drivers.forEach((driver) => driver.abort())],
      ],
    });
    expect(run.records.map(({ error }) => error?.class)).toEqual(Array(4).fill('unfinished'));
    expect(eventsOf(run).at(-1)).toBe('0 drained 0.500');
  });

  it('by stop before a stage has begun to be measured leaves out that it began', () => {
    const run = simulate(
      loadPlan([stage(closed(1), { duration: 9 })], { warmup: { duration: 5 } }),
      {
        at: [[1, (drivers) => drivers.forEach((driver) => driver.stop())]],
      },
    );
    expect(run.events.map(({ what }) => what)).toEqual(['sending-ended', 'drained']);
    expect(run.records.every(({ warmup }) => warmup)).toBe(true);
  });

  it('by stop gives up what waited for a place', () => {
    const run = simulate(loadPlan([stage(open(100), { duration: 9, maxConcurrency: 1 })]), {
      at: [[0.1, (drivers) => drivers.forEach((driver) => driver.stop())]],
    });
    const unsent = run.records.filter(({ error }) => error?.class === 'unfinished');
    expect(unsent.length).toBeGreaterThan(8);
    expect(run.records.length - unsent.length).toBe(1);
  });
});

describe('conversations', () => {
  const talk = (turns: number, thinkTime: number) => ({
    prompts: { classes: [], turns, thinkTime },
  });

  it('go on after the answer and the pause, in a closed loop with the same user', () => {
    const run = simulate(loadPlan([stage(closed(1), { requests: 6 })], talk(3, 1)));
    expect(run.records.map(({ session, turn }) => [session, turn])).toEqual([
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0],
      [1, 1],
      [1, 2],
    ]);
    expect(gapsOf(run.records)).toEqual(
      [1.12, 1.12, REQUEST, 1.12, 1.12].map((gap) => expect.closeTo(gap, 9)),
    );
    expect(run.sources[0]?.answers.get(0)).toBe('answer to 0');
  });

  it('in an open loop arrive at the rate, and go on by themselves', () => {
    const run = simulate(loadPlan([stage(open(1), { requests: 6 })], talk(2, 0.2)));
    expect(indicesOf(run)).toEqual(upTo(6));
    expect(run.records.map(({ scheduledAt }) => scheduledAt - START)).toEqual(
      [0, 0.32, 1, 1.32, 2, 2.32].map((at) => expect.closeTo(at, 9)),
    );
  });

  it('end with a failure: there is no answer to go on from', () => {
    const run = simulate(loadPlan([stage(closed(1), { duration: 2 })], talk(3, 0.1)), {
      behave: (index) => (index === 1 ? { outputs: [0.01], end: 0.02, error: 'cut' } : PROMPT),
    });
    expect(indicesOf(run)).not.toContain(2);
    expect(indicesOf(run)).toContain(3);
  });

  it('stay with their worker', () => {
    const run = simulate(loadPlan([stage(closed(4), { duration: 3 })], talk(3, 0.1)), {
      workers: 2,
    });
    const workers = new Map<number | null, Set<number>>();
    for (const { session, worker } of run.records) {
      workers.set(session, (workers.get(session) ?? new Set()).add(worker));
    }
    expect([...workers.values()].every((set) => set.size === 1)).toBe(true);
    expect(new Set(run.records.map(({ worker }) => worker)).size).toBe(2);
  });

  it('that have begun go on when the data are at an end', () => {
    const run = simulate(loadPlan([stage(closed(2), { duration: 60 })], talk(2, 1)), { length: 6 });
    expect(indicesOf(run)).toEqual(upTo(6));
    expect(eventsOf(run).at(-1)).toMatch(/drained 2\.\d+$/);
  });
});

describe('what is measured', () => {
  it('is TTFT, every gap, TPOT and NTPOT by the tokens that the server counted, and the whole', () => {
    const run = simulate(loadPlan([stage(closed(1), { requests: 1 })]), {
      behave: () => ({ outputs: [0.1, 0.12, 0.12, 0.18], end: 0.2, tokens: 5 }),
    });
    expect(latencyOf(run, 'ttft').sum).toBeCloseTo(0.1, 9);
    expect(latencyOf(run, 'e2e').sum).toBeCloseTo(0.2, 9);
    expect(latencyOf(run, 'tpot').sum).toBeCloseTo(0.08 / 4, 9);
    expect(latencyOf(run, 'ntpot').sum).toBeCloseTo(0.2 / 5, 9);
    const itl = latencyOf(run, 'itl');
    expect(itl.count).toBe(3);
    expect(itl.zeroCount).toBe(1);
    expect(itl.sum).toBeCloseTo(0.08, 9);
    expect(itl.max).toBeCloseTo(0.06, 9);
    expect(itl.min).toBe(0);
    const [record] = run.records;
    expect(record?.longestGap).toBeCloseTo(0.06, 9);
    expect(record?.outputs).toBe(4);
  });

  it('leaves failed requests out of every latency, and nothing of theirs in the next of the slot', () => {
    const run = simulate(loadPlan([stage(closed(1), { requests: 4 })]), {
      behave: (index) => (index % 2 === 0 ? { outputs: [1, 3, 9], end: 10, error: 'cut' } : PROMPT),
    });
    expect(run.records.map(({ error }) => error?.class ?? null)).toEqual([
      'cut',
      null,
      'cut',
      null,
    ]);
    for (const key of [
      'ttft',
      'itl',
      'tpot',
      'ntpot',
      'e2e',
      'ttft_scheduled',
      'e2e_scheduled',
    ] as const) {
      expect(latencyOf(run, key).count, key).toBe(key === 'itl' ? 4 : 2);
      expect(latencyOf(run, key).max, key).toBeLessThan(0.2);
    }
    expect(run.records[2]?.outputs).toBe(3);
  });

  it('keeps every gap of an answer of thousands of outputs', () => {
    const outputs = upTo(5000).map((i) => 0.1 + i / 1000);
    const run = simulate(loadPlan([stage(closed(1), { requests: 2 })]), {
      behave: () => ({ outputs, end: 5.2 }),
    });
    expect(latencyOf(run, 'itl').count).toBe(2 * 4999);
    expect(latencyOf(run, 'tpot').sum / 2).toBeCloseTo(0.001, 6);
  });

  it('has no TTFT and no gap where nothing is streamed', () => {
    const run = simulate(
      loadPlan([stage(closed(1), { requests: 2 })], {
        body: { model: 'm', stream: false, ignoreEos: false, extra: {} },
      }),
      { behave: () => ({ outputs: [0.2], end: 0.2, tokens: 10 }) },
    );
    expect(latencyOf(run, 'ttft').count).toBe(0);
    expect(latencyOf(run, 'itl').count).toBe(0);
    expect(latencyOf(run, 'tpot').count).toBe(0);
    expect(latencyOf(run, 'e2e').count).toBe(2);
    expect(latencyOf(run, 'ntpot').sum / 2).toBeCloseTo(0.02, 9);
  });
});
