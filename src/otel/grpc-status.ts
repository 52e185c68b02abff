import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { fieldsOf, repeatedField } from './protobuf-fields.ts';
import type { Outcome } from './transport.ts';

/** What the trailers of a unary gRPC call say, in the terms of OTLP/gRPC (opentelemetry.io/docs/specs/otlp/#otlpgrpc-response). */

/** Codes by number (grpc.github.io/grpc/core/md_doc_statuscodes.html). */
const NAMES: readonly string[] = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
];
/** The codes that OTLP/gRPC names as retryable; RESOURCE_EXHAUSTED only with a RetryInfo. */
const RETRYABLE: ReadonlySet<string> = new Set([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNAVAILABLE',
  'DATA_LOSS',
]);
/** Answers that the next batch would get too, and what to do about each. */
const LASTING: Readonly<Record<string, string | null>> = {
  UNIMPLEMENTED: null,
  UNAUTHENTICATED: 'set OTEL_EXPORTER_OTLP_HEADERS to what the receiver wants',
  PERMISSION_DENIED: 'set OTEL_EXPORTER_OTLP_HEADERS to what the receiver wants',
};
/** How grpc-go, grpc-js and grpc-java say that a message is over their limit; the code alone may also mean a quota. */
const SAYS_TOO_LARGE = /larger than max|exceeds maximum size/i;
const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo';

/** Trailers or, for an answer without a message, headers. */
export type GrpcHeaders = Readonly<Record<string, string | string[] | number | undefined>>;

/** What a call's trailers mean; null when they are not gRPC's. `answer` is given when all went well. */
export function grpcOutcome(
  trailers: GrpcHeaders,
  answer: Extract<Outcome, { kind: 'taken' }>['answer'],
): Outcome | null {
  const status = text(trailers['grpc-status']);
  if (!/^\d{1,3}$/.test(status)) return null;
  const code = Number(status);
  if (code === 0) return { kind: 'taken', answer };
  const name = NAMES[code] ?? `status ${code}`;
  const message = printable(decodeMessage(text(trailers['grpc-message'])), 120);
  const why = message === '' ? `gRPC ${name}` : `gRPC ${name}: ${message}`;
  const asked = retryPause(trailers);
  const mayRetry = RETRYABLE.has(name) || (name === 'RESOURCE_EXHAUSTED' && asked !== null);
  if (mayRetry && asked !== 'never') return { kind: 'busy', why, after: asked };
  if (name === 'RESOURCE_EXHAUSTED' && SAYS_TOO_LARGE.test(message))
    return { kind: 'too-large', why };
  return { kind: 'refused', why, lasting: name in LASTING, remedy: LASTING[name] ?? null };
}

/** `grpc-retry-pushback-ms` (gRPC proposal A6), else google.rpc.RetryInfo in the status details; null when neither is there. */
function retryPause(trailers: GrpcHeaders): Seconds | 'never' | null {
  const pushback = text(trailers['grpc-retry-pushback-ms']);
  // A6 has everything but a number from 0 on mean: do not try again.
  if (pushback !== '') return /^\d{1,9}$/.test(pushback) ? Number(pushback) / 1e3 : 'never';
  const details = Buffer.from(text(trailers['grpc-status-details-bin']), 'base64');
  for (const any of repeatedField(details, STATUS_DETAILS)) {
    const fields = fieldsOf(any);
    const [type, value] = [fields.get(1), fields.get(2)];
    if (String(type) === RETRY_INFO) return durationOf(Buffer.isBuffer(value) ? value : EMPTY);
  }
  return null;
}

/** `google.rpc.Status { int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3; }` */
const STATUS_DETAILS = 3;
const EMPTY = Buffer.alloc(0);

/** `RetryInfo { Duration retry_delay = 1 }`, `Duration { int64 seconds = 1; int32 nanos = 2 }`. */
function durationOf(retryInfo: Buffer): Seconds {
  const delay = fieldsOf(retryInfo).get(1);
  const fields = fieldsOf(Buffer.isBuffer(delay) ? delay : EMPTY);
  return Number(fields.get(1) ?? 0) + Number(fields.get(2) ?? 0) / 1e9;
}

/** `grpc-message` is percent-encoded UTF-8. */
function decodeMessage(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

function text(value: string | string[] | number | undefined): string {
  return String(Array.isArray(value) ? (value[0] ?? '') : (value ?? '')).trim();
}
