import { monotonicNow, takeAnchor } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { Seconds } from '../../core/types.ts';
import type { EngineEvents, RunningLoad } from '../contracts.ts';
import type { LoadPlan } from '../plan.ts';
import { SharedCells } from './cells.ts';
import type { DriverEvent } from './driver.ts';
import { usefulWorkers } from './driver.ts';
import type { FromWorker, PackedBatch, ToWorker, WorkerSetup } from './messages.ts';
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
  readonly #begun = new Set<number>();
  #stage = -1;
  #isInterrupted = false;
  #isEnding = false;
  #failure: Error | null = null;
  #settle: (error: Error | null) => void = () => undefined;

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
    this.#timers.add(ping);
  }

  stop(): void {
    const message: ToWorker = { kind: this.#isInterrupted ? 'abort' : 'stop' };
    this.#isInterrupted = true;
    this.#tell(message);
    if (message.kind === 'abort') this.#terminateLater();
    // Not begun: nothing will be drained.
    if (this.#stage < 0) this.#end();
  }

  #listen(member: Member): void {
    const { thread } = member;
    thread.on('message', (message) => this.#take(member, message));
    thread.on('error', (error) => this.#lose(member, messageOf(error)));
    thread.on('exit', (code) => {
      if (!member.isOver) this.#lose(member, `it ended with code ${code}`);
    });
  }

  #take(member: Member, message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        member.isReady = true;
        if (this.#members.every(({ isReady }) => isReady) && !this.#isEnding) this.#begin(0, null);
        return;
      case 'failed': {
        const { code, remedy, exitCode } = message;
        this.#fail(
          new TraceError(code, message.message, {
            exitCode,
            ...(remedy === null ? {} : { remedy }),
          }),
        );
        this.#over(member);
        return;
      }
      case 'event':
        this.#note(member, message.event);
        return;
      case 'batch':
        this.#pass(message.batch);
        return;
      case 'ended':
        this.#over(member);
        return;
      default:
        return message satisfies never;
    }
  }

  #pass(batch: PackedBatch): void {
    const { worker, requests } = batch;
    const { trace, part } = this.#plan;
    this.#events.onBatch({
      ...batch,
      requests: unpackRecords(requests, { worker, trace, part }),
    });
  }

  /** Begins a stage in all workers; at once, or when the one before stops sending. */
  #begin(stage: number, at: Seconds | null): void {
    if (this.#isInterrupted || this.#failure !== null || this.#isEnding) return;
    this.#stage = stage;
    const held = this.#members.reduce((sum, member) => sum + member.held, 0);
    const firstUnit = Math.max(
      this.#cells.next,
      ...this.#members.map(({ endUnit }) => endUnit ?? 0),
    );
    this.#cells.next = firstUnit;
    this.#limitClaims(stage, held);
    for (const member of this.#members) member.begin(stage);
    const soon = monotonicNow() + (this.#members.length > 1 ? LEAD : 0);
    this.#tell({ kind: 'stage', stage, at: Math.max(at ?? 0, soon), firstUnit });
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
    const { stage, at } = event;
    switch (event.what) {
      case 'begun':
        if (this.#begun.has(stage)) return;
        this.#begun.add(stage);
        this.#events.onStage({ stage, what: 'begun', at });
        return;
      case 'sending-ended':
        member.endUnit = event.endUnit;
        member.held = event.held;
        member.sendingEnded(stage, at);
        break;
      case 'drained':
        member.drained(stage, at);
        break;
      default:
        event satisfies never;
    }
    this.#progress(stage);
  }

  /** What all workers have said is passed on, and what follows it begins. */
  #progress(stage: number): void {
    const members = this.#members.filter(({ isLost }) => !isLost);
    const lastOf = (pick: (member: Member) => Seconds | undefined): Seconds | null => {
      const times = members.map(pick).filter((at) => at !== undefined);
      return times.length === 0 || times.length < members.length ? null : Math.max(...times);
    };
    const ended = lastOf((member) => member.sending.get(stage));
    if (ended === null) return;
    if (this.#once(stage, 'sending-ended', ended)) {
      if (this.#plan.stages[stage + 1]?.continuous === true) this.#begin(stage + 1, ended);
    }
    const drained = lastOf((member) => member.drains.get(stage));
    if (drained === null || !this.#once(stage, 'drained', drained)) return;
    if (this.#stage > stage && !this.#isInterrupted) return;
    const isLast = stage >= this.#plan.stages.length - 1;
    if (isLast || this.#isInterrupted || this.#failure !== null) {
      if (members.every((member) => member.drains.size === this.#stage + 1)) this.#end();
    } else this.#begin(stage + 1, null);
  }

  readonly #told = new Set<string>();
  #once(stage: number, what: 'sending-ended' | 'drained', at: Seconds): boolean {
    const key = `${stage} ${what}`;
    if (this.#told.has(key)) return false;
    this.#told.add(key);
    this.#events.onStage({ stage, what, at });
    return true;
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

  #fail(error: Error): void {
    this.#failure ??= error;
    if (this.#stage < 0) this.#end();
    else this.#tell({ kind: 'stop' });
  }

  /** A worker is gone before its time: the others drain, what they measured stays, and the run fails. */
  #lose(member: Member, why: string): void {
    if (member.isOver) return;
    member.isLost = true;
    this.#fail(
      new TraceError('ERR_LOAD_WORKER', `load worker ${member.worker} failed: ${why}`, {
        exitCode: EXIT.internal,
      }),
    );
    this.#over(member);
    for (let stage = 0; stage <= this.#stage; stage++) this.#progress(stage);
    if (this.#members.every(({ isLost }) => isLost)) this.#end();
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
  endUnit: number | null = null;
  held = 0;
  /** When it stopped sending and had drained, by stage. */
  readonly sending = new Map<number, Seconds>();
  readonly drains = new Map<number, Seconds>();

  constructor(worker: number, thread: WorkerThread) {
    this.worker = worker;
    this.thread = thread;
  }

  begin(_stage: number): void {
    this.endUnit = null;
  }

  sendingEnded(stage: number, at: Seconds): void {
    this.sending.set(stage, at);
  }

  drained(stage: number, at: Seconds): void {
    this.drains.set(stage, at);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
