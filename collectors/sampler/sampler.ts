import type { Worker } from 'node:worker_threads';
import { METRIC } from '../../src/core/semconv.ts';
import type {
  Availability,
  Collector,
  Gap,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Seconds,
} from '../../src/core/types.ts';
import { startThread } from '../../src/platform/standalone.ts';
import { BatchIntake, type SamplerStatistics } from './batch-intake.ts';
import type { BatchContext } from './batch-observations.ts';
import { CELL, type LoopThread, type SamplerPlan, type WorkerMessage } from './messages.ts';
import { ObservationQueue } from './observation-queue.ts';
import type { StackSource } from './stack-source.ts';

/** The event-loop collector: starts the sampling worker and turns what it reports into observations. */

export interface SamplerOptions {
  readonly runtime: SamplerPlan['runtime'];
  readonly threshold: Seconds;
  /** Yield each single reading of a loop too. */
  readonly raw: boolean;
  readonly stackSource: StackSource | null;
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
  readonly #options: SamplerOptions;
  readonly #cells = new Int32Array(
    new SharedArrayBuffer(CELL.count * Int32Array.BYTES_PER_ELEMENT),
  );
  #worker: Worker | null = null;
  #readsTurns = false;
  #isObserving = false;
  readonly #intake: BatchIntake;

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#intake = new BatchIntake(options.stackSource);
  }

  get statistics(): SamplerStatistics {
    return this.#intake.statistics;
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
    const worker = startThread(new URL('./worker.js', import.meta.url), { workerData: plan });
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
      this.#intake.take(message.batch, { context: batchContext, queue });
    });
    worker.on('error', (error) => queue.push(failedGap(context, error.message)));
    worker.on('exit', () => {
      const failure = this.#options.stackSource?.failure ?? null;
      if (failure !== null) queue.push(failedGap(context, `no more stacks: ${failure}`, 'stacks'));
      void this.#intake.finish().finally(() => queue.end());
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
    return this.#options.stackSource?.held ?? 0;
  }

  #batchContext(pid: number, { clock }: ObserveContext): BatchContext {
    const offset = clock.now() - clock.mono();
    return {
      pid,
      toUnix: (mono) => mono + offset,
      runtime: this.#options.runtime,
      stacks: this.#intake.stacks,
    };
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

function failedGap(context: ObserveContext, detail: string, collector = 'event-loop'): Gap {
  const at = context.clock.now();
  return { kind: 'gap', from: at, to: at, collector, reason: 'failed', detail };
}
