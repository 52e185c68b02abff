import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { readStat } from '../../src/platform/proc.ts';
import { LoopObserver } from './loop-observer.ts';
import {
  type Batch,
  type BlockMessage,
  CELL,
  type GapMessage,
  type LoopThread,
  type SamplerPlan,
  type SecondMessage,
} from './messages.ts';
import type { RuntimeAdapter } from './runtime-adapter.ts';
import { StackTable } from './stack-table.ts';
import { ProcThreadReadings } from './thread-readings.ts';

/** The worker's main loop: samples every loop, follows turns that last, hands over a batch a second. */

/** The longest pause between samples: four in the shortest block of the default threshold. */
const PERIOD_LIMIT: Seconds = 0.012;
/** Between samples while a turn is being followed: its end is known to 2 ms. */
const FOLLOW_PERIOD: Seconds = 0.002;
const BATCH_EVERY: Seconds = 1;
/** Blocks that have ended are handed over at most this often in between. */
const BLOCKS_EVERY: Seconds = 0.1;
/** Batches the main thread may be behind before new ones replace the oldest, and are counted. */
const BACKLOG = 16;
/** Blocks in one batch; a program with more has one problem, not a thousand. */
const BLOCKS_A_BATCH = 500;
/** Loop threads watched; the first found come first. */
const THREAD_LIMIT = 16;
/** Rounds after which V8 has optimised the hot path (measured: 250 µs a round before, 120 µs after), and the time they may take. */
const WARM_UP_ROUNDS = 8000;
const WARM_UP_LIMIT: Seconds = 0.15;
/** Our own thread asks for this niceness: it sleeps 97 % of the time and must wake up on time when the machine is full. */
const SAMPLER_NICE = -10;

/** Pause between two samples while nothing lasts: a quarter of the threshold, at most 12 ms. */
export function samplingPeriod(threshold: Seconds): Seconds {
  return Math.min(threshold / 4, PERIOD_LIMIT);
}

interface WatchedThread {
  readonly observer: LoopObserver;
  readonly readings: ProcThreadReadings;
}

/** Where batches go; false when the receiver is too far behind to take one. */
export type PostBatch = (batch: Batch, last: boolean) => void;

export class SamplingLoop {
  readonly #plan: SamplerPlan;
  readonly #adapter: RuntimeAdapter;
  readonly #control: Int32Array;
  #observers: readonly WatchedThread[] = [];
  readonly #stacks = new StackTable();
  #blocks: BlockMessage[] = [];
  #gaps: GapMessage[] = [];
  #samples = 0;
  #late = 0;
  #dropped = 0;
  #posted = 0;
  #postedAt: Seconds = 0;
  /** When the process was last found stopped: a turn that this falls into was not the program's doing. */
  #stoppedAt: Seconds = Number.NEGATIVE_INFINITY;
  #pending: Batch[] = [];

  constructor(plan: SamplerPlan, adapter: RuntimeAdapter) {
    this.#plan = plan;
    this.#adapter = adapter;
    this.#control = new Int32Array(plan.control);
  }

  /** Looks for loops before the run, so that it can be said what will be seen. */
  prepare(): readonly LoopThread[] {
    this.#discover(monotonicNow());
    this.#warmUp();
    return this.#observers.map(({ observer }) => observer.thread);
  }

  /** Has V8 compile the path of a sample now: at 80 samples a second it would run interpreted for the first minute. */
  #warmUp(): void {
    const end = monotonicNow() + WARM_UP_LIMIT;
    for (let i = 0; i < WARM_UP_ROUNDS && this.#observers.length > 0; i++) {
      const at = monotonicNow();
      if (at > end) return;
      for (const { observer } of this.#observers) observer.sample(at);
    }
  }

  /** Runs until asked to stop or until the target is gone. Blocks its thread. */
  run(post: PostBatch): void {
    raisePriority();
    const period = samplingPeriod(this.#plan.threshold);
    // Two samples further apart than half the threshold may have a block between them that nobody saw.
    const lateLimit = Math.max(this.#plan.threshold / 2, period * 2);
    let previous = monotonicNow();
    let nextBatch = previous + BATCH_EVERY;
    let gone = false;
    for (const { observer } of this.#observers) observer.drainSecond(previous);
    while (!gone && Atomics.load(this.#control, CELL.stop) === 0) {
      const at = monotonicNow();
      if (at - previous > lateLimit) this.#reportLate(previous, at);
      previous = at;
      this.#round(at);
      if (at >= nextBatch) {
        nextBatch = at + BATCH_EVERY;
        const state = this.#processState();
        gone = state === 'gone';
        if (!gone) this.#discover(at);
        const seconds = this.#drainSeconds(at);
        // Nothing turns in a stopped process: its silence is no evidence of anything.
        if (state === 'stopped') this.#reportStopped(at - BATCH_EVERY, at);
        this.#post(this.#takeBatch(at, state === 'stopped' ? [] : seconds), post);
      } else if (this.#blocks.length > 0 && at - this.#postedAt >= BLOCKS_EVERY) {
        // What was found is what must not be lost when we are killed: it does not wait for the second to end.
        this.#post(this.#takeBatch(at, []), post);
      }
      const pause = this.#isFollowing() ? FOLLOW_PERIOD : period;
      if (!gone) Atomics.wait(this.#control, CELL.stop, 0, pause * 1e3);
    }
    this.#finish(monotonicNow(), gone, post);
  }

  /** One sample of every loop. */
  #round(at: Seconds): void {
    this.#samples++;
    this.#adapter.round(at);
    for (const { observer } of this.#observers) {
      const block = observer.sample(at);
      if (block !== null) this.#keep(block);
    }
  }

  #isFollowing(): boolean {
    for (const { observer } of this.#observers) if (observer.following) return true;
    return false;
  }

  #keep(block: BlockMessage): void {
    const { startMin, endMax } = block.turn;
    // Stops are looked for once a second: one that began within the turn may be found only after it.
    if (startMin <= this.#stoppedAt && this.#stoppedAt <= endMax + BATCH_EVERY) {
      this.#reportStopped(startMin, endMax);
      return;
    }
    if (this.#blocks.length < BLOCKS_A_BATCH) this.#blocks.push(block);
    else this.#dropped++;
  }

  #reportLate(from: Seconds, to: Seconds): void {
    this.#late++;
    this.#gaps.push({
      from,
      to,
      reason: 'late',
      detail: `the sampler itself was not scheduled for ${Math.round((to - from) * 1e3)} ms`,
    });
  }

  #discover(at: Seconds): void {
    if (this.#observers.length >= THREAD_LIMIT) return;
    for (const { thread, watch } of this.#adapter.discover(at)) {
      let readings: ProcThreadReadings;
      try {
        readings = new ProcThreadReadings(this.#plan.pid, thread.tid);
      } catch {
        continue; // The thread ended between being found and being opened.
      }
      const { stack } = this.#adapter;
      const capture = stack === null ? null : () => this.#stackId(stack(thread.tid));
      const { threshold, raw } = this.#plan;
      const observer = new LoopObserver({ thread, watch, readings, capture, threshold, raw, at });
      this.#observers = [...this.#observers, { observer, readings }];
    }
  }

  #stackId(frames: Parameters<StackTable['idOf']>[0] | null): string | null {
    return frames === null ? null : this.#stacks.idOf(frames);
  }

  #processState(): 'alive' | 'stopped' | 'gone' {
    const stat = readStat(this.#plan.pid);
    if (stat === null || stat.startTicks !== this.#plan.startTicks || stat.state === 'Z') {
      return 'gone';
    }
    if (stat.state !== 'T' && stat.state !== 't') return 'alive';
    this.#stoppedAt = monotonicNow();
    return 'stopped';
  }

  #reportStopped(from: Seconds, to: Seconds): void {
    this.#gaps.push({
      from,
      to,
      reason: 'failed',
      detail: 'the process was stopped (SIGSTOP, or a debugger)',
    });
  }

  #takeBatch(at: Seconds, seconds: readonly SecondMessage[]): Batch {
    this.#postedAt = at;
    const batch: Batch = {
      at,
      seconds,
      stacks: this.#stacks.takeFresh(),
      blocks: this.#blocks,
      gaps: this.#gaps,
      threads: this.#observers.map(({ observer }) => observer.thread),
      samples: this.#samples,
      late: this.#late,
      dropped: this.#dropped,
      rejected: this.#adapter.rejected(),
      bytesRead: this.#adapter.bytesRead(),
    };
    this.#blocks = [];
    this.#gaps = [];
    return batch;
  }

  /** Threads that are gone are watched no longer. */
  #drainSeconds(at: Seconds): readonly SecondMessage[] {
    const seconds: SecondMessage[] = [];
    this.#observers = this.#observers.filter(({ observer, readings }) => {
      const second = observer.drainSecond(at);
      if (second !== null) seconds.push(second);
      else readings.close();
      return second !== null;
    });
    return seconds;
  }

  #post(batch: Batch, post: PostBatch): void {
    this.#pending.push(batch);
    while (this.#pending.length > BACKLOG) {
      const lost = this.#pending.shift();
      if (lost === undefined) break;
      this.#dropped += lost.blocks.length + lost.seconds.length;
      this.#stacks.restore(lost.stacks);
    }
    while (this.#posted - Atomics.load(this.#control, CELL.taken) < BACKLOG) {
      const next = this.#pending.shift();
      if (next === undefined) break;
      this.#posted++;
      post(next, false);
    }
  }

  #finish(at: Seconds, gone: boolean, post: PostBatch): void {
    const isStopped = !gone && this.#processState() === 'stopped';
    for (const { observer } of this.#observers) {
      const open = gone ? null : observer.endOpen();
      if (open !== null) this.#keep(open);
    }
    if (gone)
      this.#gaps.push({ from: at, to: at, reason: 'target-gone', detail: 'the process ended' });
    const seconds = this.#drainSeconds(at);
    const last = this.#takeBatch(at, isStopped ? [] : seconds);
    for (const batch of this.#pending) post(batch, false);
    post(last, true);
    for (const { readings } of this.#observers) readings.close();
    this.#adapter.close();
  }
}

/** Without the right to it (CAP_SYS_NICE or a limit) the sampler runs as it is. */
function raisePriority(): void {
  try {
    const tid = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    // setpriority(2) with PRIO_PROCESS acts on one thread when given a thread id.
    setPriority(tid, SAMPLER_NICE);
  } catch {
    // Late samples are recorded as gaps either way.
  }
}
