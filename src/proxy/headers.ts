import type { IncomingMessage } from 'node:http';
import type { Bytes } from '../core/types.ts';
import type { HeaderPairs } from '../core/secrets/exchanges.ts';
import { headerOf } from './exchange.ts';

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

/**
 * Where a request ends, where it goes and how its body is read: for everybody that it passes.
 * Without one the server would read another request than came (RFC 9110, 7.6.1; 9112, 11.2).
 */
const FRAMING = new Set([
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'expect',
  'host',
  'transfer-encoding',
]);

/** Methods for which Node announces no body of its own accord. */
const WITHOUT_BODY = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** A flat list of names and values, as Node keeps headers and trailers, in pairs. */
export function pairsOf(raw: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return pairs;
}

/** What `Connection` names, in lower case. */
function namedByConnection(headers: HeaderPairs): ReadonlySet<string> {
  return new Set(
    headers
      .filter(([name]) => name.toLowerCase() === 'connection')
      .flatMap(([, value]) =>
        value
          .toLowerCase()
          .split(',')
          .map((one) => one.trim()),
      ),
  );
}

/** The first framing header that `Connection` would have taken off; null where there is none. */
export function framingTakenOff(headers: HeaderPairs): string | null {
  return [...namedByConnection(headers)].find((name) => FRAMING.has(name)) ?? null;
}

/** Headers that go on: all but those for this hop, and those that `Connection` names. */
function passedOn(headers: HeaderPairs): [string, string][] {
  const named = namedByConnection(headers);
  return headers
    .filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase()))
    .map(([name, value]) => [name, value]);
}

/** Trailers that go on: none that speaks of framing or of the body (RFC 9110, 6.5.1). */
export function trailersPassedOn(raw: readonly string[]): [string, string][] {
  const isAboutBody = (name: string): boolean =>
    FRAMING.has(name) || HOP_BY_HOP.has(name) || name === 'trailer';
  return pairsOf(raw).filter(([name]) => !isAboutBody(name.toLowerCase()));
}

/** The headers of a request as the upstream gets them: its own `Host`, framed as the client framed it. */
export function upstreamHeaders(request: IncomingMessage, host: string): [string, string][] {
  const headers = pairsOf(request.rawHeaders);
  const passed = passedOn(headers).filter(([name]) => name.toLowerCase() !== 'host');
  const isChunked = request.headers['transfer-encoding'] !== undefined;
  const hasLength = request.headers['content-length'] !== undefined;
  if (isChunked) passed.push(['Transfer-Encoding', 'chunked']);
  // Else Node would announce a body in chunks.
  else if (!hasLength && !WITHOUT_BODY.has(request.method ?? ''))
    passed.push(['Content-Length', '0']);
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
