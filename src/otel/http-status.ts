import type { Seconds } from '../core/types.ts';
import type { SignalTarget } from './environment.ts';
import type { Outcome } from './transport.ts';

/** What an HTTP status means to OTLP (opentelemetry.io/docs/specs/otlp/#otlphttp-response). */

/** The statuses that OTLP/HTTP names as retryable; any other answer is final. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const TOO_LARGE = 413;
const SET_HEADERS = 'set OTEL_EXPORTER_OTLP_HEADERS to what the receiver wants';
/** Answers that the next batch would get too, and what to do about each. */
const LASTING: Readonly<Record<number, string | null>> = {
  301: 'redirects are not followed: name the place it points to',
  302: 'redirects are not followed: name the place it points to',
  307: 'redirects are not followed: name the place it points to',
  308: 'redirects are not followed: name the place it points to',
  401: SET_HEADERS,
  403: SET_HEADERS,
  404: null,
  405: null,
  415: 'try --otlp-protocol http/protobuf',
  501: null,
};

/** What a status that is not a success means. `said` is what the receiver gave as a reason, safe to print. */
export function refusalByStatus(
  status: number,
  context: { target: SignalTarget; said: string; retryAfter: Seconds | null },
): Outcome {
  const { target, said, retryAfter } = context;
  // Many repeat the status in their text: "404 page not found".
  const reason = said.startsWith(`${status}`) ? said.slice(3).trim() : said;
  const why = reason === '' ? `HTTP ${status}` : `HTTP ${status}: ${reason}`;
  if (RETRYABLE.has(status)) return { kind: 'busy', why, after: retryAfter };
  if (status === TOO_LARGE) return { kind: 'too-large', why };
  const pathRemedy = `correct the path of ${target.url.pathname}`;
  const isPath = target.protocol !== 'grpc' && target.signal === 'traces' && status === 404;
  const remedy = isPath ? pathRemedy : (LASTING[status] ?? null);
  return { kind: 'refused', why, lasting: status in LASTING, remedy };
}

/** `Retry-After` in seconds: a number, or an HTTP date (RFC 9110 §10.2.3); null when it is neither. */
export function retryAfter(value: string | null): Seconds | null {
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  // Date.parse takes much for a date, "-1" for one; HTTP's begin with a day's name.
  const at = /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1e3);
}
