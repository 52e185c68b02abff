import { V8_COLLECTOR } from '../../src/core/place.ts';
import type { Frame, Gap, Ratio, Seconds } from '../../src/core/types.ts';
import {
  batchObservations,
  type BatchContext,
  blockSpan,
  periodNote,
} from './batch-observations.ts';
import type { Batch, BlockMessage } from './messages.ts';
import type { ObservationQueue } from './observation-queue.ts';
import { samplingPeriod } from './sampling-period.ts';
import type { StackSource } from './stack-source.ts';
import { StackTable } from './stack-table.ts';
import type { Turn } from './turn-watch.ts';

/** A block of which V8 collected for this share, while a look of ours made it collect, would be none without. */
const COLLECTING_SHARE: Ratio = 0.5;

/** What the run's summary says of the sampler itself. */
export interface SamplerStatistics {
  samples: number;
  late: number;
  dropped: number;
  /** The longest pause that was planned between two samples of an idle loop. */
  period: Seconds;
  /** Threads whose loops were watched. */
  loops: number;
  rejected: Readonly<Record<string, number>>;
}

/** What a batch needs to become observations: whose it is, and where they go. */
interface Destination {
  readonly context: BatchContext;
  readonly queue: ObservationQueue;
}

/** Turns what the worker reports into observations; blocks without a stack of their own wait for the other source's. */
export class BatchIntake {
  readonly statistics: SamplerStatistics = {
    samples: 0,
    late: 0,
    dropped: 0,
    period: 0,
    loops: 0,
    rejected: {},
  };
  /** Every stack told so far, by the id that blocks name it with. */
  readonly stacks: Map<string, readonly Frame[]> = new Map();
  readonly #source: StackSource | null;
  readonly #threshold: Seconds;
  readonly #pending: Promise<void>[] = [];
  readonly #foreign = new StackTable();

  constructor({ source, threshold }: { source: StackSource | null; threshold: Seconds }) {
    this.#source = source;
    this.#threshold = threshold;
    this.statistics.period = samplingPeriod(threshold);
  }

  take(batch: Batch, to: Destination): void {
    for (const [id, frames] of batch.stacks) this.stacks.set(id, frames);
    const { statistics } = this;
    if (batch.period > statistics.period)
      to.queue.push(periodNote(batch, this.#threshold, to.context));
    statistics.samples = batch.samples;
    statistics.late = batch.late;
    statistics.dropped = batch.dropped;
    statistics.period = Math.max(statistics.period, batch.period);
    statistics.rejected = batch.rejected;
    statistics.loops = Math.max(statistics.loops, batch.threads.length);
    for (const observation of batchObservations(batch, to.context)) to.queue.push(observation);
    for (const block of batch.blocks) this.#emit(block, to);
  }

  /** Leaves the other source, which answers what is still asked, and waits for the spans that need its answers. */
  async finish(): Promise<void> {
    await this.#source?.close();
    await Promise.allSettled(this.#pending);
  }

  #emit(block: BlockMessage, { context, queue }: Destination): void {
    const source = this.#source;
    // The source profiles the main thread: it knows nothing of a worker's block.
    if (source === null || block.stacks.size > 0 || block.thread.tid !== context.pid) {
      queue.push(blockSpan(block, context));
      return;
    }
    const { turn } = block;
    const during = ({ from, to }: StackSource['pauses'][number]): boolean =>
      from < turn.endMax && to > turn.startMin;
    if (source.pauses.some((pause) => pause.what !== 'heap' && during(pause))) {
      queue.push(ownPause(turn, context));
      return;
    }
    // The source answers when it next looks, which may be ten seconds from now: the span waits, nothing else does.
    this.#pending.push(
      this.#foreignStacks(source, block, { context, queue }).then((stacks) => {
        // Only now is it known how long we held it; and whether it was us, or we waited for it as everybody did.
        const isOurs = source.pauses.some((pause) => pause.what === 'heap' && during(pause));
        queue.push(
          isOurs && this.#isCollecting(stacks)
            ? ownPause(turn, context)
            : blockSpan(block, context, stacks),
        );
      }),
    );
  }

  /** Whether V8 collected garbage for most of it. */
  #isCollecting(stacks: ReadonlyMap<string, Seconds>): boolean {
    let all = 0;
    let collecting = 0;
    for (const [id, weight] of stacks) {
      all += weight;
      if (this.stacks.get(id)?.[0]?.function === V8_COLLECTOR) collecting += weight;
    }
    return all > 0 && collecting >= all * COLLECTING_SHARE;
  }

  async #foreignStacks(
    source: StackSource,
    { turn }: BlockMessage,
    { context, queue }: Destination,
  ): Promise<ReadonlyMap<string, Seconds>> {
    const found = await source.stacksDuring(turn.startMax, turn.endMin);
    const stacks = new Map<string, Seconds>();
    for (const { frames, weight } of found) {
      const id = this.#foreign.idOf(frames);
      if (id !== null) stacks.set(id, (stacks.get(id) ?? 0) + weight);
    }
    for (const [id, frames] of this.#foreign.takeFresh()) {
      this.stacks.set(id, frames);
      queue.push({ kind: 'stack', at: context.toUnix(turn.endMax), id, frames });
    }
    return stacks;
  }
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
    pid: context.pid,
  };
}
