import type { RateWindow, RequestRecord, StageResult } from '../../core/load-types.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What rates are taken of, being counted. */
export type WindowCounts = Mutable<Omit<RateWindow, 'seconds' | 'whole'>>;
export type TokenCounts = Mutable<StageResult['tokens']>;

export function emptyWindow(): WindowCounts {
  return { ok: 0, failed: 0, inputTokens: 0, outputTokens: 0, events: 0, met: 0 };
}

export function emptyTokens(): TokenCounts {
  return { input: 0, output: 0, cached: 0, reasoning: 0, counted: 0, uncounted: 0, events: 0 };
}

/** Counts a request that is over; one that was still running when the drain ended is not. */
export function count(into: WindowCounts, record: RequestRecord, met: boolean): void {
  if (record.error?.class === 'unfinished') return;
  if (record.error !== null) {
    into.failed++;
    return;
  }
  into.ok++;
  into.inputTokens += record.inputTokens ?? 0;
  into.outputTokens += record.outputTokens ?? record.outputs;
  into.events += record.outputs;
  if (met) into.met++;
}
