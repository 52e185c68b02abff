import type { OtlpPayload } from '../core/otlp-types.ts';

/** A line holds at most this many points, spans or records: reading one needs memory for all of it. */
export const LINE_POINTS = 512;

/** A payload as a line of a recording. */
export function toLine(payload: OtlpPayload): Buffer {
  return Buffer.from(`${JSON.stringify(payload)}\n`);
}
