import { setTimeout as sleep } from 'node:timers/promises';
import { SERVER_EVENT } from '../../src/core/semconv-server.ts';
import { GENAI } from '../../src/core/semconv-genai.ts';
import type {
  Attributes,
  Availability,
  Collector,
  EndpointTarget,
  Event,
  Gap,
  Metric,
  Observation,
  ObserveContext,
  Seconds,
} from '../../src/core/types.ts';
import { type Page, PageMemory, parsePage } from '../../src/platform/prometheus.ts';
import { type PageAnswer, PageSource } from './fetch-page.ts';
import { PageReadings, metricsOf, serversOf } from './page-samples.ts';

/** Reads a server's Prometheus page while something else happens to it. */

/** A page that takes longer would be told of another moment; and a dead server must not hold up the end of a run. */
const SCRAPE_LIMIT: Seconds = 2;
const NAME = 'server-metrics';

export interface ServerMetricsOptions {
  /** From one reading to the next. */
  readonly every: Seconds;
  readonly limit?: Seconds;
}

/** A page that is read before, during and after a run. A slow or dead page is a gap. */
export class ServerMetrics implements Collector<EndpointTarget> {
  readonly name: string = NAME;
  readonly #every: Seconds;
  readonly #limit: Seconds;
  readonly #memory = new PageMemory();
  #before: Page | null = null;
  #source: PageSource | null = null;

  constructor(options: ServerMetricsOptions) {
    this.#every = options.every;
    this.#limit = options.limit ?? SCRAPE_LIMIT;
  }

  /** What the page has, once it was probed. */
  get metrics(): readonly Metric[] {
    return this.#before === null ? [] : metricsOf(this.#before);
  }

  /** The engine that publishes the page, as `gen_ai.provider.name` has it; null when it was not recognised. */
  get engine(): string | null {
    return this.#before === null ? null : (serversOf(this.#before)[0]?.engine ?? null);
  }

  /** The same as people write it: `vLLM`. */
  get title(): string | null {
    return this.#before === null ? null : (serversOf(this.#before)[0]?.title ?? null);
  }

  async probe({ url }: EndpointTarget): Promise<Availability> {
    this.#source ??= new PageSource(url);
    const answer = await this.#source.read(this.#limit);
    const page = this.#pageOf(answer);
    if (page.ok) this.#before = page.page;
    if (page.ok) return { available: true, detail: `${page.page.samples.length} series` };
    return { available: false, reason: page.why, remedy: null };
  }

  async *observe(
    { url }: EndpointTarget,
    { signal, clock }: ObserveContext,
  ): AsyncIterable<Observation> {
    const source = (this.#source ??= new PageSource(url));
    const readings = new PageReadings(serverAttributes(url));
    if (this.#before !== null) yield* readings.samples(this.#before, clock.now(), true);
    let missing: (Omit<Gap, 'to'> & { readonly kind: 'gap' }) | null = null;
    let due = clock.mono() + (this.#before === null ? 0 : this.#every);
    for (;;) {
      await pause(due - clock.mono(), signal);
      const isLast = signal.aborted;
      due = Math.max(due + this.#every, clock.mono());
      const from = clock.now();
      const page = this.#pageOf(await source.read(this.#limit));
      if (page.ok) {
        if (missing !== null) yield { ...missing, to: from };
        missing = null;
        yield* readings.samples(page.page, clock.now(), isLast);
        if (readings.restarted) yield restart(clock.now(), url);
      } else {
        const reason = page.late ? 'late' : 'failed';
        missing ??= { kind: 'gap', from, collector: NAME, reason, detail: page.why };
      }
      if (isLast) break;
    }
    const to = clock.now();
    if (missing !== null) yield { ...missing, to };
    if (readings.refused > 0) {
      const detail = `${readings.refused} series more than are recorded of a page`;
      yield { kind: 'gap', from: to, to, collector: NAME, reason: 'dropped', detail };
    }
    source.close();
  }

  /** Gives up its connection; for a page that was probed and is not observed. */
  close(): void {
    this.#source?.close();
  }

  /** An answer that holds not one sample is no page, whatever its status. */
  #pageOf(answer: PageAnswer): Read {
    if (!answer.ok) return answer;
    const page = parsePage(answer.text, this.#memory);
    return page.samples.length > 0
      ? { ok: true, page }
      : { ok: false, late: false, why: 'the page holds no metrics in a format of Prometheus' };
  }
}

type Read =
  | { readonly ok: true; readonly page: Page }
  | { readonly ok: false; readonly late: boolean; readonly why: string };

function restart(at: Seconds, url: string): Event {
  const body = 'counters of the server began anew: it was restarted, or a part of it';
  const attributes = serverAttributes(url);
  return { kind: 'event', at, name: SERVER_EVENT.restart, severity: 'warn', body, attributes };
}

function serverAttributes(url: string): Attributes {
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === 'https:' ? 443 : 80;
  return {
    [GENAI.serverAddress]: hostname.replace(/^\[|\]$/g, ''),
    [GENAI.serverPort]: port === '' ? usual : Number(port),
  };
}

/** Until then, or until the signal, whichever comes first. */
async function pause(seconds: Seconds, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, seconds) * 1e3, undefined, { signal }).catch(() => {});
}
