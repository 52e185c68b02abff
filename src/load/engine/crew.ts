import { monotonicNow, takeAnchor } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { HistogramBuckets, Seconds } from '../../core/types.ts';
import type { EngineBatch, EngineEvents, RunningLoad } from '../contracts.ts';
import type { LoadPlan } from '../plan.ts';
import { SharedCells } from './cells.ts';
import type { DriverEvent } from './driver.ts';
import { usefulWorkers } from './workload.ts';
import type { FromWorker, PackedBatch, ToWorker, WorkerSetup } from './messages.ts';
import { type PackedHistogram, unpackHistogram } from './histogram-pack.ts';
import { unpackRecords } from './record-pack.ts';

/** The part of a worker thread that the crew needs. */
export interface WorkerThread {
  postMessage(message: ToWorker): void;
  on(event: 'message', listener: (message: FromWorker) => void): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  on(event: 'exit', listener: (code: number) => void): unknown;
  terminate(): Promise<unknown>;
}

/** Several workers are told so long before: by then each has got the message, and all begin at one instant. */
const LEAD: Seconds = 0.005;
/** How often a worker's loop is asked how late it is. */
const PING_EVERY: Seconds = 0.02;
/** A worker that was told to end and has not, for so long, is ended. */
const END_LIMIT: Seconds = 2;

/** The main thread's side of a run: tells the workers when each stage begins and passes on what they measure. */
export class Crew implements RunningLoad {
  readonly finished: Promise<{ readonly interrupted: boolean }>;
  readonly #plan: LoadPlan;
  readonly #events: EngineEvents;
  readonly #cells: SharedCells;
  readonly #members: Member[];
  readonly #timers = new Set<NodeJS.Timeout>();
  /** What was passed on: `0 begun`. */
  readonly #told = new Set<string>();
  #stage = -1;
  #isInterrupted = false;
  #isEnding = false;
  #failure: TraceError | null = null;
  #settle: (error: TraceError | null) => void = () => undefined;

  /** `open` starts a thread. */
  constructor(plan: LoadPlan, events: EngineEvents, open: (setup: WorkerSetup) => WorkerThread) {
    this.#plan = plan;
    this.#events = events;
    this.#cells = new SharedCells({ stages: plan.stages.length });
    this.finished = new Promise((resolve, reject) => {
      this.#settle = (error) => {
        for (const timer of this.#timers) clearTimeout(timer);
        if (error === null) resolve({ interrupted: this.#isInterrupted });
        else reject(error);
      };
    });
    this.#limitClaims(0, 0);
    const workers = usefulWorkers(plan);
    const { wall, mono } = takeAnchor();
    this.#members = Array.from({ length: workers }, (_, worker) => {
      const cells = this.#cells.buffer;
      return new Member(worker, open({ plan, worker, workers, cells, wallOffset: wall - mono }));
    });
    for (const member of this.#members) this.#listen(member);
    const ping = setInterval(() => {
      // Before the first stage a worker is still loading its modules.
      if (this.#stage >= 0) this.#tell({ kind: 'ping', at: monotonicNow() });
    }, PING_EVERY * 1e3);
    ping.unref();
    this.#timers.add(ping);
  }

  stop(): void {
    const message: ToWorker = { kind: this.#isInterrupted ? 'abort' : 'stop' };
    this.#isInterrupted = true;
    this.#tell(message);
    if (message.kind === 'abort') this.#terminateLater();
    this.#endIfOver();
  }

  #listen(member: Member): void {
    const { thread } = member;
    thread.on('message', (message) => this.#take(member, message));
    thread.on('error', (error) => this.#lose(member, failureOf(member.worker, error)));
    thread.on('exit', (code) => {
      this.#lose(member, failureOf(member.worker, `it ended with code ${code}`));
    });
  }

  #take(member: Member, message: FromWorker): void {
    const { thread } = member;
    switch (message.kind) {
      case 'ready':
        member.isReady = true;
        if (this.#members.every(({ isReady }) => isReady) && this.#goesOn) this.#beginNext(0);
        return;
      case 'event':
        this.#note(member, message.event);
        return;
      case 'batch':
        this.#pass(message.batch);
        return;
      case 'ended':
        this.#over(member);
        // Timers of its own may keep it.
        void thread.terminate();
        return;
      default:
        return message satisfies never;
    }
  }

  #pass(batch: PackedBatch): void {
    const { trace, part } = this.#plan;
    this.#events.onBatch(unpackBatch(batch, { trace, part }));
  }

  /** Begins the stage after the present one in all workers, not before `at`. */
  #beginNext(at: Seconds): void {
    const stage = ++this.#stage;
    const held = this.#members.reduce((sum, member) => sum + member.held, 0);
    const firstUnit = Math.max(this.#cells.next, ...this.#members.map(({ endUnit }) => endUnit));
    this.#cells.next = firstUnit;
    // Those of the first were limited before the workers began to make their first requests ready.
    if (stage > 0) this.#limitClaims(stage, held);
    const soon = monotonicNow() + (this.#members.length > 1 ? LEAD : 0);
    this.#tell({ kind: 'stage', stage, at: Math.max(at, soon), firstUnit });
  }

  /** By count alone: so many requests are claimed in all, whichever worker is faster. */
  #limitClaims(stage: number, held: number): void {
    const { warmup, stages, prompts } = this.#plan;
    const requests = stages[stage]?.requests ?? null;
    const warm = warmup === null ? 0 : 'requests' in warmup ? warmup.requests : Number.NaN;
    const isKnown = requests !== null && prompts.turns === 1 && !Number.isNaN(warm);
    this.#cells.end = isKnown
      ? this.#cells.next - held + requests + (stage === 0 ? warm : 0)
      : null;
  }

  #note(member: Member, event: DriverEvent): void {
    const { stage, what, at } = event;
    if (what === 'begun') {
      this.#tellOnce(stage, what, at);
      return;
    }
    if (what === 'sending-ended') {
      member.endUnit = event.endUnit ?? 0;
      member.held = event.held;
    }
    member.said.set(`${stage} ${what}`, at);
    this.#progress(stage);
  }

  /** What all workers have said of a stage is passed on, and what follows begins. */
  #progress(stage: number): void {
    const next = this.#plan.stages[stage + 1];
    const ended = this.#lastOf(stage, 'sending-ended');
    if (ended !== null && this.#tellOnce(stage, 'sending-ended', ended)) {
      if (next?.continuous === true && this.#goesOn) this.#beginNext(ended);
    }
    const drained = this.#lastOf(stage, 'drained');
    if (drained !== null && this.#tellOnce(stage, 'drained', drained)) {
      if (next !== undefined && this.#stage === stage && this.#goesOn) this.#beginNext(0);
    }
    this.#endIfOver();
  }

  /** The latest time at which a worker said it; null as long as one has not. */
  #lastOf(stage: number, what: DriverEvent['what']): Seconds | null {
    const times = this.#members
      .filter(({ isLost }) => !isLost)
      .map(({ said }) => said.get(`${stage} ${what}`) ?? null);
    if (times.length === 0) return null;
    return times.reduce((a, b) => (a === null || b === null ? null : Math.max(a, b)), 0);
  }

  #tellOnce(stage: number, what: DriverEvent['what'], at: Seconds): boolean {
    const key = `${stage} ${what}`;
    if (this.#told.has(key)) return false;
    this.#told.add(key);
    this.#events.onStage({ stage, what, at });
    return true;
  }

  /** Whether further stages may begin. */
  get #goesOn(): boolean {
    return !this.#isInterrupted && this.#failure === null;
  }

  #endIfOver(): void {
    if (this.#members.every(({ isOver }) => isOver)) this.#end();
    for (let stage = 0; stage <= this.#stage; stage++) {
      if (!this.#told.has(`${stage} drained`)) return;
    }
    const isComplete = this.#stage === this.#plan.stages.length - 1;
    if (isComplete || !this.#goesOn) this.#end();
  }

  #end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#tell({ kind: 'finish' });
    this.#terminateLater();
    this.#settleIfOver();
  }

  /** A worker that says nothing any more must not hold up the end of the run. */
  #terminateLater(): void {
    this.#timers.add(
      setTimeout(() => {
        for (const { isOver, thread } of this.#members) if (!isOver) void thread.terminate();
      }, END_LIMIT * 1e3),
    );
  }

  /** A worker is gone before its time: the others drain, what was measured stays, and the run fails. */
  #lose(member: Member, failure: TraceError): void {
    if (member.isOver) return;
    member.isLost = true;
    this.#over(member);
    this.#failure ??= failure;
    this.#tell({ kind: 'stop' });
    for (let stage = 0; stage <= this.#stage; stage++) this.#progress(stage);
    this.#endIfOver();
  }

  #over(member: Member): void {
    member.isOver = true;
    this.#settleIfOver();
  }

  #settleIfOver(): void {
    if (this.#isEnding && this.#members.every(({ isOver }) => isOver)) this.#settle(this.#failure);
  }

  #tell(message: ToWorker): void {
    for (const { isOver, thread } of this.#members) if (!isOver) thread.postMessage(message);
  }
}

/** What is known of one worker. */
class Member {
  readonly worker: number;
  readonly thread: WorkerThread;
  isReady = false;
  isLost = false;
  /** It has ended, or is gone. */
  isOver = false;
  /** The first unit after its last scheduled stage, and what it has claimed and not sent. */
  endUnit = 0;
  held = 0;
  /** When it said what: `0 sending-ended`. */
  readonly said = new Map<string, Seconds>();

  constructor(worker: number, thread: WorkerThread) {
    this.worker = worker;
    this.thread = thread;
  }
}

/** The batch again, as it was measured. */
function unpackBatch(packed: PackedBatch, of: Pick<LoadPlan, 'trace' | 'part'>): EngineBatch {
  const { histograms, stages, requests, ...batch } = packed;
  const histogram = (at: PackedHistogram): HistogramBuckets => unpackHistogram(histograms, at);
  return {
    ...batch,
    stages: stages.map(({ latency, lateness, ...stage }) => ({
      ...stage,
      latency: Object.fromEntries(Object.entries(latency).map(([key, at]) => [key, histogram(at)])),
      lateness: histogram(lateness),
    })),
    requests: unpackRecords(requests, { worker: batch.worker, ...of }),
    loopDelay: histogram(batch.loopDelay),
    readLag: histogram(batch.readLag),
  };
}

/** What a worker threw, as it came through the wall between threads: expected failures keep what they are. */
function failureOf(worker: number, error: unknown): TraceError {
  if (error instanceof Error && error.name === 'TraceError') {
    const { code, exitCode, remedy } = error as Partial<TraceError>;
    if (code !== undefined && exitCode !== undefined) {
      return new TraceError(code, error.message, {
        exitCode,
        ...(typeof remedy === 'string' ? { remedy } : {}),
      });
    }
  }
  const why = error instanceof Error ? error.message : String(error);
  return new TraceError('ERR_LOAD_WORKER', `load worker ${worker} failed: ${printable(why)}`, {
    exitCode: EXIT.internal,
    cause: error,
  });
}
