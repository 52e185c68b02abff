import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { TraceError } from '../../../src/core/errors.ts';
import { EXIT } from '../../../src/core/exit-code.ts';
import { ExponentialHistogram } from '../../../src/core/exponential-histogram.ts';
import { SharedCells } from '../../../src/load/engine/cells.ts';
import { Crew, type WorkerThread } from '../../../src/load/engine/crew.ts';
import { HistogramPack } from '../../../src/load/engine/histogram-pack.ts';
import type {
  FromWorker,
  PackedBatch,
  ToWorker,
  WorkerSetup,
} from '../../../src/load/engine/messages.ts';
import { RecordPack } from '../../../src/load/engine/record-pack.ts';
import type { EngineBatch, EngineEvents } from '../../../src/load/contracts.ts';
import type { LoadPlan } from '../../../src/load/plan.ts';
import { closed, loadPlan, open, stage } from './simulation.ts';

/** A thread that says what the test wants, and remembers what it was told. */
class FakeThread implements WorkerThread {
  readonly setup: WorkerSetup;
  readonly told: ToWorker[] = [];
  terminated = false;
  readonly #listeners = new Map<string, ((value: never) => void)[]>();

  constructor(setup: WorkerSetup) {
    this.setup = setup;
  }

  postMessage(message: ToWorker): void {
    if (message.kind === 'ping') return;
    this.told.push(message);
    if (message.kind === 'finish') setImmediate(() => this.say({ kind: 'ended' }));
  }

  on(event: string, listener: (value: never) => void): void {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  terminate(): Promise<void> {
    this.terminated = true;
    return Promise.resolve();
  }

  emit(event: 'message' | 'error' | 'exit', value: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(value as never);
  }

  say(message: FromWorker): void {
    this.emit('message', message);
  }

  ended(index: number, at: number, more: { endUnit?: number; held?: number } = {}): void {
    this.say({
      kind: 'event',
      event: { what: 'sending-ended', stage: index, at, endUnit: null, held: 0, ...more },
    });
  }

  drained(index: number, at: number): void {
    this.say({ kind: 'event', event: { what: 'drained', stage: index, at } });
  }

  get kinds(): string[] {
    return this.told.map(({ kind }) => kind);
  }
}

function crewOf(plan: LoadPlan) {
  const threads: FakeThread[] = [];
  const stages: string[] = [];
  const batches: EngineBatch[] = [];
  const events: EngineEvents = {
    onBatch: (batch) => batches.push(batch),
    onStage: ({ stage: index, what, at }) => stages.push(`${index} ${what} ${at}`),
  };
  const crew = new Crew(plan, events, (setup) => {
    const thread = new FakeThread(setup);
    threads.push(thread);
    return thread;
  });
  const ready = () => threads.forEach((thread) => thread.say({ kind: 'ready' }));
  const [a, b] = [threads[0], threads[1]];
  if (a === undefined) throw new Error('no thread');
  return { crew, threads, a, b: b ?? a, stages, batches, ready };
}

const TWO = loadPlan([stage(closed(4), { requests: 10 })], { workers: 2 });

describe('workers', () => {
  it('begin at one instant, when all are ready', () => {
    const { a, b } = crewOf(TWO);
    a.say({ kind: 'ready' });
    expect(a.told).toEqual([]);
    b.say({ kind: 'ready' });
    expect(a.told).toEqual([expect.objectContaining({ kind: 'stage', stage: 0, firstUnit: 0 })]);
    expect(b.told).toEqual(a.told);
  });

  it('share what may be claimed', () => {
    const { a, b } = crewOf(TWO);
    const cells = [new SharedCells(a.setup.cells), new SharedCells(b.setup.cells)];
    const claimed = Array.from({ length: 14 }, (_, i) => cells[i % 2]?.claim());
    expect(claimed).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, null, null, null, null]);
  });

  it('may have claimed before the first stage begins: what is claimed in all stays the same', () => {
    const { a, ready } = crewOf(TWO);
    const cells = new SharedCells(a.setup.cells);
    cells.claim();
    cells.claim();
    ready();
    const rest = Array.from({ length: 9 }, () => cells.claim());
    expect(rest).toEqual([2, 3, 4, 5, 6, 7, 8, 9, null]);
  });

  it('end a stage together: at the latest time, said once', async () => {
    const { crew, a, b, stages, ready } = crewOf(TWO);
    ready();
    for (const thread of [a, b]) {
      thread.say({ kind: 'event', event: { what: 'begun', stage: 0, at: 5 } });
    }
    a.ended(0, 6);
    a.drained(0, 6.5);
    expect(stages).toEqual(['0 begun 5']);
    b.ended(0, 7);
    b.drained(0, 8);
    expect(stages).toEqual(['0 begun 5', '0 sending-ended 7', '0 drained 8']);
    await expect(crew.finished).resolves.toEqual({ interrupted: false });
    expect(a.kinds).toEqual(['stage', 'finish']);
    expect(a.terminated && b.terminated).toBe(true);
  });
});

describe('the next stage', () => {
  const plan = loadPlan(
    [
      stage(open(5), { requests: 10 }),
      stage(open(9), { duration: 1 }),
      stage(closed(2), { requests: 4 }),
    ],
    { workers: 2 },
  );

  it('begins when all have drained, after the last request of the one before', () => {
    const { a, b, ready } = crewOf(plan);
    ready();
    a.ended(0, 6, { endUnit: 10 });
    b.ended(0, 6, { endUnit: 10 });
    a.drained(0, 7);
    expect(a.told).toHaveLength(1);
    b.drained(0, 7);
    expect(a.told[1]).toMatchObject({ kind: 'stage', stage: 1, firstUnit: 10 });
  });

  it('that is continuous begins when all have stopped sending', () => {
    const [first, second] = plan.stages;
    if (first === undefined || second === undefined) throw new Error('no stages');
    const { a, b, ready, stages } = crewOf({
      ...plan,
      stages: [first, { ...second, continuous: true }],
    });
    ready();
    a.ended(0, 1e9);
    expect(a.told).toHaveLength(1);
    b.ended(0, 1e9 + 1);
    expect(a.told[1]).toMatchObject({ kind: 'stage', stage: 1, at: 1e9 + 1 });
    // The first drains after the second has begun.
    for (const thread of [a, b]) thread.drained(0, 1e9 + 2);
    expect(a.kinds).toEqual(['stage', 'stage']);
    for (const thread of [a, b]) {
      thread.ended(1, 1e9 + 3);
      thread.drained(1, 1e9 + 4);
    }
    expect(a.kinds).toEqual(['stage', 'stage', 'finish']);
    expect(stages.map((one) => one.split(' ').slice(0, 2).join(' '))).toEqual([
      '0 sending-ended',
      '0 drained',
      '1 sending-ended',
      '1 drained',
    ]);
  });

  it('of a closed loop sends what was claimed and not sent, and as many as were asked for in all', () => {
    const { a, b, ready } = crewOf(
      loadPlan([stage(closed(2), { duration: 1 }), stage(closed(2), { requests: 5 })], {
        workers: 2,
      }),
    );
    ready();
    const cells = new SharedCells(a.setup.cells);
    for (let i = 0; i < 7; i++) cells.claim();
    for (const [thread, held] of [
      [a, 2],
      [b, 1],
    ] as const) {
      thread.ended(0, 6, { held });
      thread.drained(0, 6);
    }
    // 4 of 7 were sent; 3 are held, so 2 more may be claimed: 7 and 8.
    expect([cells.claim(), cells.claim(), cells.claim()]).toEqual([7, 8, null]);
  });
});

describe('stop', () => {
  it('lets the workers drain, begins nothing more, and says that it was interrupted', async () => {
    const { crew, a, ready } = crewOf(
      loadPlan([stage(closed(1), { duration: 9 }), stage(closed(1), { duration: 9 })]),
    );
    ready();
    crew.stop();
    expect(a.kinds).toEqual(['stage', 'stop']);
    a.ended(0, 1);
    a.drained(0, 2);
    await expect(crew.finished).resolves.toEqual({ interrupted: true });
    expect(a.kinds).toEqual(['stage', 'stop', 'finish']);
  });

  it('the second time ends what is under way', () => {
    const { crew, a, ready } = crewOf(loadPlan([stage(closed(1), { duration: 9 })]));
    ready();
    crew.stop();
    crew.stop();
    expect(a.kinds).toEqual(['stage', 'stop', 'abort']);
  });

  it('before anything began ends at once', async () => {
    const { crew } = crewOf(loadPlan([stage(closed(1), { duration: 9 })]));
    crew.stop();
    await expect(crew.finished).resolves.toEqual({ interrupted: true });
  });
});

describe('a worker that is gone', () => {
  it('ends the run as failed, when the others have drained', async () => {
    const { crew, a, b, ready, stages } = crewOf(TWO);
    ready();
    a.emit('error', new Error('out of memory \u001b[31m'));
    expect(b.kinds).toEqual(['stage', 'stop']);
    b.ended(0, 3);
    b.drained(0, 4);
    const failure = await crew.finished.then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(TraceError);
    expect(failure).toMatchObject({
      code: 'ERR_LOAD_WORKER',
      exitCode: EXIT.internal,
      message: String.raw`load worker 0 failed: out of memory \x1b[31m`,
    });
    expect(stages).toEqual(['0 sending-ended 3', '0 drained 4']);
  });

  it('after the others have drained ends it too', async () => {
    const { crew, a, b, ready } = crewOf(TWO);
    ready();
    b.ended(0, 3);
    b.drained(0, 4);
    a.emit('exit', 1);
    await expect(crew.finished).rejects.toMatchObject({ code: 'ERR_LOAD_WORKER' });
  });

  it('by itself, or before it began, is no reason to wait', async () => {
    const alone = crewOf(loadPlan([stage(closed(1), { duration: 9 })]));
    alone.ready();
    alone.a.emit('exit', 137);
    await expect(alone.crew.finished).rejects.toThrow('it ended with code 137');
    const early = crewOf(TWO);
    early.a.emit('error', new Error('no such module'));
    await expect(early.crew.finished).rejects.toThrow('no such module');
  });

  it('for a reason that is expected keeps that reason', async () => {
    const { crew, a } = crewOf(loadPlan([stage(closed(1), { duration: 9 })]));
    // As it comes through structured clone: no TraceError any more.
    const error = Object.assign(new Error('there is no x.jsonl'), {
      name: 'TraceError',
      code: 'ERR_PROMPTS',
      exitCode: 3,
      remedy: 'look for it',
    });
    a.emit('error', error);
    await expect(crew.finished).rejects.toMatchObject({
      name: 'TraceError',
      code: 'ERR_PROMPTS',
      exitCode: 3,
      remedy: 'look for it',
    });
  });
});

function filled(...values: number[]): ExponentialHistogram {
  const histogram = new ExponentialHistogram();
  for (const value of values) histogram.record(value);
  return histogram;
}

describe('a batch', () => {
  it('is passed on with its records whole again', async () => {
    const { a, batches, ready } = crewOf(loadPlan([stage(closed(1), { duration: 9 })]));
    ready();
    const said = { worker: 0, from: 1, to: 2, coreShare: 0.5, inFlight: 3, stage: 0 };
    const ofStage = { stage: 0, inFlightSeconds: 2, inFlightMax: 4, queued: 1 };
    const pack = new HistogramPack();
    const packed = (...values: number[]): number => pack.drain(filled(...values));
    const batch: Omit<PackedBatch, 'histograms'> = {
      ...said,
      stages: [{ ...ofStage, latency: { ttft: packed(0.2, 0.3) }, lateness: packed(0) }],
      requests: new RecordPack().take(),
      loopDelay: packed(),
      readLag: packed(1e-6),
      serverOffset: null,
    };
    a.say({ kind: 'batch', batch: { ...batch, histograms: pack.take() } });
    expect(batches).toEqual([
      {
        ...said,
        stages: [
          {
            ...ofStage,
            latency: { ttft: filled(0.2, 0.3).buckets() },
            lateness: filled(0).buckets(),
          },
        ],
        requests: [],
        loopDelay: filled().buckets(),
        readLag: filled(1e-6).buckets(),
        serverOffset: null,
      },
    ]);
    await sleep(0);
  });
});
