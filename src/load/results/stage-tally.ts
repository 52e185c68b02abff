import { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import {
  byLatency,
  LATENCY_KEYS,
  type ErrorExample,
  type LoadErrorClass,
  type RequestRecord,
  type Slo,
  type StageResult,
} from '../../core/load-types.ts';
import type { Seconds } from '../../core/types.ts';
import type { EngineBatch } from '../contracts.ts';
import { CourseTally } from './course.ts';
import { meetsObjectives } from '../../core/load-request.ts';
import { joinExamples } from './total.ts';
import { count, emptyTokens, emptyWindow, type TokenCounts, type WindowCounts } from './window.ts';

/** What a stage is, before anything was sent. */
export interface StageMeta {
  readonly label: string;
  readonly asked: StageResult['asked'];
  /** Open loop or replay: requests are due at times that do not depend on the server. */
  readonly hasSchedule: boolean;
}

/** One stage being counted. Requests leave nothing behind but numbers: memory does not grow with them. */
export class StageTally {
  readonly #meta: StageMeta;
  readonly #slos: readonly Slo[];
  readonly #latency = byLatency(() => new ExponentialHistogram());
  readonly #lateness = new ExponentialHistogram();
  readonly #loopDelay = new ExponentialHistogram();
  readonly #readLag = new ExponentialHistogram();
  readonly #course = new CourseTally();
  readonly #requests = {
    ok: 0,
    failed: 0,
    unfinished: 0,
    warmup: 0,
    queued: 0,
    resent: 0,
    met: 0,
  };
  readonly #errors = new Map<LoadErrorClass, number>();
  readonly #statuses = new Map<number, number>();
  readonly #examples = new Map<LoadErrorClass, ErrorExample>();
  readonly #tokens: TokenCounts = emptyTokens();
  readonly #bytes = { sent: 0, received: 0 };
  /** What ended while requests were sent, and what ended at any time, of measured requests. */
  readonly #inWindow: WindowCounts = emptyWindow();
  readonly #inAll: WindowCounts = emptyWindow();
  readonly #workers = new Map<number, WorkerTally>();
  #inFlightMax = 0;
  #begun: Seconds | null = null;
  #sendingEnded: Seconds | null = null;
  #lastEnd = Number.NEGATIVE_INFINITY;
  #firstSeen = Number.POSITIVE_INFINITY;
  #lastSeen = Number.NEGATIVE_INFINITY;

  constructor(meta: StageMeta, slos: readonly Slo[]) {
    this.#meta = meta;
    this.#slos = slos;
  }

  begin(at: Seconds): void {
    this.#begun = at;
  }

  endSending(at: Seconds): void {
    this.#sendingEnded = at;
  }

  /** Whether there is anything to tell: a run that was stopped leaves stages that never began. */
  get hasBegun(): boolean {
    return this.#begun !== null || this.#inAll.ok + this.#inAll.failed > 0;
  }

  /** One measurement of this stage out of a batch. */
  measure(batch: EngineBatch, part: EngineBatch['stages'][number]): void {
    for (const key of LATENCY_KEYS) {
      const histogram = part.latency[key];
      if (histogram !== undefined) this.#latency[key].add(histogram);
    }
    this.#lateness.add(part.lateness);
    this.#requests.queued += part.queued;
    const worker = this.#worker(batch.worker);
    worker.max = part.inFlightMax;
    const now = [...this.#workers.values()].reduce((sum, one) => sum + one.max, 0);
    this.#inFlightMax = Math.max(this.#inFlightMax, now);
    // Only of the time of sending: while they drain, there are ever fewer.
    if (!this.#isSending(batch)) return;
    worker.inFlight += part.inFlightSeconds;
    worker.inFlightSeconds += batch.to - Math.max(batch.from, this.#begun ?? batch.from);
  }

  /** How the client did during a batch in which this stage was under way. */
  observeClient(batch: EngineBatch): void {
    if (!this.#isSending(batch)) return;
    this.#loopDelay.add(batch.loopDelay);
    this.#readLag.add(batch.readLag);
    this.#firstSeen = Math.min(this.#firstSeen, batch.from);
    this.#lastSeen = Math.max(this.#lastSeen, batch.to);
    const worker = this.#worker(batch.worker);
    const seconds = Math.max(0, batch.to - batch.from);
    worker.core += batch.coreShare * seconds;
    worker.coreSeconds += seconds;
  }

  add(record: RequestRecord): void {
    if (record.warmup) this.#requests.warmup++;
    const met = record.error === null && this.#meets(record);
    if (record.warmup) {
      // What the warm-up left running kept the server busy during the measurement: part of the rate, of nothing else.
      if (this.#begun !== null && record.endedAt >= this.#begun && !this.#isDrain(record)) {
        count(this.#inWindow, record, met);
      }
      return;
    }
    if (record.error?.class === 'unfinished') this.#requests.unfinished++;
    else if (record.error !== null) this.#addFailure(record);
    else this.#addSuccess(record, met);
    this.#requests.resent += record.resends;
    this.#bytes.sent += record.bytesSent;
    this.#bytes.received += record.bytesReceived;
    this.#lastEnd = Math.max(this.#lastEnd, record.endedAt);
    this.#course.add(record, this.#begun ?? record.scheduledAt);
    count(this.#inAll, record, met);
    if (!this.#isDrain(record)) count(this.#inWindow, record, met);
  }

  result(): StageResult {
    const from = this.#begun ?? (Number.isFinite(this.#firstSeen) ? this.#firstSeen : 0);
    const to = Math.max(from, this.#lastEnd);
    // Of a run that was cut off: it was sending to the last.
    const sendingEnded = this.#sendingEnded ?? Math.max(to, this.#lastSeen);
    const { ok, failed, unfinished, warmup, queued, resent, met } = this.#requests;
    return {
      label: this.#meta.label,
      asked: this.#meta.asked,
      from,
      to: Math.max(to, sendingEnded),
      sendingEnded,
      window: this.#window(sendingEnded - from, to - from),
      course: this.#course.value(),
      requests: {
        sent: ok + failed + unfinished,
        ok,
        failed,
        unfinished,
        warmup,
        queued,
        resent,
        errors: Object.fromEntries(this.#errors),
        statuses: Object.fromEntries(this.#statuses),
        examples: Object.fromEntries(this.#examples),
      },
      tokens: { ...this.#tokens },
      bytes: { ...this.#bytes },
      latency: byLatency((key) => this.#latency[key].buckets()),
      goodput: this.#slos.length === 0 ? null : { met },
      inFlight: { mean: this.#meanInFlight(), max: this.#inFlightMax },
      health: {
        lateness: this.#lateness.buckets(),
        loopDelay: this.#loopDelay.buckets(),
        readLag: this.#readLag.buckets(),
        coreShare: [...this.#workers]
          .sort(([a], [b]) => a - b)
          .map(([, { core, coreSeconds }]) => (coreSeconds === 0 ? 0 : core / coreSeconds)),
      },
    };
  }

  #window(sending: Seconds, all: Seconds): StageResult['window'] {
    const [within, total] = [this.#inWindow, this.#inAll];
    const whole = (within.ok + within.failed) * 2 < total.ok + total.failed || sending <= 0;
    return whole
      ? { seconds: all, whole, ...total }
      : { seconds: sending, whole: false, ...within };
  }

  /** Whether requests of this stage were being sent in at least a part of the batch. */
  #isSending(batch: EngineBatch): boolean {
    if (this.#begun === null || batch.to <= this.#begun) return false;
    return this.#sendingEnded === null || batch.from < this.#sendingEnded;
  }

  #isDrain(record: RequestRecord): boolean {
    return this.#sendingEnded !== null && record.endedAt > this.#sendingEnded;
  }

  #meets(record: RequestRecord): boolean {
    return meetsObjectives(record, this.#slos, this.#meta.hasSchedule);
  }

  #addSuccess(record: RequestRecord, met: boolean): void {
    this.#requests.ok++;
    if (met) this.#requests.met++;
    const tokens = this.#tokens;
    tokens.input += record.inputTokens ?? 0;
    tokens.output += record.outputTokens ?? record.outputs;
    tokens.cached += record.cachedTokens ?? 0;
    tokens.reasoning += record.reasoningTokens ?? 0;
    tokens.events += record.outputs;
    if (record.outputTokens === null) tokens.uncounted++;
    else tokens.counted++;
  }

  #addFailure({ error }: RequestRecord): void {
    if (error === null) return;
    this.#requests.failed++;
    increment(this.#errors, error.class);
    if (error.status !== null) increment(this.#statuses, error.status);
    this.#examples.set(error.class, joinExamples(this.#examples.get(error.class) ?? error, error));
  }

  #meanInFlight(): number {
    return [...this.#workers.values()].reduce(
      (sum, { inFlight, inFlightSeconds }) =>
        sum + (inFlightSeconds === 0 ? 0 : inFlight / inFlightSeconds),
      0,
    );
  }

  #worker(index: number): WorkerTally {
    const known = this.#workers.get(index);
    if (known !== undefined) return known;
    const fresh = { inFlight: 0, inFlightSeconds: 0, max: 0, core: 0, coreSeconds: 0 };
    this.#workers.set(index, fresh);
    return fresh;
  }
}

interface WorkerTally {
  /** Request-seconds, and the seconds they were counted over. */
  inFlight: number;
  inFlightSeconds: Seconds;
  /** Of its last batch. */
  max: number;
  /** CPU seconds, and the seconds they were counted over. */
  core: Seconds;
  coreSeconds: Seconds;
}

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
