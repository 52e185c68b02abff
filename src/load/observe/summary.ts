import { histogramQuantile } from '../../core/exponential-histogram.ts';
import type { LatencyKey, LoadResult } from '../../core/load-types.ts';

/** What the root span of a run says of its requests. */

const LATENCIES: readonly LatencyKey[] = ['ttft', 'itl', 'tpot', 'e2e'];
const QUANTILES = [
  ['p50', 0.5],
  ['p99', 0.99],
] as const;

/** Counts and latencies as attributes, in seconds; a latency that nothing was measured of is left out. */
export function loadSummary(result: LoadResult): Readonly<Record<string, number | string>> {
  const { requests, tokens, latency, window } = result.total;
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
  if (window.seconds > 0) summary['tracewright.load.rate'] = window.ok / window.seconds;
  for (const key of LATENCIES) {
    if (latency[key].count === 0) continue;
    for (const [name, q] of QUANTILES)
      summary[`tracewright.load.${key}.${name}`] = histogramQuantile(latency[key], q);
  }
  return summary;
}
