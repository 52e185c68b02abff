import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { FreezerReader } from '../../src/platform/freezer.ts';
import { readStat } from '../../src/platform/proc.ts';
import { type FindHoldUp, LoopObserver } from './loop-observer.ts';
import type {
  Batch,
  BlockMessage,
  GapMessage,
  LoopThread,
  SamplerPlan,
  SecondMessage,
} from './messages.ts';
import type { FoundLoop, HoldUp, RuntimeAdapter } from './runtime-adapter.ts';
import { samplingPeriod } from './sampling-period.ts';
import { StackTable } from './stack-table.ts';
import { ProcThreadReadings } from './thread-readings.ts';

/** One process of the worker: samples its loops when told to, and gathers what they show. */

/** Blocks that have ended are handed over at most this often between two seconds. */
const BLOCKS_EVERY: Seconds = 0.1;
/** Blocks in one batch; a program with more has one problem, not a thousand. */
const BLOCKS_A_BATCH = 500;
/** Loop threads watched; the first found come first. */
const THREAD_LIMIT = 16;
/** A stop is looked for once a second: one that began within a turn may be found only after it. */
const STATE_EVERY: Seconds = 1;
const STOPPED = {
  signal: 'the process was stopped (SIGSTOP, or a debugger)',
  freezer: 'the process was frozen with its control group (docker pause)',
} as const;

interface WatchedThread {
  readonly observer: LoopObserver;
  readonly readings: ProcThreadReadings;
}

export class ProcessSampler {
  readonly plan: SamplerPlan;
  readonly #adapter: RuntimeAdapter;
  readonly #freezer: FreezerReader;
  #observers: readonly WatchedThread[] = [];
  readonly #stacks = new StackTable();
  #blocks: BlockMessage[] = [];
  #gaps: GapMessage[] = [];
  #samples = 0;
  #late = 0;
  #dropped = 0;
  #batchedAt: Seconds = 0;
  #sampledAt: Seconds = 0;
  /** When the last whole second ended. */
  #secondAt: Seconds = 0;
  #period: Seconds;
  /** When the process was last found stopped: a turn that this falls into was not the program's doing. */
  #stoppedAt: Seconds = Number.NEGATIVE_INFINITY;
  #stoppedBy: keyof typeof STOPPED = 'signal';
  /** When the run began, and when sampling did; null before. */
  #began: { readonly run: Seconds; readonly sampling: Seconds } | null = null;

  constructor(plan: SamplerPlan, adapter: RuntimeAdapter) {
    this.plan = plan;
    this.#adapter = adapter;
    this.#freezer = new FreezerReader(plan.pid);
    this.#period = samplingPeriod(plan.threshold);
  }

  get loops(): readonly LoopThread[] {
    return this.#observers.map(({ observer }) => observer.thread);
  }

  /** The pause between two samples while nothing lasts, from now on. */
  set period(period: Seconds) {
    this.#period = period;
  }

  /** Sampling begins: what was counted before is forgotten, and the time since `since` is a gap. */
  begin(at: Seconds, since: Seconds): void {
    this.#began = { run: since, sampling: at };
    this.#sampledAt = at;
    this.#batchedAt = at;
    this.#secondAt = at;
    this.#samples = 0;
    this.#late = 0;
    this.#dropped = 0;
    this.#blocks = [];
    this.#gaps = [];
    this.#stacks.begin();
    for (const { observer } of this.#observers) observer.drainSecond(at);
    if (this.#mayHide(at - since))
      this.#addLateGap(since, at, (length) => `sampling began ${length} after the run began`);
  }

  /** One sample of every loop. `delayedBy`, what held the worker up since the last round, explains a sample that came late. */
  sample(at: Seconds, delayedBy: string | null): void {
    if (this.#mayHide(at - this.#sampledAt)) this.#reportLate(at, delayedBy);
    this.#sampledAt = at;
    this.#samples++;
    this.#join(this.#adapter.round(at), at);
    for (const { observer } of this.#observers) {
      const block = observer.sample(at);
      if (block !== null) this.#keep(block);
    }
  }

  /** A turn was seen to last: sample fast until it ends. */
  get following(): boolean {
    for (const { observer } of this.#observers) if (observer.following) return true;
    return false;
  }

  /** Something runs: it may last. */
  get busy(): boolean {
    for (const { observer } of this.#observers) if (observer.busy) return true;
    return false;
  }

  /** The second that ended at `at`; null when the process is gone. */
  second(at: Seconds): Batch | null {
    const state = this.#processState();
    if (state === 'gone') return null;
    this.discover(at);
    const seconds = this.#drainSeconds(at);
    // Nothing turns in a stopped process: its silence is no evidence of anything.
    if (state === 'stopped') this.#reportStopped(this.#secondAt, at);
    this.#secondAt = at;
    return this.#takeBatch(at, state === 'stopped' ? [] : seconds);
  }

  /** What was found is what must not be lost when we are killed: it does not wait for the second to end. Null: nothing, or not yet. */
  takeBlocks(at: Seconds): Batch | null {
    if (this.#blocks.length === 0 || at - this.#batchedAt < BLOCKS_EVERY) return null;
    return this.#takeBatch(at, []);
  }

  /** The last batch; `gone`: the process has ended. */
  finish(at: Seconds, gone: boolean): Batch {
    const isStopped = !gone && this.#processState() === 'stopped';
    if (!gone && this.#mayHide(at - this.#sampledAt)) this.#reportLate(at, null);
    if (isStopped) this.#reportStopped(this.#secondAt, at);
    for (const { observer } of this.#observers) {
      const open = gone ? observer.endGone(at) : observer.endOpen();
      if (open !== null) this.#keep(open);
    }
    if (gone)
      this.#gaps.push({
        from: at,
        to: at,
        reason: 'target-gone',
        detail: `pid ${this.plan.pid} ended`,
      });
    const seconds = this.#drainSeconds(at);
    return this.#takeBatch(at, isStopped ? [] : seconds);
  }

  /** The last batch after a failure of ours: what was seen before it. Reads nothing. */
  fail(at: Seconds, error: unknown): Batch {
    const what = error instanceof Error ? error.message : String(error);
    this.#gaps.push({
      from: this.#sampledAt,
      to: at,
      reason: 'failed',
      detail: `the sampler failed, and looks at this process no longer: ${what}`,
    });
    return this.#takeBatch(at, []);
  }

  /** Stacks that did not reach their reader are handed over again; the rest of a lost batch is counted. */
  lose(batch: Batch): void {
    this.#dropped += batch.blocks.length + batch.seconds.length;
    this.#stacks.restore(batch.stacks);
  }

  close(): void {
    for (const { readings } of this.#observers) readings.close();
    this.#observers = [];
    this.#freezer.close();
    this.#adapter.close();
  }

  /** Looks for loops that were not there before. */
  discover(at: Seconds): void {
    this.#join(this.#adapter.discover(at), at);
  }

  #join(found: readonly FoundLoop[], at: Seconds): void {
    for (const { thread, watch, soughtFrom } of found) {
      if (this.#observers.length >= THREAD_LIMIT) return;
      let readings: ProcThreadReadings;
      try {
        readings = new ProcThreadReadings(this.plan.pid, thread.tid);
      } catch {
        continue; // The thread ended between being found and being opened.
      }
      const { stack, holdUp } = this.#adapter;
      const capture = stack === null ? null : () => this.#stackId(stack(thread.tid));
      const { threshold, raw } = this.plan;
      const observer = new LoopObserver({
        thread,
        watch,
        readings,
        capture,
        holdUp: holdUp === null ? null : () => this.#named(holdUp(thread.tid)),
        threshold,
        raw,
        at,
      });
      this.#observers = [...this.#observers, { observer, readings }];
      this.#noteUnseen(thread, { at, soughtFrom });
    }
  }

  /** A loop that was there when the run began may have stood still until it was found. */
  #noteUnseen(
    { name }: LoopThread,
    found: { readonly at: Seconds; readonly soughtFrom: Seconds },
  ): void {
    const began = this.#began;
    if (began === null || found.soughtFrom > began.sampling) return;
    if (this.#mayHide(found.at - began.run))
      this.#addLateGap(
        began.run,
        found.at,
        (length) => `the event loop of thread ${name} was found ${length} after the run began`,
      );
  }

  #keep(block: BlockMessage): void {
    const { startMin, endMax } = block.turn;
    if (startMin <= this.#stoppedAt && this.#stoppedAt <= endMax + STATE_EVERY) {
      this.#reportStopped(startMin, endMax);
      return;
    }
    if (this.#blocks.length < BLOCKS_A_BATCH) this.#blocks.push(block);
    else this.#dropped++;
  }

  /** Whether a block may have come and gone unseen, or nearly, in so long without a sample. */
  #mayHide(elapsed: Seconds): boolean {
    return elapsed > this.plan.threshold / 2 && elapsed > this.#period * 2;
  }

  #reportLate(at: Seconds, delayedBy: string | null): void {
    this.#late++;
    this.#addLateGap(this.#sampledAt, at, (length) =>
      delayedBy === null
        ? `the sampler itself was not scheduled for ${length}`
        : `no sample for ${length}: the sampler was ${delayedBy}`,
    );
  }

  #addLateGap(from: Seconds, to: Seconds, detail: (length: string) => string): void {
    this.#gaps.push({ from, to, reason: 'late', detail: detail(formatSeconds(to - from)) });
  }

  #stackId(frames: Parameters<StackTable['idOf']>[0] | null): string | null {
    return frames === null ? null : this.#stacks.idOf(frames);
  }

  #named(found: HoldUp | null): ReturnType<FindHoldUp> {
    if (found?.kind !== 'gil') return found;
    return { kind: 'gil', thread: found.thread, stack: this.#stackId(found.frames) };
  }

  #processState(): 'alive' | 'stopped' | 'gone' {
    const stat = readStat(this.plan.pid);
    if (stat === null || stat.startTicks !== this.plan.startTicks || stat.state === 'Z') {
      return 'gone';
    }
    const isStopped = stat.state === 'T' || stat.state === 't';
    if (!isStopped && !this.#freezer.isFrozen()) return 'alive';
    this.#stoppedBy = isStopped ? 'signal' : 'freezer';
    this.#stoppedAt = monotonicNow();
    return 'stopped';
  }

  /** A turn that was going on may have begun long before the run. */
  #reportStopped(from: Seconds, to: Seconds): void {
    this.#gaps.push({
      from: Math.max(from, this.#began?.run ?? from),
      to,
      reason: 'failed',
      detail: STOPPED[this.#stoppedBy],
    });
  }

  #takeBatch(at: Seconds, seconds: readonly SecondMessage[]): Batch {
    this.#batchedAt = at;
    const batch: Batch = {
      at,
      seconds,
      stacks: this.#stacks.takeFresh(),
      blocks: this.#blocks,
      gaps: this.#gaps,
      threads: this.loops,
      samples: this.#samples,
      late: this.#late,
      dropped: this.#dropped,
      period: this.#period,
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
}
