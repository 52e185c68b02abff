import {
  type BucketHistogram,
  type QuantileBounds,
  quantileBounds,
} from '../core/bucket-histogram.ts';
import { GENAI } from '../core/semconv-genai.ts';
import { PROBE_METRIC, SERVER_EVENT } from '../core/semconv-server.ts';
import { type ServerCourse, type ServerGauge, serverCourses } from '../core/server-course.ts';
import { type ServerHistogramKey, SERVERS } from '../core/server-names.ts';
import { median } from '../core/statistics.ts';
import type { Ratio, RecordingView, Seconds } from '../core/types.ts';
import {
  formatCount,
  formatInterval,
  formatNumber,
  formatRatio,
  formatSeconds,
} from '../core/units.ts';
import { outside } from './layout.ts';
import type { NumberLine } from './numbers.ts';
import type { Report } from './report.ts';

/** What inference servers said of themselves, in a few lines; and what small requests to them took. */

/** A number of one moment, over the pages of a run. */
export interface GaugeSummary {
  readonly median: number;
  readonly max: number;
  readonly last: number;
}

/** A distribution as the server has it: the mean is exact, quantiles lie between two bounds. */
export interface LatencySummary {
  readonly count: number;
  /** Null where the server does not publish the sum. */
  readonly mean: Seconds | null;
  readonly p50: QuantileBounds | null;
  readonly p99: QuantileBounds | null;
}

/** One server over a run; what it does not publish is null. */
export interface ServerSummary {
  readonly address: string;
  readonly port: number;
  /** As `gen_ai.provider.name` has it. */
  readonly software: string | null;
  readonly engines: readonly EngineSummary[];
  readonly pages: number;
  readonly restarts: number;
  readonly running: GaugeSummary | null;
  readonly waiting: GaugeSummary | null;
  readonly kvUsage: GaugeSummary | null;
  /** A second, over the whole run. */
  readonly inputRate: number | null;
  readonly outputRate: number | null;
  readonly finishedRate: number | null;
  /** Whether tokens are counted when a request is over: rates of short runs are uneven then. */
  readonly countsAtEnd: boolean;
  readonly preemptions: number | null;
  readonly latencies: Readonly<Partial<Record<ServerHistogramKey, LatencySummary>>>;
}

/** One of several engines or ranks, to be compared with the others. */
export interface EngineSummary {
  readonly engine: string;
  readonly runningMedian: number | null;
  readonly waitingMax: number | null;
  readonly kvMax: Ratio | null;
  readonly outputRate: number | null;
}

/** Requests of `--probe-url`. */
export interface ProbeSummary {
  readonly count: number;
  readonly failed: number;
  readonly ttft: GaugeSummary | null;
  readonly e2e: GaugeSummary | null;
}

const LATENCIES = ['ttft', 'itl', 'e2e', 'queueTime', 'prefillTime'] as const;

export function summariseServers(view: RecordingView): readonly ServerSummary[] {
  return serverCourses(view).map((course) => {
    const duration = (course.at.at(-1) ?? 0) - (course.at[0] ?? 0);
    const rate = (counted: readonly number[] | null): number | null =>
      counted === null || duration <= 0 ? null : (counted.at(-1) ?? 0) / duration;
    const { address, port, software } = course;
    const isHere = { [GENAI.serverAddress]: address, [GENAI.serverPort]: port };
    const restarts = view
      .events(SERVER_EVENT.restart)
      .filter(({ attributes }) =>
        Object.entries(isHere).every(([key, value]) => attributes?.[key] === value),
      );
    return {
      address,
      port,
      software,
      engines: course.engines.length < 2 ? [] : course.engines.map((one) => engineOf(course, one)),
      pages: course.at.length,
      restarts: restarts.length,
      running: gaugeOf(course, 'running'),
      waiting: gaugeOf(course, 'waiting'),
      kvUsage: gaugeOf(course, 'kvUsage'),
      inputRate: rate(course.counted('inputTokens')),
      outputRate: rate(course.counted('outputTokens')),
      finishedRate: rate(course.counted('finished')),
      countsAtEnd: course.counted('outputTokens') !== null && !course.isLive('outputTokens'),
      preemptions: course.counted('preemptions')?.at(-1) ?? null,
      latencies: Object.fromEntries(
        LATENCIES.flatMap((key) => {
          const histogram = course.histogram(key);
          return histogram === null ? [] : [[key, latencyOf(histogram)] as const];
        }),
      ),
    };
  });
}

export function summariseProbes(view: RecordingView): ProbeSummary | null {
  const names = view.metricNames();
  const values = (name: string): readonly number[] =>
    names.includes(name) ? view.series(name).flatMap(({ value }) => Array.from(value)) : [];
  const e2e = values(PROBE_METRIC.e2e.name);
  const failed = view.events(SERVER_EVENT.probeFailed).length;
  if (e2e.length + failed === 0) return null;
  const ttft = values(PROBE_METRIC.ttft.name);
  return { count: e2e.length + failed, failed, ttft: summaryOf(ttft), e2e: summaryOf(e2e) };
}

function engineOf(course: ServerCourse, engine: string): EngineSummary {
  const duration = (course.at.at(-1) ?? 0) - (course.at[0] ?? 0);
  const gauge = (key: ServerGauge) => summaryOf(course.gauge(key, engine) ?? []);
  const output = course.counted('outputTokens', engine)?.at(-1) ?? null;
  return {
    engine,
    runningMedian: gauge('running')?.median ?? null,
    waitingMax: gauge('waiting')?.max ?? null,
    kvMax: gauge('kvUsage')?.max ?? null,
    outputRate: output === null || duration <= 0 ? null : output / duration,
  };
}

function gaugeOf(course: ServerCourse, key: ServerGauge): GaugeSummary | null {
  return summaryOf(course.gauge(key) ?? []);
}

function summaryOf(values: readonly number[]): GaugeSummary | null {
  const known = values.filter((value) => !Number.isNaN(value));
  return known.length === 0
    ? null
    : { median: median(known), max: Math.max(...known), last: known.at(-1) ?? 0 };
}

function latencyOf(histogram: BucketHistogram): LatencySummary {
  const { count, sum } = histogram;
  return {
    count,
    mean: sum === null ? null : sum / count,
    p50: quantileBounds(histogram, 0.5),
    p99: quantileBounds(histogram, 0.99),
  };
}

/** Servers, and engines of one, that stand in the report; the rest are in the JSON document. */
const SERVERS_SHOWN = 2;
const ENGINES_SHOWN = 8;

/** `server` and `probe` in the terminal's report. */
export function serverLines({ servers = [], probes = null }: Report): NumberLine[] {
  const texts = servers.slice(0, SERVERS_SHOWN).flatMap(serverTexts);
  const more = servers.length - SERVERS_SHOWN;
  if (more > 0) texts.push(`and ${more} more ${more === 1 ? 'server' : 'servers'} in --json`);
  return [
    ...texts.map((text, i) => ({ label: i === 0 ? 'server' : '', text })),
    ...(probes === null ? [] : [{ label: 'probe', text: probeText(probes) }]),
  ];
}

function serverTexts(server: ServerSummary): readonly string[] {
  const { running, waiting, kvUsage, preemptions, engines, restarts } = server;
  const name = SERVERS.find(({ engine }) => engine === server.software)?.title ?? 'unknown';
  const where = `${name} at ${outside(server.address, 60)}:${server.port}`;
  const now = [
    running && `running ${medianText(running, formatCount)}`,
    waiting && `waiting ${medianText(waiting, formatCount)}`,
    kvUsage && `KV cache ${medianText(kvUsage, formatRatio)}`,
    preemptions !== null && preemptions > 0 && `${formatCount(preemptions)} preemptions`,
    restarts > 0 && `restarted ${restarts === 1 ? 'once' : `${restarts} times`}`,
  ].filter((text) => typeof text === 'string');
  const rates = [
    server.outputRate !== null && `${formatCount(Math.round(server.outputRate))} tokens/s out`,
    server.inputRate !== null && `${formatCount(Math.round(server.inputRate))} in`,
    server.finishedRate !== null && `${formatNumber(server.finishedRate)} requests/s ended`,
  ].filter((text) => typeof text === 'string');
  const note = server.countsAtEnd ? ' (tokens counted when a request ends)' : '';
  const latencies = LATENCIES.flatMap((key) => {
    const latency = server.latencies[key];
    return latency === undefined || key === 'prefillTime' ? [] : [latencyText(key, latency)];
  });
  return [
    `${where}: ${now.length === 0 ? 'no gauges' : now.join('; ')}`,
    ...(rates.length === 0 ? [] : [rates.join(', ') + note]),
    ...(latencies.length === 0 ? [] : [`by its own histograms: ${latencies.join('; ')}`]),
    ...engineTexts(engines),
  ];
}

function engineTexts(engines: readonly EngineSummary[]): readonly string[] {
  const shown = engines
    .slice(0, ENGINES_SHOWN)
    .map((one) =>
      [
        `engine ${outside(one.engine, 40)}: running ${one.runningMedian === null ? '?' : formatCount(one.runningMedian)}`,
        one.waitingMax !== null && `waiting at most ${formatCount(one.waitingMax)}`,
        one.kvMax !== null && `KV cache at most ${formatRatio(one.kvMax)}`,
        one.outputRate !== null && `${formatCount(Math.round(one.outputRate))} tokens/s`,
      ]
        .filter((text) => typeof text === 'string')
        .join(', '),
    );
  const more = engines.length - shown.length;
  return more > 0 ? [...shown, `and ${more} more engines in --json`] : shown;
}

const NAMES: Readonly<Record<ServerHistogramKey, string>> = {
  ttft: 'TTFT',
  itl: 'ITL',
  e2e: 'E2E',
  queueTime: 'in its queue',
  prefillTime: 'prefill',
};

function latencyText(key: ServerHistogramKey, { count, mean, p50, p99 }: LatencySummary): string {
  const parts = [
    mean !== null && `mean ${formatSeconds(mean)}`,
    p50 !== null && `p50 ${boundsText(p50)}`,
    p99 !== null && `p99 ${boundsText(p99)}`,
  ].filter((text) => typeof text === 'string');
  return `${NAMES[key]} ${parts.join(', ')} (${formatCount(count)})`;
}

/** What a bucket says and no more: `≤ 300 ms`, `100–250 ms`, `≥ 80 s`. */
function boundsText({ over, upTo }: QuantileBounds): string {
  if (over === 0 && upTo !== null) return `≤ ${formatSeconds(upTo)}`;
  return formatInterval(over, upTo ?? Number.POSITIVE_INFINITY);
}

function medianText(
  { median: middle, max }: GaugeSummary,
  format: (value: number) => string,
): string {
  return `median ${format(middle)}, max ${format(max)}`;
}

function probeText({ count, failed, ttft, e2e }: ProbeSummary): string {
  const parts = [
    `${formatCount(count)} ${count === 1 ? 'request' : 'requests'}`,
    failed > 0 && `${formatCount(failed)} failed`,
    ttft && `TTFT ${medianText(ttft, formatSeconds)}`,
    e2e && `E2E ${medianText(e2e, formatSeconds)}`,
  ];
  return parts.filter((text) => typeof text === 'string').join('; ');
}
