import type { ClockBounds, LoadPart, LoadResult, Slo, StageResult } from '../../core/load-types.ts';
import type { EngineBatch, EngineEvents } from '../contracts.ts';
import type { LoadPlan, StagePlan } from '../plan.ts';
import { StageTally, type StageMeta } from './stage-tally.ts';
import { totalOf } from './total.ts';

/** What a result says beyond what was counted. Plain data without credentials: a recording keeps it, so that a killed run can be told. */
export interface ResultMeta {
  readonly runId: string;
  readonly parts: number;
  readonly part: Omit<LoadPart, 'serverOffset' | 'complete'>;
  readonly url: string;
  readonly api: LoadResult['api'];
  readonly model: string;
  readonly streaming: boolean;
  readonly slos: readonly Slo[];
  readonly workers: number;
  readonly seed: number;
  readonly stages: readonly StageMeta[];
}

/** The meta of a plan that this machine runs. */
export function resultMeta(
  plan: LoadPlan,
  machine: Pick<LoadPart, 'host' | 'cores' | 'wall' | 'mono'>,
): ResultMeta {
  return {
    runId: plan.runId,
    parts: plan.part.of,
    part: { index: plan.part.index, ...machine },
    url: plan.endpoint.url,
    api: plan.endpoint.api,
    model: plan.body.model,
    streaming: plan.body.stream,
    slos: plan.slos,
    workers: plan.workers,
    seed: plan.seed,
    stages: plan.stages.map((stage) => ({
      label: stage.label,
      asked: askedOf(stage),
      hasSchedule: stage.arrival.kind !== 'closed',
    })),
  };
}

function askedOf({ arrival }: StagePlan): StageResult['asked'] {
  switch (arrival.kind) {
    case 'closed':
      return { kind: 'concurrency', value: arrival.concurrency };
    case 'open':
      // A ramp, linear in time, asks for its mean.
      return { kind: 'rate', value: (arrival.rate + arrival.rateTo) / 2 };
    case 'replay':
      return null;
  }
}

/** How a run ended, of which the counting knows nothing. */
export interface RunEnding {
  readonly interrupted: boolean;
  /** False: it was killed, and what there is, is whole up to its last second. */
  readonly complete: boolean;
}

/**
 * Adds up what the engine's threads hand over. Only counts and histograms are kept, so memory does not grow with the run. The same batches
 * and events in the same order give the same result, live or read back from a recording.
 */
export class ResultBuilder {
  readonly #meta: ResultMeta;
  readonly #stages: readonly StageTally[];
  readonly #offsets = new Map<number, ClockBounds>();

  constructor(meta: ResultMeta) {
    this.#meta = meta;
    this.#stages = meta.stages.map((stage) => new StageTally(stage, meta.slos));
  }

  add(batch: EngineBatch): void {
    for (const part of batch.stages) this.#stages[part.stage]?.measure(batch, part);
    this.#stages[batch.stage]?.observeClient(batch);
    for (const record of batch.requests) this.#stages[record.stage]?.add(record);
    if (batch.serverOffset !== null) this.#offsets.set(batch.worker, batch.serverOffset);
  }

  stage(event: Parameters<EngineEvents['onStage']>[0]): void {
    const stage = this.#stages[event.stage];
    if (event.what === 'begun') stage?.begin(event.at);
    else if (event.what === 'sending-ended') stage?.endSending(event.at);
  }

  /** Each stage so far; those that have not begun are not among them. */
  stages(): readonly StageResult[] {
    return this.#stages.filter((stage) => stage.hasBegun).map((stage) => stage.result());
  }

  /** The result so far. */
  result(ending: RunEnding): LoadResult {
    const { part, parts, stages: _, ...meta } = this.#meta;
    const stages = this.stages();
    return {
      ...meta,
      parts: {
        expected: parts,
        present: [{ ...part, serverOffset: this.#serverOffset(), complete: ending.complete }],
      },
      stages,
      total: totalOf(stages, meta.slos),
      interrupted: ending.interrupted,
    };
  }

  /** What all threads' bounds have in common; where that is nothing, the clock was stepped: as wide as they all are. */
  #serverOffset(): ClockBounds | null {
    const all = [...this.#offsets.values()];
    if (all.length === 0) return null;
    const samples = all.reduce((sum, one) => sum + one.samples, 0);
    const low = Math.max(...all.map((one) => one.low));
    const high = Math.min(...all.map((one) => one.high));
    return low <= high
      ? { low, high, samples }
      : {
          low: Math.min(...all.map((one) => one.low)),
          high: Math.max(...all.map((one) => one.high)),
          samples,
        };
  }
}
