import type { LoadErrorClass, RequestError } from '../../core/load-types.ts';
import { asObject } from '../../core/otlp-values.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { errorOf } from './decoded.ts';
import { DETAIL_CHARACTERS } from './limits.ts';

/**
 * Characters of a detail that are looked at: what is cut may hold the beginning of a credential.
 */
const LOOKED_AT = 4 * DETAIL_CHARACTERS;

/** What a connection was doing when it failed. */
export type Phase =
  /** No TCP (or unix) connection yet. */
  | 'connecting'
  /** TCP is there, TLS is not. */
  | 'handshake'
  /** Sent or being sent, nothing came. */
  | 'waiting'
  /** In the middle of an answer. */
  | 'answering';

export function failure(
  kind: LoadErrorClass,
  detail: string,
  status: number | null = null,
  retryAfter: Seconds | null = null,
): RequestError {
  return { class: kind, status, detail: shown(detail), retryAfter };
}

/** The failures of a run mostly say the same: it is looked at once. */
let last = { detail: '', shown: '' };

/** What is kept of a detail: servers repeat keys and headers in what they answer. */
function shown(detail: string): string {
  if (detail !== last.detail)
    last = { detail, shown: printable(maskText(detail.slice(0, LOOKED_AT)), DETAIL_CHARACTERS) };
  return last.shown;
}

/** The class of a socket's error in this phase. */
export function socketFailure(error: Error, phase: Phase, status: number | null): RequestError {
  const code = 'code' in error ? String(error.code) : '';
  const detail =
    code === '' || error.message.includes(code) ? error.message : `${code}: ${error.message}`;
  return failure(classOf(code, phase), detail, status);
}

/**
 * Of a request whose kept connection ended without an answer, where no fresh one can be had either.
 */
export function lostFailure({ class: kind, detail }: RequestError): RequestError {
  if (kind === 'client') return failure(kind, detail);
  return failure('reset', `its connection ended before any byte of an answer; then ${detail}`);
}

/** What connect(2), read(2) and write(2) say where this machine, and not the other, has no room. */
const NO_ROOM_HERE: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

function classOf(code: string, phase: Phase): LoadErrorClass {
  if (NO_ROOM_HERE.has(code)) return 'client';
  if (phase === 'answering') return 'cut';
  if (phase === 'waiting') return isTls(code) ? 'tls' : 'reset';
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) return 'dns';
  if (code === 'ETIMEDOUT') return 'timeout.connect';
  // Also in the middle of a handshake: nobody spoke of a certificate or of a protocol.
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'reset';
  if (phase === 'handshake') return 'tls';
  if (code === 'ECONNREFUSED') return 'refused';
  // EHOSTUNREACH, ENETUNREACH, ENOENT (no such socket file), EACCES. EADDRNOTAVAIL is an address
  // that
  // this machine cannot connect from, or a lack of ports: which, is not said.
  return isTls(code) ? 'tls' : 'unreachable';
}

/** With TLS 1.3 a server can refuse the client's certificate after the handshake. */
function isTls(code: string): boolean {
  return /^(?:ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO)/.test(code);
}

/** Of an answer whose status is not 2xx; `body` is the beginning of its body. */
export function statusFailure(
  status: number,
  body: string,
  retryAfter: Seconds | null,
): RequestError {
  const kind =
    status === 429
      ? 'http.429'
      : status >= 400 && status < 500
        ? 'http.4xx'
        : status >= 500 && status < 600
          ? 'http.5xx'
          : 'http.other';
  const limited = status === 429 || status === 503;
  return failure(kind, saidBy(body) || `status ${status}`, status, limited ? retryAfter : null);
}

/** The message in an error's body, or the body. */
function saidBy(body: string): string {
  try {
    const value = asObject(JSON.parse(body));
    if (value !== undefined) return errorOf(value) ?? body;
  } catch {
    // Not JSON, or cut: the text itself.
  }
  return body.trim();
}

/** `Retry-After` as seconds from the answer's own date; null when it says neither seconds nor a date. */
export function retryAfterOf(value: string | null, serverDate: Seconds | null): Seconds | null {
  if (value === null) return null;
  if (/^\d{1,9}(?:\.\d+)?$/.test(value)) return Number(value);
  const at = Date.parse(value);
  if (Number.isNaN(at)) return null;
  return Math.max(0, at / 1e3 - (serverDate ?? Date.now() / 1e3));
}
