import { Worker } from 'node:worker_threads';
import { METRIC } from '../../src/core/semconv.ts';
import type {
  Availability,
  Collector,
  Frame,
  Gap,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Seconds,
} from '../../src/core/types.ts';
import { batchObservations, type BatchContext, blockSpan } from './batch-observations.ts';
import {
  type Batch,
  type BlockMessage,
  CELL,
  type LoopThread,
  type SamplerPlan,
  type WorkerMessage,
} from './messages.ts';
import type { Turn } from './turn-watch.ts';
import { ObservationQueue } from './observation-queue.ts';
import type { StackSource } from './stack-source.ts';
import { StackTable } from './stack-table.ts';

/** The event-loop collector: starts the sampling worker and turns what it reports into observations. */

export interface SamplerOptions {
  readonly runtime: SamplerPlan['runtime'];
  readonly threshold: Seconds;
  /** Yield each single reading of a loop too. */
  readonly raw: boolean;
  readonly stackSource: StackSource | null;
}

/** What the run's summary says of the sampler itself. */
export interface SamplerStatistics {
  samples: number;
  late: number;
  dropped: number;
  /** Threads whose loops were watched. */
  loops: number;
  rejected: Readonly<Record<string, number>>;
}

/** How long the worker may take to hand over its last batch. */
const STOP_LIMIT: Seconds = 2;

const METRICS: readonly Metric[] = [
  METRIC.loopDelay,
  METRIC.loopAge,
  METRIC.loopUtilization,
  METRIC.nodeLoopUtilization,
  METRIC.loopIterations,
  METRIC.loopEvents,
];

export class Sampler implements Collector<ProcessTarget> {
  readonly name = 'event-loop';
  readonly metrics: readonly Metric[] = METRICS;
  readonly statistics: SamplerStatistics = {
    samples: 0,
    late: 0,
    dropped: 0,
    loops: 0,
    rejected: {},
  };
  readonly #options: SamplerOptions;
  readonly #cells = new Int32Array(
    new SharedArrayBuffer(CELL.count * Int32Array.BYTES_PER_ELEMENT),
  );
  #worker: Worker | null = null;
  #readsTurns = false;
  #isObserving = false;
  readonly #pending: Promise<void>[] = [];
  readonly #stacks = new Map<string, readonly Frame[]>();
  readonly #foreign = new StackTable();

  constructor(options: SamplerOptions) {
    this.#options = options;
  }

  /** Starts the worker, which opens the target for reading and looks for its loops; sampling begins with `observe`. */
  async probe(target: ProcessTarget): Promise<Availability> {
    const plan: SamplerPlan = {
      pid: target.pid,
      startTicks: target.startTicks,
      runtime: this.#options.runtime,
      threshold: this.#options.threshold,
      raw: this.#options.raw,
      control: this.#cells.buffer,
    };
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: plan });
    this.#worker = worker;
    const first = await new Promise<WorkerMessage>((resolve) => {
      worker.once('message', resolve);
      worker.once('error', (error) =>
        resolve({
          kind: 'unavailable',
          reason: `the sampler failed: ${error.message}`,
          remedy: null,
        }),
      );
    });
    switch (first.kind) {
      case 'unavailable':
        this.#worker = null;
        return { available: false, reason: first.reason, remedy: first.remedy };
      case 'ready':
        this.#readsTurns = first.loops.every(({ kind }) => kind !== 'unknown');
        return readyAvailability(first);
      case 'batch':
        return { available: true };
      default:
        return first satisfies never;
    }
  }

  /** Whether there is a worker to observe with, loops or not: one may still begin. */
  get isOpen(): boolean {
    return this.#worker !== null;
  }

  /** Whether turns of the loop, and Python's stacks, can be read; if not, only how busy the loop is. */
  get readsTurns(): boolean {
    return this.#readsTurns;
  }

  async *observe(target: ProcessTarget, context: ObserveContext): AsyncIterable<Observation> {
    const worker = this.#worker;
    if (worker === null) return;
    this.#isObserving = true;
    const queue = new ObservationQueue();
    const cells = this.#cells;
    const batchContext = this.#batchContext(target.pid, context);
    worker.on('message', (message: WorkerMessage) => {
      if (message.kind !== 'batch') return;
      Atomics.add(cells, CELL.taken, 1);
      this.#take(message.batch, batchContext, queue);
    });
    worker.on('error', (error) => queue.push(failedGap(context, error.message)));
    worker.on('exit', () => {
      const failure = this.#options.stackSource?.failure ?? null;
      if (failure !== null) queue.push(failedGap(context, `no more stacks: ${failure}`, 'stacks'));
      void this.#finish().finally(() => queue.end());
    });
    const stop = () => {
      Atomics.store(cells, CELL.stop, 1);
      Atomics.notify(cells, CELL.stop);
      setTimeout(() => void worker.terminate(), STOP_LIMIT * 1e3).unref();
    };
    if (context.signal.aborted) stop();
    else context.signal.addEventListener('abort', stop, { once: true });
    Atomics.store(cells, CELL.go, 1);
    Atomics.notify(cells, CELL.go);
    try {
      yield* queue;
    } finally {
      stop();
    }
  }

  /** Ends what `probe` opened when there will be no `observe`; after it, does nothing. Else the waiting worker keeps trace alive. */
  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    if (this.#isObserving || worker === null) return;
    await worker.terminate();
    await this.#options.stackSource?.close();
  }

  /** How long the target was held by us, at most; only a stack source may do that. */
  get targetPaused(): Seconds {
    const pauses = this.#options.stackSource?.pauses ?? [];
    return pauses.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  /** Leaves the other source, which answers what is still asked, and waits for the spans that need its answers. */
  async #finish(): Promise<void> {
    await this.#options.stackSource?.close();
    await Promise.allSettled(this.#pending);
  }

  #batchContext(pid: number, { clock }: ObserveContext): BatchContext {
    const offset = clock.now() - clock.mono();
    return {
      pid,
      toUnix: (mono) => mono + offset,
      runtime: this.#options.runtime,
      stacks: this.#stacks,
    };
  }

  #take(batch: Batch, context: BatchContext, queue: ObservationQueue): void {
    for (const [id, frames] of batch.stacks) this.#stacks.set(id, frames);
    const { statistics } = this;
    statistics.samples = batch.samples;
    statistics.late = batch.late;
    statistics.dropped = batch.dropped;
    statistics.rejected = batch.rejected;
    statistics.loops = Math.max(statistics.loops, batch.threads.length);
    for (const observation of batchObservations(batch, context)) queue.push(observation);
    for (const block of batch.blocks) this.#emit(block, context, queue);
  }

  #emit(block: BlockMessage, context: BatchContext, queue: ObservationQueue): void {
    const source = this.#options.stackSource;
    // The source profiles the main thread: it knows nothing of a worker's block.
    if (source === null || block.stacks.size > 0 || block.thread.tid !== context.pid) {
      queue.push(blockSpan(block, context));
      return;
    }
    const { turn } = block;
    const pause = source.pauses.find(({ from, to }) => from < turn.endMax && to > turn.startMin);
    if (pause !== undefined) {
      queue.push(ownPause(turn, context));
      return;
    }
    // The source answers when it next looks, which may be ten seconds from now: the span waits, nothing else does.
    this.#pending.push(
      this.#foreignStacks(source, block, { context, queue }).then((stacks) => {
        queue.push(blockSpan(block, context, stacks));
      }),
    );
  }

  async #foreignStacks(
    source: StackSource,
    { turn }: BlockMessage,
    { context, queue }: { context: BatchContext; queue: ObservationQueue },
  ): Promise<ReadonlyMap<string, Seconds>> {
    const found = await source.stacksDuring(turn.startMax, turn.endMin);
    const stacks = new Map<string, Seconds>();
    for (const { frames, weight } of found) {
      const id = this.#foreign.idOf(frames);
      if (id !== null) stacks.set(id, (stacks.get(id) ?? 0) + weight);
    }
    for (const [id, frames] of this.#foreign.takeFresh()) {
      this.#stacks.set(id, frames);
      queue.push({ kind: 'stack', at: context.toUnix(turn.endMax), id, frames });
    }
    return stacks;
  }
}

function readyAvailability(
  ready: Extract<WorkerMessage, { readonly kind: 'ready' }>,
): Availability {
  const { loops, missing, remedy } = ready;
  if (missing === null) return { available: true, detail: loops.map(describeLoop).join(', ') };
  const reason =
    loops.length === 0
      ? missing
      : `${missing}; how busy it is can be seen, how long an iteration lasts cannot`;
  return { available: false, reason, remedy };
}

function describeLoop(loop: LoopThread): string {
  return `${loop.kind} in thread ${loop.name}`;
}

/** Time in which the profiler's start or stop may have held the loop: not the target's doing, and not to be blamed on it. */
function ownPause(turn: Turn, context: BatchContext): Gap {
  return {
    kind: 'gap',
    from: context.toUnix(turn.startMin),
    to: context.toUnix(turn.endMax),
    collector: 'event-loop',
    reason: 'late',
    detail: "starting or stopping V8's profiler held the loop",
  };
}

function failedGap(context: ObserveContext, detail: string, collector = 'event-loop'): Gap {
  const at = context.clock.now();
  return { kind: 'gap', from: at, to: at, collector, reason: 'failed', detail };
}
