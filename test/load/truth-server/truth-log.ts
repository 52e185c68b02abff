import type { Seconds } from '../../../src/core/types.ts';

/** What the truth server logged (log.go), read from its bytes. Points in time are CLOCK_MONOTONIC. */

/** What became of a request, in the order of settings.go. */
const OUTCOMES = [
  'answered',
  'internal-error',
  'rate-limited',
  'cut',
  'error-event',
  'stalled',
  'abandoned',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface TruthRequest {
  /** Of its `traceparent`: 16 hex digits, zeros without one. */
  readonly spanId: string;
  /** When the kernel had its last byte, and when the server had read it. */
  readonly arrivedAt: Seconds;
  readonly readAt: Seconds;
  /** First and last write of tokens; null where there was none. */
  readonly firstAt: Seconds | null;
  readonly lastAt: Seconds | null;
  /** 0 while it is under way. */
  readonly endedAt: Seconds;
  readonly tokens: number;
  readonly status: number;
  readonly outcome: Outcome;
  /** Between writes of tokens. */
  readonly gaps: Float64Array;
}

export interface TruthLog {
  /** In the order in which they were read. */
  readonly requests: readonly TruthRequest[];
  /** How much later than it was due each write of tokens was: the server's own lateness. */
  readonly writeLateness: Float64Array;
}

const HEAD_BYTES = 16;
const ENTRY_BYTES = 64;
const NANOSECOND = 1e-9;

export function decodeLog(bytes: Uint8Array): TruthLog {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [entries, gaps, late] = [0, 4, 8].map((at) => view.getUint32(at, true)) as [
    number,
    number,
    number,
  ];
  const gapsAt = HEAD_BYTES + entries * ENTRY_BYTES;
  const seconds = (from: number, n: number): Float64Array =>
    Float64Array.from({ length: n }, (_, i) => view.getUint32(from + 4 * i, true) * NANOSECOND);
  const allGaps = seconds(gapsAt, gaps);
  const requests = Array.from({ length: entries }, (_, i): TruthRequest => {
    const at = HEAD_BYTES + i * ENTRY_BYTES;
    const time = (offset: number): Seconds =>
      Number(view.getBigInt64(at + offset, true)) * NANOSECOND;
    const gapsFrom = view.getUint32(at + 48, true);
    return {
      spanId: view.getBigUint64(at, true).toString(16).padStart(16, '0'),
      arrivedAt: time(8),
      readAt: time(16),
      firstAt: time(24) || null,
      lastAt: time(32) || null,
      endedAt: time(40),
      tokens: view.getUint32(at + 56, true),
      status: view.getUint16(at + 60, true),
      outcome: OUTCOMES[view.getUint8(at + 62)] ?? 'abandoned',
      gaps: allGaps.subarray(gapsFrom, gapsFrom + view.getUint32(at + 52, true)),
    };
  });
  return { requests, writeLateness: seconds(gapsAt + 4 * gaps, late) };
}
