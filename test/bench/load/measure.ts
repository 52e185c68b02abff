import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { quantile } from '../../../src/core/statistics.ts';
import type { Bytes, Ratio, Seconds } from '../../../src/core/types.ts';
import {
  answered,
  type Figures,
  figuresOf,
  latenessOf,
  matched,
  type Quantiles,
  ttftErrors,
} from '../../load/truth-server/compare.ts';
import type { TruthLog, TruthRequest } from '../../load/truth-server/truth-log.ts';
import { startTruthServer } from '../../load/truth-server/truth-server.ts';
import { cpuOfEnded, monotonic, type Watching, watchTree } from './processes.ts';
import type { Scenario, ScenarioName } from './scenarios.ts';
import type { LoadTool, Reported } from './tools.ts';

/*
 * One tool under one scenario: the server with real-time priority on a core of its own, the tool at the highest normal priority on the other,
 * this process beside the server, where it can disturb neither.
 */

const SERVER_CORE = 0;
const CLIENT_CORE = 1;
const PRIORITY = 10;
/** From the end of the load: reports, plots, leaving. */
const TOOL_LIMIT_MS = 120_000;

export interface LoadRow {
  readonly scenario: ScenarioName;
  readonly tool: string;
  /** What the tool said, and what the server knows, of the same requests where the tool names them, else of all. */
  readonly client: Figures;
  readonly truth: Figures;
  /** Absolute errors of TTFT request by request: p50, p90, p99. Null where the tool does not name its requests. */
  readonly perRequest: readonly Seconds[] | null;
  /** Requests answered, and of them those that the tool named and the server knows. */
  readonly answered: number;
  readonly matched: number;
  readonly failed: number | null;
  /** Over the middle of the run. */
  readonly tokensPerSecond: number;
  /** Of the middle of the run. */
  readonly cpuPerToken: Seconds;
  /** Of the whole program, from its start to its end: what is put off until the load is over counts here. */
  readonly wholeCpuPerToken: Seconds;
  readonly coreShare: Ratio;
  readonly resident: Bytes;
  /** From the start of the program to its first request. */
  readonly firstRequest: Seconds;
  readonly maxInFlight: number;
  /** Of an open loop, as the server saw it. */
  readonly arrivals: { readonly rate: number; readonly cv: number } | null;
  readonly ownLateness: Quantiles | null;
  readonly serverLateness: { readonly write: Quantiles | null; readonly read: Quantiles | null };
}

/** A run that says nothing, and why; the rest of the bench goes on. */
export interface LoadFailure {
  readonly scenario: ScenarioName;
  readonly tool: string;
  readonly failure: string;
}

/** Puts this process on the server's core. */
export function stepAside(): void {
  execFileSync('taskset', ['-apc', String(SERVER_CORE), String(process.pid)]);
}

export async function measure(
  tool: LoadTool,
  scenario: Scenario,
  again = 1,
): Promise<LoadRow | LoadFailure> {
  const names = { scenario: scenario.name, tool: tool.name };
  try {
    const row = await once(tool, scenario);
    const why = voidedBy(row, scenario);
    if (why === null) return row;
    return await (again > 0
      ? measure(tool, scenario, again - 1)
      : { ...names, failure: `void: ${why}` });
  } catch (error) {
    if (again > 0) return measure(tool, scenario, again - 1);
    return { ...names, failure: error instanceof Error ? error.message : String(error) };
  }
}

/** An error so many times what the server was late by is the tool's. */
const BEYOND_DOUBT = 10;

/** Why nothing can be read off a run: the server was itself later than what is to be told apart. */
function voidedBy(row: LoadRow, { latenessLimit }: Scenario): string | null {
  if (latenessLimit === null) return null;
  const { serverLateness, client, truth } = row;
  const off = Math.abs((client.ttft?.p99 ?? 0) - (truth.ttft?.p99 ?? 0));
  for (const [what, quantiles] of Object.entries(serverLateness)) {
    const p99 = quantiles?.p99 ?? 0;
    if (p99 > latenessLimit && off < BEYOND_DOUBT * p99)
      return `the server was ${(p99 * 1e3).toFixed(2)} ms late at p99 (${what})`;
  }
  return null;
}

async function once(tool: LoadTool, scenario: Scenario): Promise<LoadRow> {
  const behind = ['chrt', '-f', String(PRIORITY), 'taskset', '-c', String(SERVER_CORE)];
  const server = await startTruthServer(behind);
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-load-'));
  try {
    await server.configure({ ...scenario.settings, seed: Date.now() });
    const asked = { scenario, url: server.url, folder };
    const { command, env } = tool.command(asked);
    const { stdout, watching, startedAt, cpu } = await runTool(command, env ?? {});
    const log = await server.log();
    const reported = tool.reported(asked, stdout);
    return rowOf({ tool, scenario, log, reported, watching, startedAt, wholeCpu: cpu });
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a tool to its end on its core. */
async function runTool(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ stdout: string; watching: Watching; startedAt: Seconds; cpu: Seconds }> {
  const pinned = ['taskset', '-c', String(CLIENT_CORE), 'nice', '-n', '-20', ...command];
  const cpuBefore = cpuOfEnded();
  const startedAt = monotonic();
  const child = spawn(pinned[0] ?? '', pinned.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited(), NO_COLOR: '1', ...env },
    // A session of its own, whose group can be given priority over others: a nice value counts within its session alone.
    detached: true,
  });
  const pid = child.pid ?? 0;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, '-20');
  } catch {
    // A kernel without it.
  }
  const watching = watchTree(pid);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const limit = setTimeout(() => process.kill(-pid, 'SIGKILL'), TOOL_LIMIT_MS);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  clearTimeout(limit);
  watching.stop();
  if (code === null || (code !== 0 && !CLIENT_LIMIT_CODES.includes(code)))
    throw new Error(`ended with ${String(code)}: ${(stderr || stdout).trim().slice(-400)}`);
  return { stdout, watching, startedAt, cpu: cpuOfEnded() - cpuBefore };
}

/** trace says so when the client was the limit; the figures are there. */
const CLIENT_LIMIT_CODES = [1, 6];

/** Without what would change a tool or is meant for the tests. */
function inherited(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(OTEL|TRACEWRIGHT|VITEST|NODE_OPTIONS|OPENAI)/.test(name),
  );
  return Object.fromEntries(kept);
}

interface Ended {
  readonly tool: LoadTool;
  readonly scenario: Scenario;
  readonly log: TruthLog;
  readonly reported: Reported;
  readonly watching: Watching;
  readonly startedAt: Seconds;
  readonly wholeCpu: Seconds;
}

function rowOf(ended: Ended): LoadRow {
  const { tool, scenario, log, reported, watching, startedAt, wholeCpu } = ended;
  const whole = answered(log).slice(reported.warmup);
  if (whole.length < 10) {
    const outcomes = [...new Set(log.requests.map(({ outcome }) => outcome))].join(', ');
    throw new Error(
      `${whole.length} of ${log.requests.length} requests were answered: ${outcomes}`,
    );
  }
  const pairs = reported.seen === null ? [] : matched(log, reported.seen);
  const measured = reported.seen === null ? whole : pairs.map(({ truth }) => truth);
  const errors = ttftErrors(pairs);
  const [from, to] = middleOf(whole);
  const tokens = tokensWithin(whole, from, to);
  const cpu = watching.cpu(from, to);
  return {
    scenario: scenario.name,
    tool: tool.name,
    client: { ttft: reported.ttft, itl: reported.itl },
    truth: figuresOf(measured),
    perRequest: pairs.length === 0 ? null : [0.5, 0.9, 0.99].map((q) => quantile(errors, q)),
    answered: whole.length,
    matched: pairs.length,
    failed: reported.failed,
    tokensPerSecond: tokens / (to - from),
    cpuPerToken: cpu / tokens,
    wholeCpuPerToken: wholeCpu / sumOf(whole.map((request) => request.tokens)),
    coreShare: cpu / (to - from),
    resident: watching.peakResident(),
    firstRequest: (log.requests[0]?.readAt ?? Number.NaN) - startedAt,
    maxInFlight: inFlight(log.requests),
    arrivals: scenario.load.kind === 'open' ? arrivalsOf(measured) : null,
    ownLateness: reported.lateness,
    serverLateness: latenessOf(log, measured),
  };
}

const sumOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** The middle 60 % of a run: neither its start nor its end. */
function middleOf(requests: readonly TruthRequest[]): [Seconds, Seconds] {
  const from = requests.reduce((least, { readAt }) => Math.min(least, readAt), Infinity);
  const to = requests.reduce((most, { endedAt }) => Math.max(most, endedAt), 0);
  return [from + 0.2 * (to - from), to - 0.2 * (to - from)];
}

/** Tokens written within, of a request as if they came evenly. */
function tokensWithin(requests: readonly TruthRequest[], from: Seconds, to: Seconds): number {
  let total = 0;
  for (const { firstAt, lastAt, tokens } of requests) {
    if (firstAt === null || lastAt === null) continue;
    if (lastAt === firstAt) total += firstAt >= from && firstAt < to ? tokens : 0;
    else {
      const within = Math.max(0, Math.min(lastAt, to) - Math.max(firstAt, from));
      total += (tokens * within) / (lastAt - firstAt);
    }
  }
  return total;
}

function inFlight(requests: readonly TruthRequest[]): number {
  const events = requests
    .flatMap(({ readAt, endedAt }) => [
      { at: readAt, by: 1 },
      { at: endedAt, by: -1 },
    ])
    .toSorted((a, b) => a.at - b.at);
  let now = 0;
  let most = 0;
  for (const { by } of events) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}

/** Of when the requests came, in the order in which they came. */
function arrivalsOf(requests: readonly TruthRequest[]): { rate: number; cv: number } {
  const times = Float64Array.from(requests, ({ arrivedAt }) => arrivedAt).sort();
  const gaps = Array.from(times.subarray(1), (at, i) => at - (times[i] ?? at));
  const mean = gaps.reduce((a, b) => a + b, 0) / gaps.length;
  const variance = gaps.reduce((a, b) => a + (b - mean) ** 2, 0) / gaps.length;
  return { rate: 1 / mean, cv: Math.sqrt(variance) / mean };
}
