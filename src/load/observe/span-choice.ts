import type { RequestRecord } from '../../core/load-types.ts';
import type { LoadPlan } from '../plan.ts';
import { isSampled, requestSpanId } from '../trace-context.ts';

/** Which requests become spans. A run of millions keeps some thousands: those whose flag said so, and the worst of the others. */

/** Of the requests that ended in one second and were not sampled, so many of the slowest by each measure are recorded all the same. */
const SLOWEST_KEPT = 5;
/** And so many of those that failed. */
const FAILED_KEPT = 20;

/** A request that becomes a span. */
export interface ChosenRequest {
  readonly record: RequestRecord;
  readonly spanId: string;
  /** What its `traceparent` said: only these are exported. */
  readonly sampled: boolean;
}

/** Requests that became spans, of how many. */
export interface SpanCounts {
  /** All, warm-up too. */
  readonly requests: number;
  readonly sampled: number;
  /** Not sampled, and recorded because they failed or were slow. */
  readonly kept: number;
}

export class SpanChoice {
  readonly #plan: LoadPlan;
  readonly #traceId: string;
  readonly #sample: NonNullable<LoadPlan['trace']>['sample'];
  readonly #slowest = {
    first: new Slowest((record) => (record.firstOutputAt ?? record.endedAt) - record.scheduledAt),
    end: new Slowest((record) => record.endedAt - record.scheduledAt),
  };
  #failed: RequestRecord[] = [];
  #counts = { requests: 0, sampled: 0, kept: 0 };

  constructor(plan: LoadPlan, traceId: string) {
    this.#plan = plan;
    this.#traceId = traceId;
    this.#sample = plan.trace?.sample ?? 'thinning';
  }

  get counts(): SpanCounts {
    return { ...this.#counts };
  }

  /** The request, when it is sampled; else it is remembered until {@link worst} if it is bad enough. */
  consider(record: RequestRecord): ChosenRequest | null {
    this.#counts.requests++;
    if (isSampled(record.index, this.#sample)) {
      this.#counts.sampled++;
      return this.#chosen(record, true);
    }
    if (record.warmup) return null;
    if (record.error === null) {
      this.#slowest.first.consider(record);
      this.#slowest.end.consider(record);
    } else if (this.#failed.length < FAILED_KEPT) this.#failed.push(record);
    return null;
  }

  /** The worst that were not sampled since the last call, each once. */
  worst(): readonly ChosenRequest[] {
    const { first, end } = this.#slowest;
    const all = new Set([...first.take(), ...end.take(), ...this.#failed]);
    this.#failed = [];
    this.#counts.kept += all.size;
    return [...all].map((record) => this.#chosen(record, false));
  }

  #chosen(record: RequestRecord, sampled: boolean): ChosenRequest {
    const { part } = this.#plan;
    const spanId =
      record.spanId === '' ? requestSpanId(this.#traceId, part.index, record.index) : record.spanId;
    return { record, spanId, sampled };
  }
}

/** The few that took longest. */
class Slowest {
  readonly #measure: (record: RequestRecord) => number;
  #kept: { readonly record: RequestRecord; readonly took: number }[] = [];

  constructor(measure: (record: RequestRecord) => number) {
    this.#measure = measure;
  }

  consider(record: RequestRecord): void {
    const took = this.#measure(record);
    const least = this.#kept[SLOWEST_KEPT - 1];
    if (least !== undefined && took <= least.took) return;
    this.#kept.push({ record, took });
    this.#kept.sort((a, b) => b.took - a.took);
    this.#kept.length = Math.min(this.#kept.length, SLOWEST_KEPT);
  }

  take(): readonly RequestRecord[] {
    const records = this.#kept.map(({ record }) => record);
    this.#kept = [];
    return records;
  }
}
