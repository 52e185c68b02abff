import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseTraceReport, type TraceReport } from '../load/clients/trace.ts';
import type { Seconds } from '../../src/core/types.ts';
import { freePort } from '../servers/dynamo.ts';
import type { Server } from '../servers/servers.ts';
import { type Ended, runCli, startCli } from './cli.ts';

/** `trace load` against a server that a test started: how it is run, and what is read off it. */

/** Output tokens of a request, unless flags say otherwise. */
export const TOKENS = 16;
/** It is also over when the client was slower than a server that needs no time for a token, on a busy machine. */
export const DONE: readonly number[] = [0, 6];
const folder = mkdtempSync(join(tmpdir(), 'trace-load-servers-'));
const requestLog = join(folder, 'requests');

/** What the request logs were written to. */
export function removeRequestLogs(): void {
  rmSync(folder, { recursive: true, force: true });
}

export interface LoggedRequest {
  readonly warmup: boolean;
  readonly started_at: number;
  readonly ended_at: number;
  readonly error: string | null;
  readonly ttft_s: number | null;
  readonly e2e_s: number | null;
  readonly outputs: number;
  readonly output_tokens: number | null;
  readonly new_connection: boolean;
}

export interface Loaded {
  readonly run: Ended;
  readonly report: TraceReport;
  readonly log: readonly LoggedRequest[];
}

const argsOf = (port: number, flags: readonly string[]): string[] => {
  const prompts = flags.includes('--dataset') ? [] : ['--isl', '32'];
  const common = [...prompts, '--osl', String(TOKENS), '--no-recording', '--force', '--json'];
  return ['load', `http://127.0.0.1:${port}`, '--request-log', requestLog, ...common, ...flags];
};

function loadedOf(run: Ended): Loaded {
  if (run.stdout === '') throw new Error(`trace load has no result:\n${run.stderr}`);
  const lines = readFileSync(requestLog, 'utf8').split('\n').slice(0, -1);
  const log = lines.map((line) => JSON.parse(line) as LoggedRequest);
  return { run, report: parseTraceReport(run.stdout), log };
}

export const load = async (port: number, ...flags: readonly string[]): Promise<Loaded> =>
  loadedOf(await runCli(argsOf(port, flags), { limitS: 60 }));

/** The sum over the series of a Prometheus metric. */
export async function metric(port: number, name: string, labels = ''): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  const series = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .filter((line) => line.includes(labels));
  return series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** Kills the server in the middle of a run and starts it again, in `limit` seconds at most: what ended before, meanwhile and after. */
export async function throughRestart(
  start: (port: number) => Promise<Server>,
  limit: Seconds = 60,
): Promise<Loaded> {
  const port = await freePort();
  const first = await start(port);
  // Until told: what a restart takes depends on the machine.
  const run = startCli(argsOf(port, ['-c', '4', '-d', `${limit}s`, '--drain', '5s']), {
    limitS: limit + 30,
  });
  await sleep(2_000);
  await first.stop();
  await sleep(500);
  const second = await start(port);
  try {
    await sleep(2_000);
    run.child.kill('SIGINT');
    return loadedOf(await run.ended);
  } finally {
    await second.stop();
  }
}

export function expectRestartSeen({ run, report, log }: Loaded): void {
  const failed = log.filter(({ error }) => error !== null);
  const from = Math.min(...failed.map((request) => request.ended_at));
  const to = Math.max(...failed.map((request) => request.started_at));
  const ok = log.filter(({ error }) => error === null);
  expect(ok.some((request) => request.ended_at <= from)).toBe(true);
  expect(ok.some((request) => request.started_at >= to)).toBe(true);
  const classes = Object.keys(report.requests.errors);
  // Cut off, then nobody there, then 503 while the model is loaded; a connection that had been accepted but not read ends without an answer.
  expect(classes).toEqual(expect.arrayContaining(['refused']));
  expect(['cut', 'http.5xx', 'refused', 'reset']).toEqual(expect.arrayContaining(classes));
  expect(report.requests.ok).toBe(ok.filter(({ warmup }) => !warmup).length);
  expect(run.code).not.toBe(0);
}
