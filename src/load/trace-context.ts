import type { Ratio } from '../core/types.ts';
import type { LoadPlan } from './plan.ts';

/**
 * Trace context of the requests of a run (W3C Trace Context, https://www.w3.org/TR/trace-context/): one trace for the run, one span id for each
 * request, made of the run's trace id and the request's index alone. So every worker, the recording and the receiver agree without talking.
 */

export type TracePlan = NonNullable<LoadPlan['trace']>;

/** So many requests at the beginning are all sampled where the share is to thin out: a tracing back end shows that many, and keeps them. */
export const THINNING_BEGINS = 2000;

const FLAG_SAMPLED = 0x01;

/** The span id of a request: 16 lower-case hex digits, unique among 2^32 requests of one part. */
export function requestSpanId(traceId: string, part: number, index: number): string {
  const high = scramble((Number.parseInt(traceId.slice(0, 8), 16) ^ Math.imul(part, GOLDEN)) >>> 0);
  // A bijection of 32 bits, so that no two indices meet.
  const low = scramble((index ^ Number.parseInt(traceId.slice(8, 16), 16)) >>> 0);
  const id = hex(high) + hex(low);
  // All zero is no span id (the specification, § 3.2.2.4).
  return id === NO_SPAN_ID ? '0000000000000001' : id;
}

const NO_SPAN_ID = '0'.repeat(16);

/**
 * Whether a request's `traceparent` says "sampled" and its span is exported: decided by its index alone, before it is sent, because the
 * server keeps its own spans by this flag. `thinning`: all of the first {@link THINNING_BEGINS}, half of those until there are twice
 * as many, a quarter until four times: so many more for each doubling, however long the run gets.
 */
export function isSampled(index: number, sample: TracePlan['sample']): boolean {
  return scramble((index + GOLDEN) >>> 0) < shareAt(index, sample) * 2 ** 32;
}

function shareAt(index: number, sample: TracePlan['sample']): Ratio {
  if (sample !== 'thinning') return sample;
  return index < THINNING_BEGINS ? 1 : 0.5 ** (Math.floor(Math.log2(index / THINNING_BEGINS)) + 1);
}

/** The header's value. */
export function traceparentOf(traceId: string, spanId: string, sampled: boolean): string {
  return `00-${traceId}-${spanId}-${sampled ? hexByte(FLAG_SAMPLED) : '00'}`;
}

/** 2^32 divided by the golden ratio: spreads neighbours (Knuth, TAOCP 3, 6.4). */
const GOLDEN = 0x9e3779b1;

/** The finalizer of MurmurHash3: a bijection of 32 bits in which each bit depends on all others. */
function scramble(value: number): number {
  let x = value >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

function hex(value: number): string {
  return value.toString(16).padStart(8, '0');
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, '0');
}
