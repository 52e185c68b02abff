import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { GENAI, GENAI_OPERATION, requestModel } from '../../core/semconv-genai.ts';
import { PROBE_METRIC, PROBE_SPAN, PROBE_WAITED, SERVER_EVENT } from '../../core/semconv-server.ts';
import { printable } from '../../core/text.ts';
import type { Attributes, Observation, ObserveContext, Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import type { Wire } from '../../load/contracts.ts';
import { Exchange } from '../../load/exchange.ts';
import type { EndpointPlan } from '../../load/plan.ts';
import { BodyWriter } from '../../load/prompts/body.ts';
import { requestSpanId, traceparentOf } from '../../load/trace-context.ts';
import { listModels } from '../../load/wire/models.ts';
import { resolveAddress } from '../../load/wire/resolve.ts';
import { openWire } from '../../load/wire/wire.ts';
import { endpointAt, outputLimit } from '../load/plan.ts';
import { type EndpointOptions, parseEndpoint } from '../load/url.ts';
import { LoadValues } from '../load/values.ts';
import type { ServerOptions } from './options.ts';
import type { Source } from '../watching/watch.ts';

/** One small request to the server every few seconds: its times stand on the same axis as what is seen of the processes. */

/** What is asked. The answer is thrown away; so short a prompt waits in queues and for steps, and hardly for its own prefill. */
const PROMPT = 'ping';
/** The second shows that tokens go on coming. */
const OUTPUT_TOKENS = 2;
/** A server that has not answered by then does not answer: the next one is asked. */
const TIMEOUTS = { connect: 5, firstByte: null, stall: null, total: 30 } as const;
const MODELS_LIMIT: Seconds = 5;

type ProbeOptions = NonNullable<ServerOptions['probe']>;

/** The source of a run's probes. Throws a usage error for a URL that is none. Nothing is sent before it is observed. */
export function serverProbe(
  { url, every }: ProbeOptions,
  run: { readonly traceId: string; readonly env: Readonly<Record<string, string | undefined>> },
): Source {
  const endpoint = parseEndpoint(new LoadValues({}), url, run.env);
  return {
    name: 'server-probe',
    async *observe(context) {
      const probe = new Probe(endpoint, run.traceId);
      let due = context.clock.mono();
      while (!context.signal.aborted) {
        const rest = Math.max(0, due - context.clock.mono());
        await sleep(rest * 1e3, undefined, { signal: context.signal }).catch(() => {});
        if (context.signal.aborted) break;
        // One at a time: a server that is slow is not asked more often for it.
        due = Math.max(due + every, context.clock.mono());
        yield* await probe.ask(context);
      }
      probe.close();
    },
  };
}

class OneRequest extends Exchange {
  firstOutputAt: Seconds | null = null;
  #onEnd: () => void = () => {};

  ended(): Promise<void> {
    return new Promise((resolve) => (this.#onEnd = resolve));
  }

  override onOutput(at: Seconds): void {
    this.firstOutputAt ??= at;
  }

  override onEnd(): void {
    this.#onEnd();
  }

  override clear(): void {
    super.clear();
    this.firstOutputAt = null;
  }
}

/** What is known of the server once it has answered. */
interface Open {
  readonly wire: Wire;
  readonly body: Buffer;
  readonly attributes: Attributes;
}

class Probe {
  readonly #given: EndpointOptions;
  readonly #traceId: string;
  readonly #exchange = new OneRequest();
  #open: Open | null = null;
  #asked = 0;

  constructor(given: EndpointOptions, traceId: string) {
    this.#given = given;
    this.#traceId = traceId;
  }

  /** One request, to its end or that of the run. Trouble is an observation. */
  async ask({ clock, signal }: ObserveContext): Promise<readonly Observation[]> {
    try {
      this.#open ??= await this.#connect();
    } catch (error) {
      if (!(error instanceof TraceError)) throw error;
      return [failed(clock.now(), error.code, error.message, this.#server())];
    }
    const { wire, body, attributes } = this.#open;
    const exchange = this.#exchange;
    const spanId = requestSpanId(this.#traceId, 0, this.#asked++);
    const ended = exchange.ended();
    const stop = (): void =>
      wire.abort(exchange, { class: 'unfinished', status: null, detail: '', retryAfter: null });
    signal.addEventListener('abort', stop, { once: true });
    wire.send(wire.frame(body, traceparentOf(this.#traceId, spanId, true)), exchange);
    await ended;
    signal.removeEventListener('abort', stop);
    const { error, startedAt, endedAt, firstOutputAt } = exchange;
    const wall = clock.now() - monotonicNow();
    // The run's own end, which alone says nothing about the server.
    if (error?.class === 'unfinished' && signal.aborted)
      return [unanswered(endedAt + wall, endedAt - startedAt, attributes)];
    const [from, to] = [startedAt + wall, endedAt + wall];
    const ttft = firstOutputAt === null ? null : firstOutputAt - startedAt;
    const context = { spanId, role: 'client', failed: error !== null, sampled: true } as const;
    const details: Attributes = {
      ...attributes,
      ...(ttft === null ? {} : { [GENAI.timeToFirstChunk]: ttft }),
      ...(error === null ? {} : { [GENAI.errorType]: error.class }),
    };
    const sample = (metric: string, value: Seconds): Observation => ({
      kind: 'sample',
      at: to,
      metric,
      value,
      attributes,
    });
    return [
      { kind: 'span', name: PROBE_SPAN, from, to, attributes: details, context },
      ...(ttft === null ? [] : [sample(PROBE_METRIC.ttft.name, ttft)]),
      ...(error === null
        ? [sample(PROBE_METRIC.e2e.name, endedAt - startedAt)]
        : [failed(to, error.class, error.detail, attributes)]),
    ];
  }

  close(): void {
    this.#open?.wire.close();
  }

  async #connect(): Promise<Open> {
    const { host, port, modelsPath, api } = this.#given;
    const address = await resolveAddress(host, port);
    const endpoint: EndpointPlan = endpointAt(this.#given, address, null);
    const [model] = await listModels(endpoint, modelsPath ?? '/v1/models', MODELS_LIMIT);
    const streaming = api !== 'embeddings';
    const named = model ?? '';
    const bodies = new BodyWriter(
      { model: named, stream: streaming, ignoreEos: false, ...outputLimit(host), extra: {} },
      api,
    );
    return {
      wire: openWire({ endpoint, timeouts: TIMEOUTS, streaming, keepText: false }),
      body: bodies.write(PROMPT, OUTPUT_TOKENS),
      attributes: {
        ...this.#server(),
        [GENAI.operationName]: GENAI_OPERATION[api],
        [GENAI.requestModel]: requestModel(named),
      },
    };
  }

  #server(): Attributes {
    const { host, port } = this.#given;
    return { [GENAI.serverAddress]: printable(host, 200), [GENAI.serverPort]: port };
  }
}

function unanswered(at: Seconds, waited: Seconds, attributes: Attributes): Observation {
  return {
    kind: 'event',
    at,
    name: SERVER_EVENT.probeUnanswered,
    severity: 'info',
    body: `a request of --probe-url had no answer after ${formatSeconds(waited)}, when the run ended`,
    attributes: { ...attributes, [PROBE_WAITED]: waited },
  };
}

function failed(at: Seconds, kind: string, detail: string, attributes: Attributes): Observation {
  return {
    kind: 'event',
    at,
    name: SERVER_EVENT.probeFailed,
    severity: 'warn',
    body: printable(`a request of --probe-url failed: ${kind}: ${detail}`, 300),
    attributes: { ...attributes, [GENAI.errorType]: kind },
  };
}
