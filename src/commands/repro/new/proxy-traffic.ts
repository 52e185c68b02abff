import type { LoadApi } from '../../../core/load-types.ts';
import { MASK } from '../../../core/secrets/mark.ts';
import { GENAI } from '../../../core/semconv-genai.ts';
import {
  PROXY_ATTR,
  PROXY_SNAPSHOT,
  PROXY_SPAN,
  type ProxyContent,
} from '../../../core/semconv-proxy.ts';
import type { Attributes, RecordingView, Span } from '../../../core/types.ts';
import { BodyWriter } from '../../../load/prompts/body.ts';
import { STREAM } from '../../../load/prompts/random.ts';
import { words } from '../../../load/prompts/synthetic.ts';
import type {
  Oracle,
  TrafficOrigin,
  TrafficRequest,
} from '../../../../repro/parameters/parameters.ts';
import { recordedUrl } from './recorded-url.ts';

/** The requests of a recording of `trace proxy`, to be sent again: with their bodies where they were kept, else with others as long. */

const APIS: readonly (readonly [ending: string, api: LoadApi])[] = [
  ['/chat/completions', 'chat'],
  ['/completions', 'completions'],
  ['/responses', 'responses'],
  ['/embeddings', 'embeddings'],
];
/** Sent anew by whoever sends the request, or of the one trace that it was part of. */
const NOT_AGAIN =
  /^(?:host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|accept-encoding|traceparent|tracestate|proxy-.*)$/i;
/** They never reached the server. */
const NEVER_SENT = new Set(['upgrade.refused', 'request.invalid']);
const MOST_TOKENS = 200_000;
const SEED = 1;

/** At most `most` requests; empty when the recording holds none. Throws a TraceError. */
export function proxyTraffic(
  view: RecordingView,
  { oracle, most }: { readonly oracle: Oracle; readonly most: number },
): TrafficOrigin {
  const url = recordedUrl(view);
  const contents = new Map<number, ProxyContent>();
  for (const { body } of view.snapshots(PROXY_SNAPSHOT.content))
    if (isContent(body)) contents.set(body.index, body);
  const spans = view
    .spans(PROXY_SPAN.request)
    .filter(({ attributes }) => !NEVER_SENT.has(String(attributes[PROXY_ATTR.errorType])))
    .toSorted((a, b) => a.from - b.from)
    .slice(0, most);
  const made = spans.map((span, position) => {
    const content = contents.get(Number(span.attributes[PROXY_ATTR.index]));
    // An answer is told from another's by a mark, which what was said does not hold.
    const said = oracle.kind === 'cross-talk' ? undefined : content;
    return requestOf(span, { position, content, said, first: spans[0]?.from ?? 0, oracle });
  });
  const isMadeUp = made.some((one) => one.isMadeUp);
  const isKept = made.some((one) => !one.isMadeUp && one.request.body !== null);
  return {
    // Without credentials, which are not to be given to others.
    base_url: `${url.origin}${url.pathname}`.replace(/\/$/, ''),
    bodies: isMadeUp ? (isKept ? 'some-kept' : 'made-up') : 'kept',
    requests: made.map(({ request }) => request),
  };
}

interface Making {
  /** In the list that is sent. */
  readonly position: number;
  readonly content: ProxyContent | undefined;
  /** The content whose body may be sent. */
  readonly said: ProxyContent | undefined;
  readonly first: number;
  readonly oracle: Oracle;
}

function requestOf(
  { from, attributes }: Span,
  making: Making,
): { readonly request: TrafficRequest; readonly isMadeUp: boolean } {
  const { content, said } = making;
  const kept = said?.request;
  const isUsable = kept?.body != null && kept.encoding === 'utf8' && !kept.cut;
  const isEmpty = !(Number(attributes[PROXY_ATTR.requestSize]) > 0);
  const text = isUsable ? kept.body : isEmpty ? null : madeUp(attributes, making);
  const path = content?.target ?? attributes[PROXY_ATTR.path];
  return {
    isMadeUp: !isUsable && !isEmpty,
    request: {
      offset_s: Number(Math.max(0, from - making.first).toFixed(4)),
      method: String(attributes[PROXY_ATTR.method] ?? 'GET'),
      path: typeof path === 'string' ? path : '/',
      headers: headersOf(attributes, { content, hasBody: !isEmpty }),
      body: text,
    },
  };
}

function headersOf(
  attributes: Attributes,
  { content, hasBody }: { readonly content: ProxyContent | undefined; readonly hasBody: boolean },
): Readonly<Record<string, string>> {
  if (content !== undefined)
    return Object.fromEntries(
      content.request.headers.filter(
        ([name, value]) => !NOT_AGAIN.test(name) && !value.includes(MASK),
      ),
    );
  const type = attributes[PROXY_ATTR.contentType];
  return hasBody && typeof type === 'string' ? { 'Content-Type': type } : {};
}

/** A body of the same form and length that says nothing. */
function madeUp(attributes: Attributes, { position, oracle }: Making): string {
  const count = (key: string): number | null => {
    const value = attributes[key];
    return typeof value === 'number' ? Math.min(value, MOST_TOKENS) : null;
  };
  const size = count(PROXY_ATTR.requestSize) ?? 0;
  const model = attributes[GENAI.requestModel];
  const path = String(attributes[PROXY_ATTR.path] ?? '');
  const api = APIS.find(([ending]) => path.endsWith(ending))?.[1];
  if (api === undefined || typeof model !== 'string') {
    const isJson = /\bjson$/i.test(String(attributes[PROXY_ATTR.contentType] ?? ''));
    const around = isJson ? '{"text":""}'.length : 0;
    const text = 'x'.repeat(Math.max(0, size - around));
    return isJson ? `{"text":"${text}"}` : text;
  }
  const stream = attributes[GENAI.requestStream] === true;
  const writer = new BodyWriter(
    { model, stream, ignoreEos: false, extra: { temperature: 0 } },
    api,
  );
  const limit = count(GENAI.requestMaxTokens) ?? count(GENAI.outputTokens);
  const ask = oracle.kind === 'cross-talk' ? 'Repeat {nonce}. ' : '';
  const tokens = count(GENAI.inputTokens);
  // Without the server's count, as many bytes as the body had.
  const room = Math.max(1, size - writer.write(ask, limit).length);
  const prompt =
    tokens === null
      ? words(SEED, STREAM.words, position, Math.ceil(room / 2)).slice(0, room)
      : words(SEED, STREAM.words, position, Math.max(1, tokens));
  return writer.write(`${ask}${prompt}`, limit).toString('utf8');
}

/** Recordings come from disk: what is no content of ours is left out. */
function isContent(body: unknown): body is ProxyContent {
  if (typeof body !== 'object' || body === null) return false;
  const { index, target, request } = body as Partial<ProxyContent>;
  return (
    typeof index === 'number' &&
    typeof target === 'string' &&
    typeof request === 'object' &&
    Array.isArray(request.headers) &&
    request.headers.every(
      (pair) =>
        Array.isArray(pair) && pair.length === 2 && pair.every((one) => typeof one === 'string'),
    ) &&
    (request.body === null || typeof request.body === 'string')
  );
}
