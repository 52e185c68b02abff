import type { Metric } from './types.ts';

/** What inference servers publish, under one name each; their own names are recorded beside. The meaning of the rest comes later. */

export type ServerMetricKey = 'running' | 'waiting' | 'kvUsage' | 'inputTokens' | 'outputTokens';

export const SERVER_METRIC: Readonly<Record<ServerMetricKey, Metric>> = {
  running: {
    name: 'tracewright.server.requests.running',
    unit: '{request}',
    instrument: 'gauge',
    description: 'requests that the server works on, as it says',
  },
  waiting: {
    name: 'tracewright.server.requests.waiting',
    unit: '{request}',
    instrument: 'gauge',
    description: 'requests in the queue of the server, as it says',
  },
  kvUsage: {
    name: 'tracewright.server.kv_cache.utilization',
    unit: '1',
    instrument: 'gauge',
    description: 'share of the KV cache in use, of the fullest engine',
  },
  inputTokens: {
    name: 'tracewright.server.tokens.input',
    unit: '{token}',
    instrument: 'counter',
    description: 'prompt tokens so far, as the server counts them',
  },
  outputTokens: {
    name: 'tracewright.server.tokens.output',
    unit: '{token}',
    instrument: 'counter',
    description: 'generated tokens so far, as the server counts them',
  },
};

/** An inference engine by the names on its page. */
export interface EngineNames {
  /** As `gen_ai.provider.name` has it. */
  readonly engine: string;
  /** What its own metrics begin with. */
  readonly prefix: string;
  /** The names of a metric in its versions, newest first. */
  readonly names: Readonly<Record<ServerMetricKey, readonly string[]>>;
}

/** Dynamo before the engines it runs: its frontend is what answers. */
const ENGINES: readonly EngineNames[] = [
  {
    engine: 'dynamo',
    prefix: 'dynamo_',
    names: {
      running: ['dynamo_frontend_inflight_requests'],
      waiting: ['dynamo_frontend_queued_requests'],
      kvUsage: ['dynamo_component_kvstats_gpu_cache_usage_percent'],
      inputTokens: ['dynamo_frontend_input_sequence_tokens_sum'],
      outputTokens: [
        'dynamo_frontend_output_tokens_total',
        'dynamo_frontend_output_sequence_tokens_sum',
      ],
    },
  },
  {
    engine: 'vllm',
    prefix: 'vllm:',
    names: {
      running: ['vllm:num_requests_running'],
      waiting: ['vllm:num_requests_waiting'],
      // A share from 0 to 1, whatever it is called.
      kvUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
      inputTokens: ['vllm:prompt_tokens_total'],
      outputTokens: ['vllm:generation_tokens_total'],
    },
  },
  {
    engine: 'sglang',
    prefix: 'sglang:',
    names: {
      running: ['sglang:num_running_reqs'],
      waiting: ['sglang:num_queue_reqs'],
      kvUsage: ['sglang:token_usage'],
      inputTokens: ['sglang:prompt_tokens_total'],
      outputTokens: ['sglang:generation_tokens_total'],
    },
  },
  {
    engine: 'llama_cpp',
    prefix: 'llamacpp:',
    names: {
      running: ['llamacpp:requests_processing'],
      waiting: ['llamacpp:requests_deferred'],
      kvUsage: ['llamacpp:kv_cache_usage_ratio'],
      inputTokens: ['llamacpp:prompt_tokens_total'],
      outputTokens: ['llamacpp:tokens_predicted_total'],
    },
  },
];

/** Which engine publishes these names; null when none of those we know. */
export function engineOf(names: readonly string[]): EngineNames | null {
  return ENGINES.find(({ prefix }) => names.some((name) => name.startsWith(prefix))) ?? null;
}
