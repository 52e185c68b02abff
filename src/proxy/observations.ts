import {
  PROXY_ATTR,
  PROXY_SNAPSHOT,
  PROXY_SPAN,
  type ProxyContent,
  type ProxyMessage,
} from '../core/semconv-proxy.ts';
import { GENAI, requestModel } from '../core/semconv-genai.ts';
import { newSpanId } from '../core/ids.ts';
import {
  type HeaderPairs,
  maskEchoes,
  maskHeaders,
  maskTarget,
  secretsIn,
} from '../core/secrets/exchanges.ts';
import { printable } from '../core/text.ts';
import type { AttributeValue, Seconds, Snapshot, Span } from '../core/types.ts';
import { type Exchange, headerOf, isEventStream } from './exchange.ts';
import type { KeptBody } from './kept-body.ts';

/** What passed, as a recording keeps it. */

const PATH_LIMIT = 2000;
const TYPE_LIMIT = 100;

/** The span of a request; `start` is that of the recording. */
export function spanOf(
  exchange: Exchange,
  { start, captures }: { readonly start: Seconds; readonly captures: boolean },
): Span {
  const { from, to, status, failure } = exchange;
  const target = maskTarget(exchange.target, { values: captures });
  const [path = '', query] = target.split('?', 2);
  const type = headerOf(exchange.requestHeaders, 'content-type')?.split(';')[0]?.trim();
  const all: Readonly<Record<string, AttributeValue | null | undefined>> = {
    [PROXY_ATTR.index]: exchange.index,
    [PROXY_ATTR.offset]: Math.max(0, from - start),
    [PROXY_ATTR.method]: printable(exchange.method, TYPE_LIMIT),
    [PROXY_ATTR.path]: printable(path, PATH_LIMIT),
    [PROXY_ATTR.query]: query === undefined ? null : printable(query, PATH_LIMIT),
    [PROXY_ATTR.contentType]: type === undefined ? null : printable(type, TYPE_LIMIT),
    [PROXY_ATTR.requestSize]: exchange.requestBody.size,
    [PROXY_ATTR.responseSize]: exchange.responseBody.size,
    [PROXY_ATTR.status]: status,
    [PROXY_ATTR.head]: exchange.head,
    [PROXY_ATTR.errorType]: failure ?? (status !== null && status >= 500 ? String(status) : null),
    [GENAI.timeToFirstChunk]: isEventStream(exchange) ? exchange.firstByte : null,
    ...modelFacts(exchange),
  };
  return {
    kind: 'span',
    name: PROXY_SPAN.request,
    from,
    to: Math.max(from, to),
    attributes: Object.fromEntries(
      Object.entries(all).filter((entry): entry is [string, AttributeValue] => {
        return entry[1] !== null && entry[1] !== undefined;
      }),
    ),
    context: {
      spanId: newSpanId(),
      role: 'client',
      failed: failure !== null || (status !== null && status >= 500),
      sampled: true,
    },
  };
}

/** What was said, with credentials masked. */
export function contentOf(exchange: Exchange): Snapshot {
  const secrets = [...secretsIn(exchange.receivedHeaders), ...secretsIn(exchange.responseHeaders)];
  const message = (headers: HeaderPairs, kept: KeptBody): ProxyMessage => {
    const { body, encoding } = kept.content();
    return {
      headers: maskHeaders(headers),
      body: body === null || encoding === 'base64' ? body : maskEchoes(body, secrets),
      encoding,
      cut: kept.isCut,
    };
  };
  const body: ProxyContent = {
    index: exchange.index,
    method: exchange.method,
    target: maskTarget(exchange.target, { values: true }),
    request: message(exchange.requestHeaders, exchange.requestBody),
    response: message(exchange.responseHeaders, exchange.responseBody),
  };
  return { kind: 'snapshot', at: exchange.to, of: PROXY_SNAPSHOT.content, body };
}

/** Of a call of a model: which, streamed or not, how many tokens. None of what was said. */
function modelFacts(exchange: Exchange): Readonly<Record<string, AttributeValue | null>> {
  if (exchange.method !== 'POST') return {};
  const { requestBody, responseBody } = exchange;
  const { body } = requestBody.content();
  if (body === null || requestBody.isCut || !body.trimStart().startsWith('{')) return {};
  let request: unknown;
  try {
    request = JSON.parse(body);
  } catch {
    return {};
  }
  const { model, stream, max_tokens, max_completion_tokens, max_output_tokens } =
    request as Readonly<Record<string, unknown>>;
  if (typeof model !== 'string') return {};
  const limit = [max_completion_tokens, max_tokens, max_output_tokens].find(
    (one) => typeof one === 'number',
  );
  const { end } = responseBody;
  return {
    [GENAI.requestModel]: requestModel(model),
    [GENAI.requestStream]: stream === true,
    [GENAI.requestMaxTokens]: typeof limit === 'number' ? limit : null,
    [GENAI.inputTokens]: lastCount(end, /"(?:prompt|input)_tokens"\s*:\s*(\d{1,9})\b/g),
    [GENAI.outputTokens]: lastCount(end, /"(?:completion|output)_tokens"\s*:\s*(\d{1,9})\b/g),
  };
}

/** The usage that stands last counts everything. */
function lastCount(text: string, pattern: RegExp): number | null {
  const found = [...text.matchAll(pattern)].at(-1)?.[1];
  return found === undefined ? null : Number(found);
}
