import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { median } from '../../src/core/statistics.ts';
import { milliseconds, publish, table } from '../bench/measurements.ts';
import { vllmServer } from '../servers/install.ts';
import {
  BUILD_LIMIT_MS,
  type Jaeger,
  jaegerProgram,
  spansOf,
  startJaeger,
} from '../servers/jaeger/jaeger.ts';
import type { Server } from '../servers/servers.ts';
import { startVllm, VLLM_MODEL } from '../servers/vllm.ts';
import type { FindingDocument } from './cli.ts';
import {
  DONE,
  expectRestartSeen,
  load,
  type Loaded,
  metric,
  removeRequestLogs,
  throughRestart,
  TOKENS,
} from './loading.ts';

/*
 * `trace load` against a real vLLM on the CPU, beside its own `vllm bench serve`: `npm run test:vllm`. 6 GB to install, so .ci/run leaves it out;
 * what the two said goes to docs/benchmarks.md.
 */

const run = promisify(execFile);
const RATE = 8;
const REQUESTS = 48;
const ROUNDS = 3;
/** Half of the runs were valid on two cores with a load of nine: 24 give three but for bad luck. */
const MOST_TRIES = 24;
const OUTPUT = 32;
/**
 * A round took 29 s on two cores with a load of ten, since `vllm bench serve` loads vLLM each time;
 * with a load of thirty, three took more than two minutes.
 */
const COMPARISON_LIMIT_MS = 600_000;
const START_LIMIT_MS = 60 * 60_000;
/** Seconds that a run goes on for while the server starts again: a minute on a quiet machine. */
const RESTART_LIMIT_S = 600;
/** An address of its own leaves the default ports of 127.0.0.1 alone. */
const HOST = `127.86.${process.pid % 250}.1`;

const folder = mkdtempSync(join(tmpdir(), 'trace-vllm-'));
let jaeger: Jaeger;
let server: Server;

beforeAll(async () => {
  await vllmServer();
  await jaegerProgram();
  jaeger = await startJaeger(HOST, join(folder, 'data'));
  server = await startVllm(`http://${HOST}:4318/v1/traces`);
}, START_LIMIT_MS + BUILD_LIMIT_MS);

afterAll(async () => {
  await server.stop();
  await jaeger.stop('SIGKILL');
  removeRequestLogs();
  rmSync(folder, { recursive: true, force: true });
});

/** Words that the tokenizer has, as many as `vllm bench serve` makes up. */
function prompts(): string {
  const path = join(folder, 'prompts.jsonl');
  const words = ['line', 'fine', 'mile', 'bite', 'gale', 'date', 'lane', 'ride'];
  const lines = Array.from({ length: 64 }, (_, i) => {
    const text = Array.from({ length: 60 }, (__, j) => words[(i * 7 + j * (1 + (i % 5))) % 8]);
    return JSON.stringify({ prompt: text.join(' ') });
  });
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

const poisson = ['-r', String(RATE), '--burstiness', '1', '--osl', String(OUTPUT), '--ignore-eos'];

interface Compared {
  readonly ttft: number;
  readonly ttft99: number;
  readonly tpot: number;
  readonly itl: number;
  readonly e2e: number;
  /** Mean time to the first token: its own, and of the server over the same requests. */
  readonly mean: number;
  readonly servers: number;
}

/** What the server counted of requests meanwhile. */
async function serverMean(during: () => Promise<unknown>): Promise<{ mean: number; n: number }> {
  const read = (what: string): Promise<number> =>
    metric(server.port, `vllm:time_to_first_token_seconds_${what}`);
  const [sum, n] = [await read('sum'), await read('count')];
  await during();
  const counted = (await read('count')) - n;
  return { mean: ((await read('sum')) - sum) / counted, n: counted };
}

/** What to look at where there should be none. */
function findingsOf(stdout: string): string {
  const { findings } = JSON.parse(stdout) as { findings: readonly FindingDocument[] };
  return findings.map(({ code, summary }) => `${code}: ${summary}`).join('\n');
}

/** Null of a run that says itself that it was the limit: its times are not the server's. */
async function ours(): Promise<Compared | null> {
  let loaded: Loaded | null = null;
  const data = ['--dataset', prompts()];
  const { mean, n } = await serverMean(async () => {
    loaded = await load(server.port, ...data, ...poisson, '-n', String(REQUESTS));
  });
  const { log, run: ended } = loaded as unknown as Loaded;
  // 1 would be a finding, and a server that answers in a tenth of a second is not full here.
  expect(DONE, findingsOf(ended.stdout)).toContain(ended.code);
  expect(n).toBe(log.length);
  if (ended.code !== 0) return null;
  const { latency } = (
    JSON.parse(ended.stdout) as {
      load: { latency: Record<string, { p50_s: number; p99_s: number }> };
    }
  ).load;
  const of = (name: string): { p50_s: number; p99_s: number } =>
    latency[name] ?? { p50_s: Number.NaN, p99_s: Number.NaN };
  const total = log.reduce((sum, { ttft_s: ttft }) => sum + (ttft ?? 0), 0);
  return {
    ttft: of('ttft').p50_s,
    ttft99: of('ttft').p99_s,
    tpot: of('tpot').p50_s,
    itl: of('itl').p50_s,
    e2e: of('e2e').p50_s,
    mean: total / log.length,
    servers: mean,
  };
}

async function theirs(): Promise<Compared> {
  const { program, model } = await vllmServer();
  const flags = {
    backend: 'openai-chat',
    endpoint: '/v1/chat/completions',
    'base-url': `http://127.0.0.1:${server.port}`,
    model: VLLM_MODEL,
    tokenizer: model,
    'dataset-name': 'random',
    'random-input-len': 64,
    'random-output-len': OUTPUT,
    'num-prompts': REQUESTS,
    'request-rate': RATE,
    'percentile-metrics': 'ttft,tpot,itl,e2el',
    'metric-percentiles': '50,99',
    'result-dir': folder,
    'result-filename': 'bench.json',
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const env = { ...process.env, HF_HUB_OFFLINE: '1', VLLM_TARGET_DEVICE: 'cpu', NO_COLOR: '1' };
  const { mean, n } = await serverMean(() =>
    run(program, ['bench', 'serve', ...args, '--ignore-eos', '--save-result'], {
      env: { ...env, PATH: `${dirname(program)}:${process.env['PATH'] ?? ''}` },
      maxBuffer: 16 * 1024 * 1024,
    }),
  );
  expect(n).toBe(REQUESTS);
  const out = JSON.parse(readFileSync(join(folder, 'bench.json'), 'utf8')) as Record<
    string,
    number
  >;
  const of = (name: string): number => (out[name] ?? Number.NaN) / 1e3;
  return {
    ttft: of('median_ttft_ms'),
    ttft99: of('p99_ttft_ms'),
    tpot: of('median_tpot_ms'),
    itl: of('median_itl_ms'),
    e2e: of('median_e2el_ms'),
    mean: of('mean_ttft_ms'),
    servers: mean,
  };
}

describe('vLLM', () => {
  it('answers with streaming and without, and counts tokens as we do', async () => {
    const before = await metric(server.port, 'vllm:generation_tokens_total');
    const streamed = await load(server.port, '-n', '16', '-c', '4', '--ignore-eos');
    const whole = await load(server.port, '-n', '8', '-c', '4', '--ignore-eos', '--no-stream');
    for (const { run: ended, report, log } of [streamed, whole]) {
      expect(DONE).toContain(ended.code);
      expect(report.requests.failed).toBe(0);
      for (const { output_tokens: tokens } of log) expect(tokens).toBe(TOKENS);
    }
    const after = await metric(server.port, 'vllm:generation_tokens_total');
    expect(after - before).toBe((streamed.log.length + whole.log.length) * TOKENS);
  });

  it('refuses a prompt that is too long with 400, an unknown model with 404', async () => {
    const tooLong = await load(server.port, '-n', '3', '-c', '1', '--isl', '6000');
    expect(tooLong.report.requests.statuses).toEqual({ 400: 3 });
    const unknown = await load(server.port, '-n', '3', '-c', '1', '-m', 'nobody');
    expect(unknown.report.requests.statuses).toEqual({ 404: 3 });
  });

  it('hangs its spans below ours, in Jaeger', async () => {
    const otlp = ['--otlp-endpoint', `http://${HOST}:4318`];
    const { run: ended } = await load(server.port, '-n', '8', '-c', '2', '--ignore-eos', ...otlp);
    const { trace_id: traceId } = JSON.parse(ended.stdout) as { trace_id: string };
    const spans = await spansOf(jaeger, traceId, { service: 'vllm', atLeast: 8 });
    const ownIds = new Set(spans.filter((one) => one.service !== 'vllm').map(({ id }) => id));
    const servers = spans.filter(({ service }) => service === 'vllm');
    expect(servers.length).toBeGreaterThanOrEqual(8);
    for (const { name, parent } of servers) {
      expect(name).toBe('llm_request');
      expect(ownIds).toContain(parent);
    }
  });

  it(
    'beside its own vllm bench serve',
    async () => {
      const rows = { 'trace load': [] as Compared[], 'vllm bench serve': [] as Compared[] };
      let tries = 0;
      while (rows['trace load'].length < ROUNDS) {
        expect(tries, 'valid runs: the machine is too busy').toBeLessThan(MOST_TRIES);
        tries += 1;
        const valid = await ours();
        if (valid === null) continue;
        rows['trace load'].push(valid);
        rows['vllm bench serve'].push(await theirs());
      }
      const lines = Object.entries(rows).map(([tool, some]) => {
        const of = (name: keyof Compared): string =>
          milliseconds(median(some.map((row) => row[name])), 2);
        const names = ['ttft', 'ttft99', 'tpot', 'itl', 'e2e', 'mean', 'servers'] as const;
        return [tool, ...names.map((name) => of(name)), String(some.length)];
      });
      const head = [
        'tool',
        'TTFT p50',
        'TTFT p99',
        'TPOT p50',
        'ITL p50',
        'E2E p50',
        'TTFT, mean',
        "vLLM's own mean of the same requests",
        'n',
      ];
      const text = `vLLM 0.32 on the CPU with a model of random weights; ${REQUESTS} requests a round at ${RATE} a second (Poisson), about 64 tokens in and ${OUTPUT} out, the two tools in turn; medians of the rounds. Of ${tries} runs of trace load ${tries - ROUNDS} said that the client was the limit and were left out. The prompts are of the same length but not the same; \`vllm bench serve\` is a process that has loaded vLLM.`;
      publish('Load: vLLM on the CPU', `${text}\n\n${table(head, lines)}`, 'benchmarks.md');
      const [of] = [(some: readonly Compared[]) => median(some.map(({ mean }) => mean))];
      expect(of(rows['trace load'])).toBeLessThan(2 * of(rows['vllm bench serve']));
    },
    COMPARISON_LIMIT_MS,
  );

  it('is killed in the middle of a run: what was cut and what was refused', async () => {
    const answered = (): Promise<number> => metric(server.port, 'vllm:request_success_total');
    const before = await answered();
    const running = load(server.port, '-c', '4', '-d', '30s', '--drain', '2s', '--osl', '64');
    // The warm-up, and a round of the four.
    while ((await answered()) < before + 6) await sleep(100);
    await server.stop();
    const { run: ended, report, log } = await running;
    expect(ended.code).not.toBe(0);
    expect(log.some(({ error }) => error === null)).toBe(true);
    expect(report.requests.errors).toMatchObject({ refused: expect.any(Number) as number });
    expect(['cut', 'refused', 'reset']).toEqual(
      expect.arrayContaining(Object.keys(report.requests.errors)),
    );
  });

  it(
    'is killed in the middle of a run and started again: both are in the result',
    async () => {
      const loaded = await throughRestart((port) => startVllm(null, port), RESTART_LIMIT_S);
      expectRestartSeen(loaded);
    },
    (RESTART_LIMIT_S + 600) * 1e3,
  );
});
