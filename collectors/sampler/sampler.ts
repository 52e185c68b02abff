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
import { BatchIntake, type SamplerStatistics } from './batch-intake.ts';
import type { BatchContext } from './batch-observations.ts';
import type { LoopThread, Opened, SamplerPlan } from './messages.ts';
import { ObservationQueue } from './observation-queue.ts';
import { type CrewMember, SamplingCrew } from './sampling-crew.ts';
import type { StackSource } from './stack-source.ts';

/** The event-loop collector of one process: has a crew's worker sample it, and turns what that reports into observations. */

export interface SamplerOptions {
  readonly runtime: SamplerPlan['runtime'];
  readonly threshold: Seconds;
  /** Yield each single reading of a loop too. */
  readonly raw: boolean;
  readonly stackSource: StackSource | null;
  /** Those that are sampled by the same worker; without it the process has a worker of its own. */
  readonly crew?: SamplingCrew;
}

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
  readonly #crew: SamplingCrew;
  #member: CrewMember | null = null;
  #readsTurns = false;
  #isObserving = false;
  readonly #intake: BatchIntake;

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#crew = options.crew ?? new SamplingCrew();
    const { stackSource: source, threshold } = options;
    this.#intake = new BatchIntake({ source, threshold });
  }

  get statistics(): SamplerStatistics {
    return this.#intake.statistics;
  }

  /** Has the worker open the target for reading and look for its loops; sampling begins with `observe`. */
  async probe(target: ProcessTarget): Promise<Availability> {
    const { runtime, threshold, raw } = this.#options;
    const { pid, startTicks } = target;
    const member = this.#crew.join({ pid, startTicks, runtime, threshold, raw });
    this.#member = member;
    const opened = await member.opened;
    switch (opened.kind) {
      case 'unavailable':
        this.#member = null;
        return { available: false, reason: opened.reason, remedy: opened.remedy };
      case 'ready':
        this.#readsTurns = opened.loops.every(({ kind }) => kind !== 'unknown');
        return readyAvailability(opened);
      default:
        return opened satisfies never;
    }
  }

  /** Whether it can be observed, loops or not: one may still begin. */
  get isOpen(): boolean {
    return this.#member !== null;
  }

  /** Whether turns of the loop, and Python's stacks, can be read; if not, only how busy the loop is. */
  get readsTurns(): boolean {
    return this.#readsTurns;
  }

  async *observe(target: ProcessTarget, context: ObserveContext): AsyncIterable<Observation> {
    const member = this.#member;
    if (member === null) return;
    this.#isObserving = true;
    const queue = new ObservationQueue();
    const to = { context: this.#batchContext(target.pid, context), queue };
    const fail = (detail: string, collector?: string): void =>
      queue.push(failedGap(target.pid, context, { detail, collector }));
    const ended = member.begin(
      (batch) => this.#intake.take(batch, to),
      // By the same difference between the clocks as everything that comes back.
      (context.since ?? context.clock.now()) - to.context.toUnix(0),
    );
    void ended.then(async (failure) => {
      if (failure !== null) fail(failure);
      const noStacks = this.#options.stackSource?.failure ?? null;
      if (noStacks !== null) fail(`no more stacks: ${noStacks}`, 'stacks');
      await this.#intake.finish().finally(() => queue.end());
    });
    const stop = (): void => member.stop();
    if (context.signal.aborted) stop();
    else context.signal.addEventListener('abort', stop, { once: true });
    try {
      yield* queue;
    } finally {
      context.signal.removeEventListener('abort', stop);
      stop();
    }
  }

  /** Ends what `probe` opened when there will be no `observe`; after it, does nothing. Else the waiting worker keeps trace alive. */
  async close(): Promise<void> {
    const member = this.#member;
    this.#member = null;
    if (this.#isObserving || member === null) return;
    member.drop();
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

function readyAvailability(ready: Extract<Opened, { readonly kind: 'ready' }>): Availability {
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

function failedGap(
  pid: number,
  { clock }: ObserveContext,
  { detail, collector = 'event-loop' }: { detail: string; collector?: string | undefined },
): Gap {
  const at = clock.now();
  return { kind: 'gap', from: at, to: at, collector, reason: 'failed', detail, pid };
}
