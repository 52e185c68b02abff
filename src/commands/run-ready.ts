import { get } from 'node:http';
import { get as getTls } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTR, EVENT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Event, ObserveContext, Ratio, Seconds } from '../core/types.ts';
import { maskCredentials } from '../platform/target-title.ts';
import type { Source } from './watch.ts';

/** `--ready-url`: asking a server that is starting until it answers, and how long that took. */

/** Time between two questions, as a share of the start so far: the start is known to this precision. */
const PRECISION: Ratio = 0.05;
const ASK_BOUNDS = { least: 0.1, most: 1 } as const;
/** An answer that takes longer counts as none: a server that is ready answers a health check at once. */
const ANSWER_LIMIT: Seconds = 5;

/** Who is told what became of a start. */
interface ReadinessOptions {
  /** When the command was started, on the run's monotonic clock. */
  readonly startedAt: Seconds;
  readonly onReady: (after: Seconds) => void;
  /** The run ended first; why it was not ready then, in words. */
  readonly onNever: (why: string) => void;
}

/** Asks until there is an answer with a 2xx status; yields one event then. */
export function readiness(url: string, options: ReadinessOptions): Source {
  return { name: 'readiness', observe: (context) => observe(new URL(url), context, options) };
}

async function* observe(
  url: URL,
  { signal, clock }: ObserveContext,
  { startedAt, onReady, onNever }: ReadinessOptions,
): AsyncGenerator<Event> {
  let answer: string | null = 'it was never asked';
  while (!signal.aborted) {
    const now = await ask(url, signal);
    if (now !== null && signal.aborted) break;
    answer = now;
    const after = clock.mono() - startedAt;
    if (answer === null) {
      onReady(after);
      yield readyEvent(clock.now(), { after, url });
      return;
    }
    const pause = Math.min(ASK_BOUNDS.most, Math.max(ASK_BOUNDS.least, after * PRECISION));
    await sleep(pause * 1e3, undefined, { signal }).catch(() => {});
  }
  onNever(`${shown(url)} never answered with a 2xx status: ${answer}`);
}

function readyEvent(at: Seconds, { after, url }: { after: Seconds; url: URL }): Event {
  return {
    kind: 'event',
    at,
    name: EVENT.ready,
    severity: 'info',
    body: `ready ${after.toFixed(2)} s after its start`,
    attributes: { [ATTR.startupDuration]: after, [ATTR.urlFull]: shown(url) },
  };
}

function shown(url: URL): string {
  return printable(maskCredentials([url.href])[0] ?? '', 200);
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
    const timer = setTimeout(() => end(`no answer within ${ANSWER_LIMIT} s`), ANSWER_LIMIT * 1e3);
    request.on('response', ({ statusCode = 0 }) => {
      end(statusCode >= 200 && statusCode < 300 ? null : `HTTP ${statusCode}`);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      end(printable(error.code ?? error.message, 100));
    });
  });
}
