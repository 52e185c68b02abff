import type { IncomingMessage } from 'node:http';
import type { Bytes } from '../core/types.ts';
import { headerOf } from './exchange.ts';
import type { HeaderPairs } from './masking.ts';

/** Cookies and tokens of single sign-on make heads larger than Node's 16 KiB. */
export const HEAD_LIMIT: Bytes = 64 * 1024;

/** Meant for the next hop alone: RFC 9110, 7.6.1. Framing is written anew. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
]);

const HAS_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** A flat list of names and values, as Node keeps headers and trailers, in pairs. */
export function pairsOf(raw: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return pairs;
}

/** Headers that go on: all but those for this hop, and those that `Connection` names. */
export function passedOn(headers: HeaderPairs): [string, string][] {
  const named = new Set(
    headers
      .filter(([name]) => name.toLowerCase() === 'connection')
      .flatMap(([, value]) =>
        value
          .toLowerCase()
          .split(',')
          .map((one) => one.trim()),
      ),
  );
  return headers
    .filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase()))
    .map(([name, value]) => [name, value]);
}

/** The headers of a request as the upstream gets them: its own `Host`, framed as the client framed it. */
export function upstreamHeaders(request: IncomingMessage, host: string): [string, string][] {
  const headers = pairsOf(request.rawHeaders);
  const passed = passedOn(headers).filter(([name]) => name.toLowerCase() !== 'host');
  const isChunked = request.headers['transfer-encoding'] !== undefined;
  const hasLength = request.headers['content-length'] !== undefined;
  if (isChunked) passed.push(['Transfer-Encoding', 'chunked']);
  // Else Node would announce a body in chunks.
  else if (!hasLength && HAS_BODY.has(request.method ?? '')) passed.push(['Content-Length', '0']);
  if (/\btrailers\b/i.test(headerOf(headers, 'te') ?? '')) passed.push(['TE', 'trailers']);
  return [['Host', host], ...passed];
}

/** The headers of an answer as the client gets them; `Trailer` only where trailers can follow. */
export function clientHeaders(
  answer: IncomingMessage,
  { canHaveTrailers }: { readonly canHaveTrailers: boolean },
): [string, string][] {
  const passed = passedOn(pairsOf(answer.rawHeaders));
  const hasLength = answer.headers['content-length'] !== undefined;
  return canHaveTrailers && !hasLength
    ? passed
    : passed.filter(([name]) => name.toLowerCase() !== 'trailer');
}
