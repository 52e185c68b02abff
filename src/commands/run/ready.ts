import { get } from 'node:http';
import { get as getTls } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../../core/clock.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { ATTR, EVENT } from '../../core/semconv.ts';
import { printable } from '../../core/text.ts';
import type { Event, ObserveContext, Ratio, Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import type { Source } from '../watching/watch.ts';

/** `--ready-url`: asking a server that is starting until it answers, and how long that took. */

/** Time between two questions, as a share of the start so far: the start is known to this precision. */
const PRECISION: Ratio = 0.05;
const ASK_BOUNDS = { least: 0.1, most: 1 } as const;
/** An answer that takes longer counts as none: a server that is ready answers a health check at once. */
const ANSWER_LIMIT: Seconds = 5;

/** Who is told what became of a start. */
interface ReadinessOptions {
  /** When the command was started, on the monotonic clock. */
  readonly startedAt: Seconds;
  readonly onReady: (after: Seconds) => void;
  /** The run ended first; why it was not ready then, in words. */
  readonly onNever: (why: string) => void;
}

/** Asks from now on, whether or not the run has begun, until there is an answer with a 2xx status. */
export class Readiness implements Source {
  readonly name = 'readiness';
  readonly #url: URL;
  readonly #options: ReadinessOptions;
  readonly #asking = new AbortController();
  /** When it was ready, on the monotonic clock; null when the asking was ended. */
  readonly #ready: Promise<Seconds | null>;
  #lastAnswer = 'it was never asked';

  constructor(url: string, options: ReadinessOptions) {
    this.#url = new URL(url);
    this.#options = options;
    this.#ready = this.#ask();
  }

  /** One event at most. */
  async *observe({ signal, clock }: ObserveContext): AsyncGenerator<Event> {
    const stop = (): void => this.close();
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    const readyAt = await this.#ready;
    if (readyAt === null) {
      this.#options.onNever(
        `${shown(this.#url)} never answered with a 2xx status: ${this.#lastAnswer}`,
      );
      return;
    }
    const after = readyAt - this.#options.startedAt;
    yield readyEvent(clock.now() - (clock.mono() - readyAt), { after, url: this.#url });
  }

  /** Asks no more. */
  close(): void {
    this.#asking.abort();
  }

  async #ask(): Promise<Seconds | null> {
    const { signal } = this.#asking;
    const { startedAt, onReady } = this.#options;
    while (!signal.aborted) {
      const answer = await ask(this.#url, signal);
      const now = monotonicNow();
      if (answer === null) {
        onReady(now - startedAt);
        return now;
      }
      if (!signal.aborted) this.#lastAnswer = answer;
      const pause = Math.max(ASK_BOUNDS.least, (now - startedAt) * PRECISION);
      await sleep(Math.min(ASK_BOUNDS.most, pause) * 1e3, undefined, { signal }).catch(() => {});
    }
    return null;
  }
}

function readyEvent(at: Seconds, { after, url }: { after: Seconds; url: URL }): Event {
  return {
    kind: 'event',
    at,
    name: EVENT.ready,
    severity: 'info',
    body: `ready ${formatSeconds(after)} after its start`,
    attributes: { [ATTR.startupDuration]: after, [ATTR.urlFull]: shown(url) },
  };
}

function shown(url: URL): string {
  return printable(maskText(url.href), 200);
}

/** Null when the answer's status is 2xx, else why not. Of the answer nothing but its status is read. Never rejects. */
function ask(url: URL, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const send = url.protocol === 'https:' ? getTls : get;
    // A connection of its own each time: one that was accepted by a server on its way down says nothing of the next.
    const request = send(url, { agent: false, signal });
    const end = (result: string | null): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    const timer = setTimeout(
      () => end(`no answer within ${formatSeconds(ANSWER_LIMIT)}`),
      ANSWER_LIMIT * 1e3,
    );
    request.on('response', ({ statusCode = 0 }) => {
      end(statusCode >= 200 && statusCode < 300 ? null : `HTTP ${statusCode}`);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      end(printable(error.code ?? error.message, 100));
    });
  });
}
