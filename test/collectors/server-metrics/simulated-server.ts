import { PageReadings, metricsOf } from '../../../collectors/server-metrics/page-samples.ts';
import type {
  Metric,
  Observation,
  RecordingView,
  RunStart,
  Seconds,
} from '../../../src/core/types.ts';
import { parsePage } from '../../../src/platform/prometheus.ts';
import { memoryRecording } from '../../../src/recording/memory.ts';

/** A server in numbers: what vLLM's page would say of it, second by second, through the parser and the names into a recording. */
export interface ServerState {
  readonly engine?: string;
  readonly running?: number;
  readonly waiting?: number;
  readonly kvUsage?: number;
  readonly preemptions?: number;
  readonly promptTokens?: number;
  readonly tokens?: number;
  readonly finished?: number;
  readonly steps?: number;
  /** Times of all requests so far, in seconds. */
  readonly ttft?: readonly number[];
  readonly itl?: readonly number[];
  readonly queueTime?: readonly number[];
}

const BOUNDS = {
  // As vLLM has them, shortened.
  'vllm:time_to_first_token_seconds': [0.1, 0.25, 0.5, 1, 2.5, 10, 80],
  'vllm:inter_token_latency_seconds': [0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
  'vllm:request_queue_time_seconds': [0.3, 0.5, 1, 2.5, 10],
} as const;

export function vllmPage(engines: readonly ServerState[]): string {
  const lines: string[] = [];
  const write = (name: string, type: string, of: (state: ServerState) => number | undefined) => {
    lines.push(`# TYPE ${name} ${type}`);
    for (const state of engines) {
      const value = of(state);
      if (value !== undefined) lines.push(`${name}{engine="${state.engine ?? '0'}"} ${value}`);
    }
  };
  write('vllm:num_requests_running', 'gauge', ({ running = 0 }) => running);
  write('vllm:num_requests_waiting', 'gauge', ({ waiting }) => waiting);
  write('vllm:kv_cache_usage_perc', 'gauge', ({ kvUsage }) => kvUsage);
  write('vllm:num_preemptions_total', 'counter', ({ preemptions }) => preemptions);
  write('vllm:prompt_tokens_total', 'counter', ({ promptTokens }) => promptTokens);
  write('vllm:generation_tokens_total', 'counter', ({ tokens }) => tokens);
  write('vllm:request_success_total', 'counter', ({ finished }) => finished);
  write('vllm:iteration_tokens_total_count', 'counter', ({ steps }) => steps);
  for (const state of engines) {
    const of = { ttft: state.ttft, itl: state.itl, queueTime: state.queueTime };
    for (const [i, [name, bounds]] of Object.entries(BOUNDS).entries()) {
      const values = Object.values(of)[i];
      if (values !== undefined) lines.push(...histogram(name, bounds, values, state.engine ?? '0'));
    }
  }
  return `${lines.join('\n')}\n`;
}

function histogram(
  name: string,
  bounds: readonly number[],
  values: readonly number[],
  engine: string,
): readonly string[] {
  const below = (bound: number): number => values.filter((value) => value <= bound).length;
  return [
    `# TYPE ${name} histogram`,
    ...bounds.map((bound) => `${name}_bucket{engine="${engine}",le="${bound}"} ${below(bound)}`),
    `${name}_bucket{engine="${engine}",le="+Inf"} ${values.length}`,
    `${name}_count{engine="${engine}"} ${values.length}`,
    `${name}_sum{engine="${engine}"} ${values.reduce((sum, one) => sum + one, 0)}`,
  ];
}

/** What is read of a server of so many seconds, one page a second. */
export function observeServer(
  startedAt: Seconds,
  seconds: number,
  at: (second: number) => ServerState | readonly ServerState[],
): { readonly observations: readonly Observation[]; readonly metrics: readonly Metric[] } {
  const readings = new PageReadings({ 'server.address': '127.0.0.1', 'server.port': 8000 });
  const observations: Observation[] = [];
  const metrics: Metric[] = [];
  for (let second = 0; second <= seconds; second++) {
    const page = parsePage(vllmPage([at(second)].flat()));
    const isEdge = second === 0 || second === seconds;
    observations.push(...readings.samples(page, startedAt + second, isEdge));
    metrics.push(...metricsOf(page));
  }
  return { observations, metrics };
}

/** What a run of so many seconds would have recorded. */
export function recordServer(
  start: RunStart,
  seconds: number,
  at: (second: number) => ServerState | readonly ServerState[],
  others: readonly Observation[] = [],
): RecordingView {
  const { observations, metrics } = observeServer(start.startedAt, seconds, at);
  const recording = memoryRecording(start, { metrics });
  for (const observation of [...others, ...observations]) recording.write(observation);
  return recording.view({
    endedAt: start.startedAt + seconds,
    interrupted: false,
    reason: 'duration',
    ownCpuRatio: 0,
    startupCpu: 0,
    targetPaused: 0,
    samples: 0,
    late: 0,
    dropped: 0,
  });
}
