import { median } from '../../../src/core/statistics.ts';
import { table } from '../measurements.ts';
import type { Quantiles } from '../../load/truth-server/compare.ts';
import type { LoadRow } from './measure.ts';
import type { ScenarioName } from './scenarios.ts';

/** What `trace load` promises, held against the rows: absolute bars, and ratios to the peers of the same rounds. */

export const TRACE = 'trace load';
/** The peers that measure tokens of an LLM; k6 sees the first byte alone, undici is what we measure Node's own client with. */
const LLM_PEERS = [
  'guidellm',
  'aiperf',
  'inference-perf',
  "vLLM's request function",
  'locust, script of ours',
];
const LOCUST = 'locust, script of ours';
const VLLM = "vLLM's request function";
const INFERENCE_PERF = 'inference-perf';
const K6 = 'k6, body discarded';

type Measure = (row: LoadRow) => number | null;
type Latency = 'ttft' | 'itl';

/** Reported minus true, seconds; null where the tool does not report it. */
export const errorOf =
  (latency: Latency, quantile: keyof Quantiles): Measure =>
  ({ client, truth }) => {
    const [reported, real] = [client[latency], truth[latency]];
    return reported === null || real === null ? null : reported[quantile] - real[quantile];
  };

const absolute =
  (measure: Measure): Measure =>
  (row) => {
    const value = measure(row);
    return value === null ? null : Math.abs(value);
  };

/** The median over the rounds; null where no round has it. */
export function medianOf(rows: readonly LoadRow[], measure: Measure): number | null {
  const values = rows.map((row) => measure(row)).filter((value) => value !== null);
  return values.length === 0 ? null : median(values);
}

interface Bar {
  readonly scenario: ScenarioName;
  readonly what: string;
  readonly measure: Measure;
  readonly text: (value: number) => string;
  readonly limit: number;
  readonly direction: 'at most' | 'at least';
  /** At most, or at least, this many times what the best (or the named) peer has in the same rounds. */
  readonly ratios?: readonly { readonly peers: readonly string[]; readonly factor: number }[];
}

const ms = (digits: number) => (seconds: number) => `${(seconds * 1e3).toFixed(digits)} ms`;
const microseconds = (seconds: number): string => `${(seconds * 1e6).toFixed(1)} µs`;
const count = (value: number): string => Math.round(value).toLocaleString('en');
const plain = (digits: number) => (value: number) => value.toFixed(digits);

const error = (
  scenario: ScenarioName,
  latency: Latency,
  quantile: keyof Quantiles,
  limitMs: number,
  ratios?: Bar['ratios'],
): Bar => ({
  scenario,
  what: `error of ${latency.toUpperCase()} ${quantile}`,
  measure: absolute(errorOf(latency, quantile)),
  text: ms(3),
  limit: limitMs * 1e-3,
  direction: 'at most',
  ...(ratios === undefined ? {} : { ratios }),
});

const TENTH = [{ peers: LLM_PEERS, factor: 0.1 }];

export const BARS: readonly Bar[] = [
  error('256 streams', 'ttft', 'p50', 0.3, TENTH),
  error('256 streams', 'ttft', 'p99', 1, TENTH),
  error('256 streams', 'itl', 'p50', 0.02, TENTH),
  error('256 streams', 'itl', 'p99', 0.5, TENTH),
  {
    scenario: '256 streams',
    what: 'CPU a token',
    measure: ({ cpuPerToken }) => cpuPerToken,
    text: microseconds,
    limit: 14e-6,
    direction: 'at most',
    ratios: [
      { peers: [LOCUST], factor: 0.65 },
      { peers: [K6], factor: 1.3 },
    ],
  },
  error('32 streams', 'ttft', 'p50', 0.2),
  error('32 streams', 'ttft', 'p99', 0.5),
  error('1,024 slow streams', 'ttft', 'p50', 0.5),
  error('1,024 slow streams', 'ttft', 'p99', 0.5),
  {
    scenario: '1,024 slow streams',
    what: 'share of a core',
    measure: ({ coreShare }) => coreShare,
    text: plain(2),
    limit: 0.5,
    direction: 'at most',
  },
  {
    scenario: '1,024 slow streams',
    what: 'resident memory',
    measure: ({ resident }) => resident,
    text: (bytes) => `${(bytes / 1e6).toFixed(0)} MB`,
    limit: 150e6,
    direction: 'at most',
  },
  {
    scenario: '1,024 fast streams',
    what: 'tokens a second',
    measure: ({ tokensPerSecond }) => tokensPerSecond,
    text: count,
    limit: 120_000,
    direction: 'at least',
    ratios: [
      { peers: [LOCUST, VLLM], factor: 1.7 },
      { peers: [INFERENCE_PERF], factor: 8 },
    ],
  },
  {
    scenario: '16 tokens a packet',
    what: 'tokens a second',
    measure: ({ tokensPerSecond }) => tokensPerSecond,
    text: count,
    limit: 1_000_000,
    direction: 'at least',
  },
  {
    scenario: 'constant arrivals',
    what: 'CV of the gaps between arrivals',
    measure: ({ arrivals }) => arrivals?.cv ?? null,
    text: plain(3),
    limit: 0.05,
    direction: 'at most',
  },
  {
    scenario: 'constant arrivals',
    what: 'rate, off by',
    measure: ({ arrivals }) => (arrivals === null ? null : Math.abs(arrivals.rate / 100 - 1)),
    text: (ratio) => `${(ratio * 100).toFixed(2)} %`,
    limit: 0.005,
    direction: 'at most',
  },
  {
    scenario: 'constant arrivals',
    what: 'own lateness p50',
    measure: ({ ownLateness }) => ownLateness?.p50 ?? null,
    text: ms(3),
    limit: 0.05e-3,
    direction: 'at most',
  },
  {
    scenario: 'constant arrivals',
    what: 'own lateness p99',
    measure: ({ ownLateness }) => ownLateness?.p99 ?? null,
    text: ms(3),
    limit: 2e-3,
    direction: 'at most',
  },
  {
    scenario: '32 streams',
    what: 'first request after start',
    measure: ({ firstRequest }) => firstRequest,
    text: (seconds) => `${seconds.toFixed(2)} s`,
    limit: 0.5,
    direction: 'at most',
  },
];

/** Each bar with what was measured, and what the peers had in the same rounds. */
export function barTable(rows: readonly LoadRow[]): string {
  const lines = BARS.map((bar) => {
    const { scenario, what, measure, text, limit, direction, ratios = [] } = bar;
    const of = (tool: string): LoadRow[] =>
      rows.filter((row) => row.scenario === scenario && row.tool === tool);
    const ours = of(TRACE);
    const value = medianOf(ours, measure);
    const isMet = (least: number): boolean =>
      value !== null && (direction === 'at most' ? value <= least : value >= least);
    const compared = ratios.map(({ peers, factor }) => {
      const known = peers
        .map((name) => ({ name, value: medianOf(of(name), measure) }))
        .filter((one): one is { name: string; value: number } => one.value !== null)
        .toSorted((a, b) => (direction === 'at most' ? a.value - b.value : b.value - a.value));
      const [best] = known;
      if (best === undefined) return 'no peer measured';
      const sign = direction === 'at most' ? '≤' : '≥';
      const verdict = value === null ? '–' : isMet(best.value * factor) ? 'met' : '**missed**';
      return `${sign} ${factor} × ${best.name} (${text(best.value)}): ${verdict}`;
    });
    const values = ours.map((row) => measure(row)).filter((one) => one !== null);
    return [
      scenario,
      what,
      `${direction} ${text(limit)}`,
      value === null
        ? 'not measured'
        : `${text(value)} (${text(Math.min(...values))}–${text(Math.max(...values))})`,
      value === null ? '–' : isMet(limit) ? 'met' : '**missed**',
      compared.join('; '),
      String(values.length),
    ];
  });
  const head = [
    'scenario',
    'what',
    'bar',
    'trace load, median (range)',
    '',
    'beside the peers',
    'n',
  ];
  return table(head, lines);
}
