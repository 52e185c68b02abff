import {
  encodeContext,
  encodeMetrics,
  encodeSpans,
  type EncodeContext,
} from '../core/otlp-encode.ts';
import { encodeLogs, type LogSource } from '../core/otlp-log-encode.ts';
import { encodeRootSpan } from '../core/otlp-root-span.ts';
import type { OtlpTraces } from '../core/otlp-types.ts';
import type {
  Finding,
  Histogram,
  Metric,
  Observation,
  RunEnd,
  RunStart,
  Sample,
  Seconds,
  Sink,
  Span,
} from '../core/types.ts';
import { Channel } from './channel.ts';
import type { OtlpConfig, Signal, SignalTarget } from './environment.ts';
import { MetricState } from './metric-state.ts';
import { Sender, type SenderOptions, type Tally, sum } from './sender.ts';

/**
 * Sends a run to an OTLP receiver while it goes on: blocked spans as they close, metrics every ten seconds, and at the
 * end the root span with the summary. Nothing here waits in `write`.
 */

/** Long enough that a dashboard of a ten-minute run costs 60 requests, short enough to watch one. */
const METRICS_INTERVAL: Seconds = 10;
/** What the end of a run may be delayed by a receiver that does not answer. */
const CLOSE_TIMEOUT: Seconds = 5;

/** What a tally counts. */
const ITEMS: Readonly<Record<Signal, string>> = {
  traces: 'spans',
  metrics: 'data points',
  logs: 'log records',
};

/** What became of everything that was to be sent. */
export interface OtlpReport extends Tally {
  readonly signals: Readonly<Partial<Record<Signal, Tally>>>;
  /** Sentences for the user, in the order they arose; without credentials. Each went to `onWarning` when it arose. */
  readonly warnings: readonly string[];
}

/** A sink to a receiver. */
export interface OtlpSink extends Sink {
  /** Sends the root span with the run's summary and findings, then closes. */
  end(end: RunEnd, findings: readonly Finding[]): Promise<OtlpReport>;
  /** Delivers what is queued within the time limit; without an `end` there is no root span. */
  close(): Promise<OtlpReport>;
  /** Ends the delivery now: somebody is tired of waiting. What is left counts as dropped. */
  giveUp(): void;
}

/** How to open a sink. */
export interface OtlpSinkOptions {
  readonly config: OtlpConfig;
  readonly start: RunStart;
  /** Metrics beyond those of semconv.ts. */
  readonly metrics?: readonly Metric[];
  readonly closeTimeout?: Seconds;
  readonly metricsInterval?: Seconds;
  /** Told of each warning as it arises, those of the configuration too. */
  readonly onWarning?: (text: string) => void;
}

interface RootSpan {
  readonly kind: 'root';
  readonly end: RunEnd;
  readonly findings: readonly Finding[];
}

/** Opens a sink; nothing is sent before there is something to send, so a receiver that is down shows only then. */
export function openOtlpSink(options: OtlpSinkOptions): OtlpSink {
  return new Otlp(options);
}

class Otlp implements OtlpSink {
  readonly name = 'otlp';
  readonly #options: OtlpSinkOptions;
  readonly #context: EncodeContext;
  readonly #closing = new AbortController();
  readonly #deadline = new AbortController();
  readonly #warnings: string[] = [];
  readonly #traces: Channel<Span | RootSpan> | null;
  readonly #logs: Channel<LogSource> | null;
  readonly #metrics: Sender<Sample | Histogram> | null;
  readonly #state: MetricState;
  readonly #timer: NodeJS.Timeout;
  #metricsTally: Tally = { sent: 0, rejected: 0, dropped: 0 };
  #exporting: Promise<void> | null = null;
  #late = 0;
  #report: Promise<OtlpReport> | null = null;

  constructor(options: OtlpSinkOptions) {
    const { config, start, metrics = [], metricsInterval = METRICS_INTERVAL } = options;
    this.#options = options;
    this.#context = encodeContext(start, { metrics, resource: config.resource });
    for (const warning of config.warnings) this.#warn(warning);
    this.#state = new MetricState(config.temporality);
    const { traces, logs, metrics: numbers } = config.targets;
    this.#traces =
      traces && new Channel(this.#sender(traces, (items) => this.#encodeTraces(items)));
    this.#logs =
      logs && new Channel(this.#sender(logs, (items) => encodeLogs(items, this.#context)));
    this.#metrics =
      numbers &&
      this.#sender(numbers, (items) => encodeMetrics(items, this.#context, config.temporality));
    this.#timer = setInterval(() => void this.#exportMetrics(), metricsInterval * 1e3);
    this.#timer.unref();
  }

  write(observation: Observation): void {
    if (this.#report !== null) {
      this.#late++;
      return;
    }
    switch (observation.kind) {
      case 'sample':
      case 'histogram':
        if (this.#metrics !== null) this.#state.add(observation);
        return;
      case 'span':
        // The server was told not to keep its part: half a trace would mislead.
        if (observation.context?.sampled !== false) this.#traces?.put(observation);
        return;
      case 'stack':
      case 'snapshot':
      case 'event':
      case 'gap':
        this.#logs?.put(observation);
    }
  }

  end(end: RunEnd, findings: readonly Finding[]): Promise<OtlpReport> {
    if (this.#report === null) {
      for (const finding of findings)
        this.#logs?.put({ kind: 'finding', finding, at: end.endedAt });
      this.#traces?.put({ kind: 'root', end, findings }, 'always');
    }
    return this.close();
  }

  close(): Promise<OtlpReport> {
    this.#report ??= this.#finish();
    return this.#report;
  }

  async #finish(): Promise<OtlpReport> {
    clearInterval(this.#timer);
    const { closeTimeout = CLOSE_TIMEOUT } = this.#options;
    const limit = setTimeout(() => this.#deadline.abort(), closeTimeout * 1e3);
    this.#closing.abort();
    const metrics = (this.#exporting ?? Promise.resolve()).then(() => this.#exportMetrics());
    await Promise.all([this.#traces?.drain(), this.#logs?.drain(), metrics]);
    clearTimeout(limit);
    this.#traces?.close();
    this.#logs?.close();
    this.#metrics?.close();
    return this.#result();
  }

  giveUp(): void {
    this.#deadline.abort();
  }

  /** One receiver can have one trouble with every signal: it is said once. */
  #warn(text: string): void {
    if (this.#warnings.includes(text)) return;
    this.#warnings.push(text);
    this.#options.onWarning?.(text);
  }

  #result(): OtlpReport {
    const unsent = { sent: 0, rejected: 0, dropped: this.#state.refused };
    const signals = {
      ...(this.#traces && { traces: this.#traces.tally }),
      ...(this.#metrics && { metrics: sum(this.#metricsTally, unsent) }),
      ...(this.#logs && { logs: this.#logs.tally }),
    };
    const late = { sent: 0, rejected: 0, dropped: this.#late };
    this.#sayWhatIsMissing(signals);
    return { ...Object.values(signals).reduce(sum, late), signals, warnings: this.#warnings };
  }

  /** A signal that the receiver does not take was said to be missing when it was refused. */
  #sayWhatIsMissing(signals: OtlpReport['signals']): void {
    const said = {
      traces: false,
      metrics: this.#metrics?.isHopeless,
      logs: this.#logs?.isHopeless,
    };
    const parts = Object.entries(signals).flatMap(([name, { sent, rejected, dropped }]) => {
      const signal = name as Signal;
      const missing = rejected + dropped;
      if (missing === 0 || said[signal] === true) return [];
      const how = `${rejected} refused, ${dropped} given up`;
      return [`${missing} of ${sent + missing} ${ITEMS[signal]} (${how})`];
    });
    if (parts.length > 0) this.#warn(`OTLP: not delivered: ${parts.join(', ')}`);
  }

  /** One export at a time: while a receiver is slow the state goes on gathering, and nothing is lost. */
  #exportMetrics(): Promise<void> {
    const sender = this.#metrics;
    if (sender === null || this.#exporting !== null) return Promise.resolve();
    const points = this.#state.take();
    if (points.length === 0) return Promise.resolve();
    this.#exporting = sender.deliver(points).then((tally) => {
      this.#metricsTally = sum(this.#metricsTally, tally);
      this.#exporting = null;
    });
    return this.#exporting;
  }

  #encodeTraces(items: readonly (Span | RootSpan)[]): OtlpTraces {
    const spans = items.filter((item) => item.kind === 'span');
    const roots = items.filter((item) => item.kind === 'root');
    const payloads = roots.map(({ end, findings }) => encodeRootSpan(end, findings, this.#context));
    if (spans.length > 0) payloads.unshift(encodeSpans(spans, this.#context));
    return { resourceSpans: payloads.flatMap((payload) => payload.resourceSpans) };
  }

  #sender<T>(target: SignalTarget, encode: ConstructorParameters<typeof Sender<T>>[1]): Sender<T> {
    const options: SenderOptions = {
      warn: (text) => this.#warn(text),
      userAgent: `tracewright/${this.#context.start.toolVersion}`,
      closing: this.#closing.signal,
      deadline: this.#deadline.signal,
    };
    return new Sender(target, encode, options);
  }
}
