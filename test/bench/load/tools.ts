import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Figures, Quantiles, SeenRequest } from '../../load/truth-server/compare.ts';
import type { LoadPeers } from './install.ts';
import type { Scenario } from './scenarios.ts';

/** A run of a tool. */
export interface Asked {
  readonly scenario: Scenario;
  /** Of the server, without a path. */
  readonly url: string;
  /** Empty, for its output. */
  readonly folder: string;
}

/** What a tool reported of a run. */
export interface Reported extends Figures {
  /** The requests that it measured; null when it does not say. */
  readonly seen: readonly SeenRequest[] | null;
  /** Warm-up requests that came first and are in none of its figures. */
  readonly warmup: number;
  readonly failed: number | null;
  /** How late it sent, in its own words (open loop). */
  readonly lateness: Quantiles | null;
}

/** A load generator as it is measured here. */
export interface LoadTool {
  readonly name: string;
  /** Whether it has this scenario. */
  readonly can: (scenario: Scenario) => boolean;
  command(asked: Asked): {
    readonly command: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  };
  reported(asked: Asked, stdout: string): Reported;
}

const HERE = import.meta.dirname;
const OFFLINE = { HF_HUB_OFFLINE: '1', TRANSFORMERS_OFFLINE: '1', DO_NOT_TRACK: '1' };
const nothing = { seen: null, warmup: 0, failed: null, lateness: null } as const;
const MILLISECOND = 1e-3;

/** Concurrency, or for an open loop a number that is never reached. */
export const concurrencyOf = ({ load }: Scenario): number =>
  load.kind === 'closed' ? load.concurrency : 200;
const isClosed = ({ load }: Scenario): boolean => load.kind === 'closed';
const isPoisson = ({ load }: Scenario): boolean => load.kind === 'open' && load.poisson;

/** Tools that do a tenth of the others' work in a second show in these what they do in the rest. */
const isForSlowTools = ({ name, load }: Scenario): boolean =>
  load.kind === 'open' || name === '256 streams' || name === '32 streams';

/** The last line of JSON that was printed. */
function printed<T>(stdout: string): T {
  const line = stdout
    .split('\n')
    .map((text) => text.trim())
    .findLast((text) => text.startsWith('{') && text.endsWith('}'));
  if (line === undefined) throw new Error(`no result: ${stdout.slice(-500)}`);
  return JSON.parse(line) as T;
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
const inSeconds = (milliseconds: Quantiles | undefined): Quantiles | null =>
  milliseconds === undefined
    ? null
    : { p50: milliseconds.p50 * MILLISECOND, p99: milliseconds.p99 * MILLISECOND };

/** The plain client of undici's (test/load/clients). */
export const undici: LoadTool = {
  name: 'undici, plain client',
  can: isClosed,
  command({ scenario, url, folder }) {
    const program = join(HERE, '..', '..', 'load', 'clients', 'undici.js');
    const flags = {
      url,
      concurrency: concurrencyOf(scenario),
      seconds: scenario.seconds,
      tokens: scenario.tokens,
      log: join(folder, 'requests.json'),
    };
    return {
      command: [
        process.execPath,
        program,
        ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]),
      ],
    };
  },
  reported({ folder }, stdout) {
    const { failed, ttft, itl } = printed<Figures & { failed: number }>(stdout);
    const seen = readJson(join(folder, 'requests.json')) as SeenRequest[];
    return { ...nothing, ttft, itl, failed, seen };
  },
};

/** The peers that are installed, with a tokenizer in Hugging Face's form for those that want one. */
export function peerTools(peers: LoadPeers, tokenizer: string): readonly LoadTool[] {
  const of = (name: keyof LoadPeers, make: (path: string) => LoadTool): LoadTool[] => {
    const { path } = peers[name];
    return path === null ? [] : [make(path)];
  };
  return [
    ...of('guidellm', (path) => guidellm(path, tokenizer)),
    ...of('aiperf', (path) => aiperf(path, tokenizer)),
    ...of('inference-perf', (path) => inferencePerf(path, tokenizer)),
    ...of('vllm', (path) => vllm(path, peers.vllm.library ?? '')),
    ...of('locust', locust),
    ...of('k6', k6),
  ];
}

function guidellm(path: string, tokenizer: string): LoadTool {
  return {
    name: 'guidellm',
    can: isForSlowTools,
    command({ scenario: { load, seconds }, url, folder }) {
      const prompts = join(folder, 'prompts.jsonl');
      const row = `${JSON.stringify({ prompt: 'word '.repeat(64), output_tokens_count: 64 })}\n`;
      writeFileSync(prompts, row.repeat(50));
      const profile =
        load.kind === 'closed'
          ? `kind=concurrent,streams=${load.concurrency}`
          : `kind=${load.poisson ? 'poisson' : 'constant'},rate=${load.rate}`;
      const options = {
        backend: `kind=openai_http,target=${url},model=truth`,
        profile,
        constraint: `kind=max_duration,seconds=${seconds}`,
        tokenizer: `kind=huggingface_auto,model=${tokenizer}`,
        data: `kind=json_file,path=${prompts}`,
        output: `kind=json,path=${join(folder, 'out.json')}`,
      };
      const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
      return {
        command: [path, 'run', '--disable-progress', ...flags],
        env: { ...OFFLINE, GUIDELLM__MAX_WORKER_PROCESSES: '1' },
      };
    },
    reported({ folder }) {
      type Metric = { successful: { percentiles: Quantiles } };
      const out = readJson(join(folder, 'out.json')) as {
        benchmarks: [{ metrics: { time_to_first_token_ms: Metric } }];
      };
      const { percentiles } = out.benchmarks[0].metrics.time_to_first_token_ms.successful;
      // Its inter-token latency is the mean of each request.
      return { ...nothing, ttft: inSeconds(percentiles), itl: null };
    },
  };
}

/** Warm-up requests of AIPerf: fewer than the streams leave it cold, more take long. */
const AIPERF_WARMUP = 64;

function aiperf(path: string, tokenizer: string): LoadTool {
  const warmup = (scenario: Scenario): number =>
    isClosed(scenario) ? Math.min(concurrencyOf(scenario), AIPERF_WARMUP) : 0;
  return {
    name: 'aiperf',
    can: isForSlowTools,
    command({ scenario, url, folder }) {
      const { load, seconds, tokens } = scenario;
      const arrival =
        load.kind === 'closed'
          ? {
              concurrency: load.concurrency,
              'warmup-request-count': warmup(scenario),
            }
          : {
              'request-rate': load.rate,
              'arrival-pattern': load.poisson ? 'poisson' : 'constant',
            };
      const options = {
        url,
        model: 'truth',
        'endpoint-type': 'chat',
        tokenizer,
        ...arrival,
        'benchmark-duration': seconds,
        'benchmark-grace-period': 3,
        'prompt-input-tokens-mean': 64,
        'prompt-output-tokens-mean': tokens,
        'num-dataset-entries': 50,
        ui: 'none',
        'output-artifact-dir': folder,
      };
      const switches = ['streaming', 'use-server-token-count', 'no-gpu-telemetry'];
      const flags = [
        ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
        ...[...switches, 'no-server-metrics', 'no-auto-plot'].map((name) => `--${name}`),
      ];
      // With HF_HUB_OFFLINE it takes the path of a folder for the name of a repository.
      const env = { PATH: `${dirname(path)}:${process.env['PATH'] ?? ''}` };
      return { command: [path, 'profile', ...flags], env };
    },
    reported({ folder, scenario }) {
      const out = readJson(join(folder, 'profile_export_aiperf.json')) as {
        time_to_first_token?: Quantiles;
        inter_chunk_latency?: Quantiles;
      };
      return {
        ...nothing,
        ttft: inSeconds(out.time_to_first_token),
        itl: inSeconds(out.inter_chunk_latency),
        warmup: warmup(scenario),
      };
    },
  };
}

/** It stops by a number of requests: what it gets done in about the same time, from a first look. */
const INFERENCE_PERF_REQUESTS = { few: 500, many: 1200 } as const;

function inferencePerf(path: string, tokenizer: string): LoadTool {
  return {
    name: 'inference-perf',
    can: (scenario) => isForSlowTools(scenario) || scenario.name === '1,024 fast streams',
    command({ scenario, url, folder }) {
      const { load, seconds, tokens } = scenario;
      const requests = concurrencyOf(scenario) > 32 ? 'many' : 'few';
      const stages =
        load.kind === 'closed'
          ? {
              type: 'concurrent',
              stages: [
                {
                  num_requests: INFERENCE_PERF_REQUESTS[requests],
                  concurrency_level: load.concurrency,
                },
              ],
            }
          : {
              type: load.poisson ? 'poisson' : 'constant',
              stages: [{ rate: load.rate, duration: seconds }],
            };
      const length = (n: number): object => ({
        min: n,
        max: n,
        mean: n,
        std_dev: 0,
        total_count: 50,
      });
      const configuration = {
        api: { type: 'completion', streaming: true },
        data: {
          type: 'random',
          input_distribution: length(64),
          output_distribution: length(tokens),
        },
        load: { ...stages, num_workers: 1, worker_max_concurrency: 2000, interval: 0.1 },
        server: { type: 'vllm', model_name: 'truth', base_url: url, ignore_eos: true },
        tokenizer: { pretrained_model_name_or_path: tokenizer },
        report: { request_lifecycle: { summary: true, per_stage: false, per_request: false } },
        storage: { local_storage: { path: join(folder, 'out') } },
      };
      // JSON is YAML.
      writeFileSync(join(folder, 'config.yml'), JSON.stringify(configuration));
      return { command: [path, '-c', join(folder, 'config.yml')], env: OFFLINE };
    },
    reported({ folder }) {
      type Metric = { median: number; p99: number } | null;
      const { latency } = (
        readJson(join(folder, 'out', 'summary_lifecycle_metrics.json')) as {
          successes: { latency: Record<string, Metric | undefined> };
        }
      ).successes;
      const figure = (name: string): Quantiles | null => {
        const metric = latency[name] ?? null;
        return metric === null ? null : { p50: metric.median, p99: metric.p99 };
      };
      const [ttft, itl] = ['time_to_first_token', 'inter_token_latency'].map((name) =>
        figure(name),
      );
      return { ...nothing, ttft: ttft ?? null, itl: itl ?? null };
    },
  };
}

const ofStdout = (_asked: Asked, stdout: string): Reported => ({
  ...nothing,
  ...printed<Figures & { failed: number }>(stdout),
});

/** Its arrivals are not vLLM's own, so it has the closed loops only. */
const vllm = (python: string, library: string): LoadTool => ({
  name: "vLLM's request function",
  can: isClosed,
  command({ scenario, url }) {
    const numbers = [concurrencyOf(scenario), scenario.seconds, scenario.tokens].map(String);
    return {
      command: [python, join(HERE, 'clients', 'vllm_request.py'), library, url, ...numbers],
    };
  },
  reported: ofStdout,
});

const locust = (path: string): LoadTool => ({
  name: 'locust, script of ours',
  can: isClosed,
  command({ scenario, url }) {
    const users = concurrencyOf(scenario);
    const flags = ['--headless', '--only-summary', '-H', url, '-u', String(users)];
    const script = ['-f', join(HERE, 'clients', 'locustfile.py')];
    return {
      command: [
        path,
        ...script,
        ...flags,
        '-r',
        String(2 * users),
        '-t',
        `${scenario.seconds + 1}s`,
      ],
      env: { BENCH_TOKENS: String(scenario.tokens) },
    };
  },
  reported: ofStdout,
});

const k6 = (path: string): LoadTool => ({
  name: 'k6, body discarded',
  can: (scenario) => !isPoisson(scenario),
  command({ scenario, url }) {
    const { load, seconds, tokens } = scenario;
    return {
      command: [path, 'run', '-q', join(HERE, 'clients', 'k6.js')],
      env: {
        GOMAXPROCS: '1',
        K6_NO_USAGE_REPORT: 'true',
        URL: url,
        TOKENS: String(tokens),
        SECONDS: String(seconds),
        ...(load.kind === 'open'
          ? { RATE: String(load.rate) }
          : { CONCURRENCY: String(load.concurrency) }),
      },
    };
  },
  reported: ofStdout,
});
