import { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { LoadResult, RequestRecord, StageResult } from '../../core/load-types.ts';
import { GENAI, GENAI_METRICS, type GenAiProfile } from '../../core/semconv-genai.ts';
import { LOAD_ATTR, LOAD_EVENT, LOAD_METRIC, LOAD_SNAPSHOT } from '../../core/semconv-load.ts';
import type { Attributes, Histogram, Metric, Seconds } from '../../core/types.ts';
import type { EngineBatch, EngineEvents } from '../contracts.ts';
import type { LoadPlan } from '../plan.ts';
import { ResultBuilder, type ResultMeta, type RunEnding } from '../results/builder.ts';
import type { Backlog } from './backlog.ts';
import { endpointAttributes, errorTypeOf, requestSpan, type SpanMaker } from './request-span.ts';
import { type ChosenRequest, SpanChoice, type SpanCounts } from './span-choice.ts';
import {
  type Between,
  type Emit,
  stageHistograms,
  stageSamples,
  stageSnapshot,
} from './stage-observations.ts';

/** What an observer is made of. */
export interface ObserverOptions {
  readonly plan: LoadPlan;
  readonly meta: ResultMeta;
  readonly profile: GenAiProfile;
  /** The engine behind the endpoint where it is known, e.g. `vllm`. */
  readonly engine: string | null;
  /** Trace id of the run. */
  readonly traceId: string;
  /** CLOCK_MONOTONIC to Unix time. */
  readonly wall: (mono: Seconds) => Seconds;
  readonly emit: Emit;
  /** Where spans wait until there is time for them. */
  readonly backlog: Backlog;
}

/** Between two ticks, of one stage: what only the records of requests tell. */
interface Second {
  readonly tokens: Record<'input' | 'output', ExponentialHistogram>;
  /** How long failed requests took, by `error.type`. */
  readonly failed: Map<string, ExponentialHistogram>;
}

/** Turns what the engine hands over into observations: spans as requests end, everything else once a second. */
export class LoadObserver {
  readonly #options: ObserverOptions;
  readonly #builder: ResultBuilder;
  readonly #spans: SpanMaker;
  readonly #choice: SpanChoice;
  readonly #attributes: readonly Attributes[];
  readonly #before = new Map<number, StageResult>();
  readonly #seconds = new Map<number, Second>();
  readonly #workers = new Map<number, EngineBatch>();
  readonly #touched = new Set<number>();
  #tickedAt: Seconds;

  constructor(options: ObserverOptions, startedAt: Seconds) {
    const { plan, meta, engine, wall, traceId } = options;
    this.#options = options;
    this.#builder = new ResultBuilder(meta);
    const endpoint = endpointAttributes(plan, engine);
    this.#spans = { plan, endpoint, wall };
    this.#choice = new SpanChoice(plan, traceId);
    this.#attributes = plan.stages.map((stage, index) => ({
      ...endpoint,
      [LOAD_ATTR.stageIndex]: index,
      [LOAD_ATTR.stageName]: stage.label,
    }));
    this.#tickedAt = startedAt;
    this.#emitRun(startedAt, { interrupted: false, complete: false });
  }

  /** Of how many requests there are spans. */
  get spans(): SpanCounts {
    return this.#choice.counts;
  }

  add(batch: EngineBatch): void {
    this.#builder.add(batch);
    this.#workers.set(batch.worker, batch);
    this.#touched.add(batch.stage);
    for (const { stage } of batch.stages) this.#touched.add(stage);
    for (const record of batch.requests) this.#request(record);
  }

  stage(event: Parameters<EngineEvents['onStage']>[0]): void {
    this.#builder.stage(event);
    this.#touched.add(event.stage);
    this.#options.emit({
      kind: 'event',
      at: this.#options.wall(event.at),
      name: LOAD_EVENT.stage,
      severity: 'info',
      body: event.what,
      attributes: { [LOAD_ATTR.stageIndex]: event.stage },
    });
  }

  /** Writes down what the last second brought; `at` is now, on the run's clock. */
  tick(at: Seconds): void {
    if (this.#touched.size === 0) return;
    this.#emitStages(at, this.#builder.stages());
  }

  /** The last words, and the result. */
  end(at: Seconds, ending: RunEnding): LoadResult {
    const result = this.#builder.result(ending);
    // A stage that has not changed since the last tick may still have ended in another way.
    for (const [index] of result.stages.entries()) this.#touched.add(index);
    this.#emitStages(at, result.stages);
    this.#emitRun(at, ending);
    return result;
  }

  #request(record: RequestRecord): void {
    this.#touched.add(record.stage);
    const chosen = this.#choice.consider(record);
    if (chosen !== null) this.#emitSpan(chosen);
    if (record.warmup) return;
    const second = this.#second(record.stage);
    const { error, inputTokens, outputTokens } = record;
    if (error === null) {
      if (inputTokens !== null) second.tokens.input.record(inputTokens);
      if (outputTokens !== null) second.tokens.output.record(outputTokens);
      return;
    }
    if (error.class === 'unfinished') return;
    const type = errorTypeOf(error);
    const took = second.failed.get(type) ?? new ExponentialHistogram();
    second.failed.set(type, took);
    took.record(record.endedAt - record.startedAt);
  }

  #emitStages(at: Seconds, stages: readonly StageResult[]): void {
    const { emit, profile } = this.#options;
    const between = { from: Math.min(this.#tickedAt, at), to: at };
    this.#tickedAt = at;
    for (const chosen of this.#choice.worst()) this.#emitSpan(chosen);
    for (const [index, stage] of stages.entries()) {
      if (!this.#touched.has(index)) continue;
      const attributes = this.#attributes[index] ?? {};
      const before = this.#before.get(index) ?? null;
      this.#before.set(index, stage);
      for (const one of stageHistograms(stage, before, between, { profile, attributes })) emit(one);
      for (const one of this.#requestHistograms(index, between)) emit(one);
      for (const one of stageSamples(stage, at, attributes)) emit(one);
      emit(stageSnapshot(index, stage, at));
    }
    this.#touched.clear();
    this.#emitWorkers(at);
  }

  #emitWorkers(at: Seconds): void {
    for (const [worker, batch] of this.#workers) {
      const attributes = { [LOAD_ATTR.workerIndex]: worker };
      const sample = (metric: Metric, value: number) =>
        this.#options.emit({ kind: 'sample', at, metric: metric.name, value, attributes });
      sample(LOAD_METRIC.inFlight, batch.inFlight);
      sample(LOAD_METRIC.coreShare, batch.coreShare);
    }
  }

  #emitSpan({ record, spanId, sampled }: ChosenRequest): void {
    const { backlog, emit } = this.#options;
    backlog.add(() => emit(requestSpan(record, { spanId, sampled }, this.#spans)));
  }

  /** What the run as a whole is: without it, nobody knows what the stages were stages of. */
  #emitRun(at: Seconds, ending: RunEnding): void {
    const { stages: _, total: __, ...run } = this.#builder.result(ending);
    this.#options.emit({ kind: 'snapshot', at, of: LOAD_SNAPSHOT.run, body: run });
  }

  #second(stage: number): Second {
    const known = this.#seconds.get(stage);
    if (known !== undefined) return known;
    const fresh = {
      tokens: { input: new ExponentialHistogram(), output: new ExponentialHistogram() },
      failed: new Map<string, ExponentialHistogram>(),
    };
    this.#seconds.set(stage, fresh);
    return fresh;
  }

  #requestHistograms(stage: number, between: Between): readonly Histogram[] {
    const second = this.#seconds.get(stage);
    if (second === undefined) return [];
    const { tokens, duration } = GENAI_METRICS[this.#options.profile];
    const base = this.#attributes[stage] ?? {};
    const points = (['input', 'output'] as const).map((type) => ({
      metric: tokens[type].name,
      histogram: second.tokens[type],
      // Two metrics say it by their names.
      attributes: tokens.input === tokens.output ? { ...base, [GENAI.tokenType]: type } : base,
    }));
    for (const [error, histogram] of second.failed) {
      const attributes = { ...base, [GENAI.errorType]: error };
      points.push({ metric: duration.name, histogram, attributes });
    }
    return points
      .filter(({ histogram }) => histogram.count > 0)
      .map(({ metric, histogram, attributes }) => ({
        kind: 'histogram',
        ...between,
        metric,
        buckets: histogram.drain(),
        attributes,
      }));
  }
}
