import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quantile } from '../../src/core/statistics.ts';
import type { Seconds } from '../../src/core/types.ts';
import { parseTraceReport, seenRequests, type TraceReport } from '../load/clients/trace.ts';
import {
  answered,
  type Figures,
  figuresOf,
  matched,
  type Quantiles,
  type SeenRequest,
  ttftErrors,
} from '../load/truth-server/compare.ts';
import type { TruthLog } from '../load/truth-server/truth-log.ts';
import { isWanted, startTruthServer, type TruthServer } from '../load/truth-server/truth-server.ts';
import { type Ended, runCli } from './cli.ts';

/*
 * `trace load` beside a plain client on undici, in turn, against the same server, which logs what it really did: on a machine that is busy both
 * are late, so each is judged by its best round, and only how they compare says something. The figures of a quiet machine stand in
 * docs/benchmarks.md.
 */

const run = promisify(execFile);
const SECONDS = 2;
const WARMUP_S = 0.5;
const TOKENS = 64;
const ROUNDS = 3;
/** As far as `trace load` may fall behind undici; it is well ahead on a quiet machine. */
const RATIO = 1.25;
/** So much is right in any case: twice the bar for the p99 of gaps on a quiet machine, which this one need not be. */
const RIGHT: Seconds = 0.001;
/** A value is known to this share of itself: half a bucket of the histogram. */
const RESOLUTION = 0.0014;
/** It says so when it was itself the limit, as it may be here. */
const CODES = [0, 6];

/** How far from the truth, absolute values. */
interface Errors {
  /** Of each request, median and p90. */
  readonly ttft: Seconds;
  readonly ttftP90: Seconds;
  /** Of all gaps, the median's and the p99's together: either alone is right by chance on the way from too small to too large. */
  readonly itl: Seconds;
}

function errorsOf(log: TruthLog, seen: readonly SeenRequest[], { itl }: Figures): Errors {
  const pairs = matched(log, seen);
  const errors = ttftErrors(pairs);
  const truth = figuresOf(pairs.map((pair) => pair.truth)).itl;
  const off = (name: keyof Quantiles): Seconds => {
    const real = truth?.[name] ?? Number.NaN;
    return Math.max(0, Math.abs((itl?.[name] ?? 0) - real) - RESOLUTION * real);
  };
  return {
    ttft: quantile(errors, 0.5),
    ttftP90: quantile(errors, 0.9),
    itl: off('p50') + off('p99'),
  };
}

describe.runIf(isWanted)('trace load against a server that knows the truth', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trace-accuracy-'));
  let server: TruthServer;
  beforeAll(async () => {
    server = await startTruthServer();
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Loaded {
    readonly run: Ended;
    readonly report: TraceReport;
    readonly seen: readonly SeenRequest[];
    readonly log: TruthLog;
  }

  async function load(concurrency: number): Promise<Loaded> {
    const requests = join(folder, 'requests');
    const args = ['load', server.url, '-m', 'truth', '-c', String(concurrency), '--ramp', '0.2s'];
    const time = ['-d', `${SECONDS}s`, '--warmup', `${WARMUP_S}s`];
    const output = ['-o', join(folder, 'recording'), '--request-log', requests, '--force'];
    const prompts = ['--isl', '64', '--osl', String(TOKENS), '--json'];
    const ended = await runCli([...args, ...time, ...output, ...prompts], { limitS: 60 });
    const report = parseTraceReport(ended.stdout);
    return { run: ended, report, seen: seenRequests(requests), log: await server.log() };
  }

  async function undici(concurrency: number): Promise<Errors> {
    const program = join(import.meta.dirname, '..', 'load', 'clients', 'undici.js');
    const requests = join(folder, 'undici');
    const flags = { url: server.url, concurrency, seconds: SECONDS, warmup: WARMUP_S };
    const args = Object.entries({ ...flags, tokens: TOKENS, log: requests });
    const { stdout } = await run(process.execPath, [
      program,
      ...args.flatMap(([name, value]) => [`--${name}`, String(value)]),
    ]);
    const seen = JSON.parse(readFileSync(requests, 'utf8')) as SeenRequest[];
    return errorsOf(await server.log(), seen, JSON.parse(stdout) as Figures);
  }

  describe.each([32, 256])('at %i streams', (concurrency) => {
    const settings = { ttft: 20, itl: 5, jitter: 0.3, tokens: TOKENS };
    const ours: Errors[] = [];
    const theirs: Errors[] = [];
    let last: Loaded;
    beforeAll(async () => {
      for (let round = 0; round < ROUNDS; round++) {
        await server.configure({ ...settings, seed: round });
        last = await load(concurrency);
        ours.push(errorsOf(last.log, last.seen, last.report));
        await server.configure({ ...settings, seed: round });
        theirs.push(await undici(concurrency));
      }
    });

    it.each(['ttft', 'ttftP90', 'itl'] as const)(
      'is no further from the truth than undici: %s',
      (name) => {
        const of = (all: readonly Errors[]): Seconds => Math.min(...all.map((one) => one[name]));
        expect(of(ours)).toBeLessThanOrEqual(Math.max(RIGHT, RATIO * of(theirs)));
      },
    );

    it('counts every request and every token that the server answered', () => {
      const { report, log, seen, run: ended } = last;
      const whole = answered(log);
      expect(CODES).toContain(ended.code);
      expect(report.requests).toMatchObject({ failed: 0, errors: {} });
      expect(report.requests.ok + report.requests.warmup).toBe(whole.length);
      expect(report.requests.ok).toBe(seen.length);
      expect(matched(log, seen)).toHaveLength(seen.length);
      expect(report.outputTokens).toBe(seen.length * TOKENS);
    });
  });

  it('finds every failure, by its class', async () => {
    await server.configure({
      ttft: 5,
      itl: 1,
      tokens: 8,
      internalErrorEvery: 11,
      rateLimitEvery: 7,
      retryAfter: 1,
      cutEvery: 13,
      errorEventEvery: 17,
    });
    const { run: ended, report, log } = await load(32);
    const { requests } = report;
    const failed = (outcome: string): number =>
      log.requests.filter((request) => request.outcome === outcome).length;
    expect(ended.code).not.toBe(0);
    // The warm-up's are not told apart by class.
    const measured = log.requests.length - requests.warmup;
    expect(requests.ok + requests.failed).toBe(measured);
    expect(Object.keys(requests.errors).toSorted()).toEqual([
      'cut',
      'error_event',
      'http.429',
      'http.5xx',
    ]);
    for (const [name, outcome] of [
      ['http.5xx', 'internal-error'],
      ['http.429', 'rate-limited'],
      ['cut', 'cut'],
      ['error_event', 'error-event'],
    ] as const) {
      expect(requests.errors[name]).toBeLessThanOrEqual(failed(outcome));
      expect(requests.errors[name]).toBeGreaterThanOrEqual(failed(outcome) - requests.warmup);
    }
  });
});
