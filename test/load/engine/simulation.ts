import type { RequestError, RequestRecord } from '../../../src/core/load-types.ts';
import { ExponentialHistogram, mergeHistograms } from '../../../src/core/exponential-histogram.ts';
import type { HistogramBuckets, Seconds } from '../../../src/core/types.ts';
import { type Alarm, AlarmQueue, type Alarms } from '../../../src/load/engine/alarms.ts';
import { SharedCells } from '../../../src/load/engine/cells.ts';
import { Driver, type DriverEvent } from '../../../src/load/engine/driver.ts';
import { unpackRecords } from '../../../src/load/engine/record-pack.ts';
import type {
  EngineBatch,
  PreparedRequest,
  RequestSource,
  Wire,
} from '../../../src/load/contracts.ts';
import type { Exchange } from '../../../src/load/exchange.ts';
import type { Arrival, LoadPlan, StagePlan } from '../../../src/load/plan.ts';

/** A run without threads, sockets or waiting: time moves from alarm to alarm. */

export class VirtualAlarms implements Alarms {
  readonly #queue = new AlarmQueue();
  #now: Seconds = 1000;

  now(): Seconds {
    return this.#now;
  }

  set(at: Seconds, run: () => void): Alarm {
    return this.#queue.add(Math.max(at, this.#now), run);
  }

  setAbout(at: Seconds, run: () => void): Alarm {
    return this.set(at, run);
  }

  /** Goes to the next alarm; false when nothing is set. */
  step(): boolean {
    const { next } = this.#queue;
    if (next === Number.POSITIVE_INFINITY) return false;
    this.#now = Math.max(this.#now, next);
    return this.#queue.ring(this.#now);
  }
}

/** How the server answers one request: outputs at these times after it was sent, and its end. */
export interface Behaviour {
  readonly outputs: readonly Seconds[];
  readonly end: Seconds;
  readonly error?: RequestError['class'];
  readonly tokens?: number;
  /** Never ends by itself. */
  readonly hangs?: boolean;
}

/** Three tokens: the first after 100 ms, then one each 10 ms. */
export const PROMPT: Behaviour = { outputs: [0.1, 0.11, 0.12], end: 0.12, tokens: 3 };

export class FakeWire implements Wire {
  readonly #alarms: VirtualAlarms;
  readonly #behave: (index: number) => Behaviour;
  readonly #running = new Map<Exchange, Alarm[]>();
  mostAtOnce = 0;

  constructor(alarms: VirtualAlarms, behave: (index: number) => Behaviour) {
    this.#alarms = alarms;
    this.#behave = behave;
  }

  frame(body: Buffer): Buffer {
    return body;
  }

  send(body: Buffer, exchange: Exchange): void {
    const now = this.#alarms.now();
    const index = Number(body.toString());
    const { outputs, end, error, tokens, hangs } = this.#behave(index);
    exchange.clear();
    exchange.startedAt = now;
    exchange.sentAt = now;
    const finish = (): void => {
      this.#running.delete(exchange);
      exchange.endedAt = this.#alarms.now();
      exchange.outputTokens = tokens ?? null;
      exchange.firstByteAt = outputs.length > 0 ? now : null;
      exchange.text = `answer to ${index}`;
      if (error !== undefined) exchange.error = failure(error);
      exchange.onEnd();
    };
    // As the wire does when it knows at once.
    if (end === 0) {
      finish();
      return;
    }
    const alarms = outputs.map((after) =>
      this.#alarms.set(now + after, () => exchange.onOutput(this.#alarms.now())),
    );
    if (hangs !== true) alarms.push(this.#alarms.set(now + end, finish));
    this.#running.set(exchange, alarms);
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#running.size);
  }

  abort(exchange: Exchange, error: RequestError): void {
    for (const alarm of this.#running.get(exchange) ?? []) alarm.cancel();
    this.#running.delete(exchange);
    exchange.error = error;
    exchange.endedAt = this.#alarms.now();
    exchange.onEnd();
  }

  readonly readLag = new ExponentialHistogram();

  close(): void {
    this.#running.clear();
  }
}

/** Bodies are the index; conversations must be answered before they go on. */
export class FakeSource implements RequestSource {
  readonly wantsAnswers: boolean;
  readonly answers = new Map<number, string>();
  readonly prepared: number[] = [];
  readonly #turns: number;
  readonly #length: number;
  readonly #dues: readonly Seconds[] | null;

  constructor(turns: number, length: number, dues: readonly Seconds[] | null) {
    this.#turns = turns;
    this.#length = length;
    this.#dues = dues;
    this.wantsAnswers = turns > 1;
  }

  prepare(index: number): PreparedRequest | null {
    if (index >= this.#length) return null;
    const turn = index % this.#turns;
    if (turn > 0 && !this.answers.has(index - 1)) throw new Error(`turn ${index} has no answer`);
    this.prepared.push(index);
    return {
      index,
      body: Buffer.from(String(index)),
      promptClass: '',
      session: this.#turns > 1 ? Math.floor(index / this.#turns) : null,
      turn: this.#turns > 1 ? turn : null,
      due: this.#dues?.[index] ?? null,
    };
  }

  answered(request: PreparedRequest, text: string): null {
    this.answers.set(request.index, text);
    return null;
  }
}

export function failure(kind: RequestError['class']): RequestError {
  return { class: kind, status: null, detail: '', retryAfter: null };
}

export function stage(arrival: Arrival, more: Partial<StagePlan> = {}): StagePlan {
  return { label: '', arrival, maxConcurrency: null, duration: null, requests: null, ...more };
}

export function closed(concurrency: number, rampUp: Seconds = 0): Arrival {
  return { kind: 'closed', concurrency, rampUp };
}

export function open(rate: number, burstiness: number | null = null, rateTo = rate): Arrival {
  return { kind: 'open', rate, rateTo, burstiness };
}

export function loadPlan(stages: readonly StagePlan[], more: Partial<LoadPlan> = {}): LoadPlan {
  return {
    runId: 'run',
    part: { index: 0, of: 1 },
    endpoint: {
      url: 'http://127.0.0.1:1/v1/chat/completions',
      address: { kind: 'tcp', host: '127.0.0.1', port: 1 },
      tls: null,
      authority: '127.0.0.1:1',
      path: '/v1/chat/completions',
      api: 'chat',
      headers: [],
    },
    prompts: { classes: [], turns: 1, thinkTime: 0 },
    body: { model: 'm', stream: true, ignoreEos: false, extra: {} },
    stages,
    warmup: null,
    timeouts: { connect: 1, firstByte: null, stall: null, total: 60 },
    drain: 5,
    seed: 1,
    workers: 1,
    slos: [],
    trace: null,
    ...more,
  };
}

export interface Simulated {
  /** In the order of their index. */
  readonly records: readonly RequestRecord[];
  readonly events: readonly (DriverEvent & { readonly worker: number })[];
  readonly stages: EngineBatch['stages'];
  readonly mostAtOnce: number;
  readonly sources: readonly FakeSource[];
}

export interface SimulationOptions {
  readonly behave?: (index: number) => Behaviour;
  /** Records in the data set. */
  readonly length?: number;
  readonly dues?: readonly Seconds[];
  readonly workers?: number;
  /** Called at these times from the start. */
  readonly at?: readonly (readonly [Seconds, (drivers: readonly Driver[]) => void])[];
}

/** The time at which the first stage begins. */
export const START: Seconds = 1000;

/** Runs the stages of a plan in as many drivers as there are workers, one stage after the other as the crew does. */
export function simulate(plan: LoadPlan, options: SimulationOptions = {}): Simulated {
  const { behave = () => PROMPT, length = Number.POSITIVE_INFINITY, workers = 1 } = options;
  const alarms = new VirtualAlarms();
  const cells = new SharedCells({ stages: plan.stages.length });
  const events: (DriverEvent & { readonly worker: number })[] = [];
  const stages: EngineBatch['stages'][number][] = [];
  const wire = new FakeWire(alarms, behave);
  const sources: FakeSource[] = [];
  const drivers = Array.from({ length: workers }, (_, worker) => {
    const source = new FakeSource(plan.prompts.turns, length, options.dues ?? null);
    sources.push(source);
    const driver: Driver = new Driver({
      plan,
      worker,
      workers,
      wire,
      source,
      alarms,
      cells,
      wallOffset: 0,
      report(event) {
        stages.push(...driver.takeStages((histogram) => histogram.drain()));
        events.push({ ...event, worker });
      },
    });
    return driver;
  });
  for (const [after, call] of options.at ?? []) alarms.set(START + after, () => call(drivers));
  const ended = (what: DriverEvent['what'], index: number) =>
    events.filter((event) => event.what === what && event.stage === index);
  plan.stages.forEach(({ requests, continuous }, index) => {
    const before = continuous === true ? ended('sending-ended', index - 1) : [];
    const at = before.length > 0 ? Math.max(...before.map((event) => event.at)) : alarms.now();
    const isCounted = requests !== null && plan.warmup === null && plan.prompts.turns === 1;
    const held = ended('sending-ended', index - 1)
      .map((event) => (event.what === 'sending-ended' ? event.held : 0))
      .reduce((a, b) => a + b, 0);
    const units = events.map((event) =>
      event.what === 'sending-ended' ? (event.endUnit ?? 0) : 0,
    );
    cells.next = Math.max(cells.next, ...units);
    cells.end = isCounted ? cells.next - held + requests : null;
    for (const driver of drivers) driver.begin(index, at, cells.next);
    // Until all have stopped sending, where the next one follows at once; else until nothing happens any more.
    if (plan.stages[index + 1]?.continuous === true) {
      while (ended('sending-ended', index).length < workers && alarms.step());
    } else while (alarms.step());
  });
  const records = drivers.flatMap((driver, worker) =>
    unpackRecords(driver.records.take(), { worker, trace: plan.trace, part: plan.part }),
  );
  return {
    records: records.toSorted((a, b) => a.index - b.index),
    events,
    stages,
    mostAtOnce: wire.mostAtOnce,
    sources,
  };
}

/** Merged over everything that was measured, or over one stage. */
export function latencyOf(
  { stages }: Simulated,
  key: keyof EngineBatch['stages'][number]['latency'],
  of?: number,
): HistogramBuckets {
  const parts = stages.filter((one) => of === undefined || one.stage === of);
  return mergeHistograms(parts.flatMap(({ latency }) => latency[key] ?? []));
}

/** The gaps between neighbours, as they are due. */
export function gapsOf(records: readonly Pick<RequestRecord, 'scheduledAt'>[]): number[] {
  return records.slice(1).map((record, i) => record.scheduledAt - (records[i]?.scheduledAt ?? 0));
}
