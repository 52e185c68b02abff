import { ratesOf, summariseLatency } from '../../core/load-rates.ts';
import type { LatencyKey, LoadResult } from '../../core/load-types.ts';

/** What the root span of a run says of its requests. */

const LATENCIES: readonly LatencyKey[] = ['ttft', 'itl', 'tpot', 'e2e'];

/** Counts and latencies as attributes, in seconds; a latency that nothing was measured of is left out. */
export function loadSummary(result: LoadResult): Readonly<Record<string, number | string>> {
  const { requests, tokens, latency } = result.total;
  const summary: Record<string, number | string> = {
    'tracewright.load.url': result.url,
    'tracewright.load.model': result.model,
    'tracewright.load.sent.count': requests.sent,
    'tracewright.load.ok.count': requests.ok,
    'tracewright.load.failed.count': requests.failed,
    'tracewright.load.unfinished.count': requests.unfinished,
    'tracewright.load.output_token.count': tokens.output,
    'tracewright.load.input_token.count': tokens.input,
  };
  const rates = ratesOf(result.total);
  if (rates !== null) summary['tracewright.load.rate'] = rates.requests;
  for (const key of LATENCIES) {
    const { p50, p99 } = summariseLatency(latency[key]);
    if (p50 !== null) summary[`tracewright.load.${key}.p50`] = p50;
    if (p99 !== null) summary[`tracewright.load.${key}.p99`] = p99;
  }
  return summary;
}
