import type { IncomingMessage } from 'node:http';
import { framingTakenOff, pairsOf } from './headers.ts';

/** Why a request does not go on, and the status that it is refused with. */
export interface Flaw {
  readonly status: 400 | 501;
  readonly why: string;
}

/**
 * What would make the server read another request than the one that is recorded; null where both
 * read the same. Two lengths, a length beside chunks and spaces in names Node's parser has refused
 * before.
 */
export function flawOf(request: IncomingMessage, target: string): Flaw | null {
  const wrong = (why: string): Flaw => ({ status: 400, why });
  const taken = framingTakenOff(pairsOf(request.rawHeaders));
  if (taken !== null) return wrong(`Connection names ${taken}, which is not for one hop alone`);
  if (!isPath(target, request.method)) return wrong('its target is no path on this server');
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (length !== undefined && !/^\d+$/.test(length))
    return wrong('its Content-Length is no number');
  if (coding === undefined) return null;
  if (request.httpVersion !== '1.1')
    return wrong(`HTTP/${request.httpVersion} has no Transfer-Encoding`);
  // What another coding says of the body would be lost: chunks are written anew.
  return coding.trim().toLowerCase() === 'chunked'
    ? null
    : { status: 501, why: 'no transfer coding but chunked is passed on' };
}

/** A server follows the host of a whole address, and not `Host` (RFC 9112, 3.2.2). */
function isPath(target: string, method: string | undefined): boolean {
  return target.startsWith('/') || (target === '*' && method === 'OPTIONS');
}
