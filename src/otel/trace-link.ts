import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { rootSpanId } from '../core/otlp-encode.ts';
import { maskText } from '../core/secrets/mask.ts';
import type { Bytes, Seconds } from '../core/types.ts';
import { join } from './abort.ts';
import type { TlsSettings } from './tls.ts';

/**
 * Where a trace can be looked at. A link is given only when the user said how they look, or when a Jaeger beside the receiver has
 * been asked for this very trace and has it.
 */

/** What stands for the trace's id in a configured URL. */
export const TRACE_ID_MARK = '{trace_id}';
/** Jaeger's port for people and queries (jaegertracing.io/docs/2.dev/apis). */
const JAEGER_UI_PORT = '16686';
/** Jaeger's batch processor holds spans for 0.2 s (its default), and storage takes a moment. */
const LINK_LIMIT: Seconds = 2;
const BETWEEN_LOOKS: Seconds = 0.1;
/** A query on the same network answers in milliseconds. A port that drops packets must not hold a run's end for longer. */
const LOOK_LIMIT: Seconds = 1;
/** Of an answer, in which the root span may stand anywhere: some thousand blocks. A longer trace is good enough without it. */
const LOOK_BYTES: Bytes = 8 * 1024 * 1024;

/** The configured place of a trace, filled in; reports with it are given to others. */
export function configuredLink(template: string, traceId: string): string {
  return maskText(template.replaceAll(TRACE_ID_MARK, traceId));
}

/**
 * The trace in the UI of the Jaeger at the receiver's host, as soon as its root span, which was sent last, is there; null when no Jaeger
 * is there, or it has nothing of the trace in time.
 */
export async function jaegerLink(options: {
  readonly receiver: { readonly url: URL; readonly tls: TlsSettings };
  readonly traceId: string;
  /** Aborted when nobody wants to wait any longer. */
  readonly signal: AbortSignal;
}): Promise<string | null> {
  const { receiver, traceId } = options;
  const base = new URL(receiver.url.origin);
  base.port = JAEGER_UI_PORT;
  const query = new URL(`/api/traces/${traceId}`, base);
  const joined = join([options.signal], LINK_LIMIT);
  const { signal } = joined;
  const link = new URL(`/trace/${traceId}`, base).href;
  let hasPart = false;
  try {
    while (!signal.aborted) {
      const seen = await look(query, { tls: receiver.tls, traceId, signal });
      if (seen === 'whole') return link;
      if (seen === 'part') hasPart = true;
      else if (seen === 'no jaeger') break;
      await sleep(BETWEEN_LOOKS * 1e3, undefined, { signal }).catch(() => {});
    }
  } finally {
    joined.release();
  }
  return hasPart ? link : null;
}

type Look = 'whole' | 'part' | 'not yet' | 'no jaeger';

/** Asks once. Sends the trace's id and nothing else: no header of the receiver's, which may be a credential. */
function look(
  query: URL,
  { tls, traceId, signal }: { tls: TlsSettings; traceId: string; signal: AbortSignal },
): Promise<Look> {
  return new Promise((resolve) => {
    const send = query.protocol === 'https:' ? httpsRequest : httpRequest;
    const limited = join([signal], LOOK_LIMIT);
    const settings = { agent: false, signal: limited.signal, ...tls } as const;
    const request = send(query, settings, (response) => {
      let text = '';
      const judge = () => resolve(judged(response.statusCode ?? 0, text, traceId));
      response.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk;
        if (text.length < LOOK_BYTES) return;
        judge();
        response.destroy();
      });
      response.on('end', judge);
      response.on('error', () => resolve('no jaeger'));
    });
    request.on('error', () => resolve('no jaeger'));
    request.on('close', () => limited.release());
    request.end();
  });
}

/** Jaeger answers `{"data":[{"traceID":"…"` or, while it has not got it, 404 with `{"data":null,…,"errors":[…]}`. */
function judged(status: number, text: string, traceId: string): Look {
  if (status === 404 && /^\{"data":null\b.*"errors":/s.test(text)) return 'not yet';
  const found = /^\{"data":\[\{"traceID":"([0-9a-f]{1,32})"/.exec(text)?.[1];
  if (status !== 200 || found?.padStart(32, '0') !== traceId) return 'no jaeger';
  const isWhole = text.length >= LOOK_BYTES || text.includes(`"spanID":"${rootSpanId(traceId)}"`);
  return isWhole ? 'whole' : 'part';
}
