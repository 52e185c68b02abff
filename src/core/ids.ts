import { randomBytes } from 'node:crypto';

/** A W3C trace id: 32 lower-case hex digits, not all zero. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}

/** An id of a span: 16 lower-case hex digits. */
export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}
