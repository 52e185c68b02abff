import type { ServerMetricKey } from './semconv-server.ts';

/**
 * What each inference server calls what, by version. Names are written as in `canonical`: with `_` for `:`, without what a gateway puts before
 * them, counters without `_total`. Read from the servers' own sources (vLLM 0.4 to 0.32, SGLang 0.4 to 0.5, Dynamo 0.3 to 1.6, TensorRT-LLM 1.0 to
 * 1.3, Triton 2.50, llama.cpp to b10434, TGI 1 to 3, LMDeploy 0.9).
 */

/** Histograms in seconds, where a server has them. */
export type ServerHistogramKey = 'ttft' | 'itl' | 'e2e' | 'queueTime' | 'prefillTime';

/** One name, newest first in a list of them. */
export interface NameInUse {
  readonly name: string;
  /** Only series with these labels. */
  readonly where?: Readonly<Record<string, string>>;
  /** What a value is multiplied with to be in base units. */
  readonly scale?: number;
  /** Counted when a request is over: stands still while a long one runs. */
  readonly atEnd?: boolean;
}

type Names = readonly (string | NameInUse)[];

/** An inference engine by the names on its page. */
export interface ServerNames {
  /** As `gen_ai.provider.name` has it. */
  readonly engine: string;
  /** As people write it. */
  readonly title: string;
  readonly prefix: string;
  readonly metrics: Readonly<Partial<Record<ServerMetricKey, Names>>>;
  readonly histograms: Readonly<Partial<Record<ServerHistogramKey, Names>>>;
}

const atEnd = (name: string): NameInUse => ({ name, atEnd: true });

/** What the series of a histogram end with. */
const PARTS = ['_bucket', '_sum', '_count'] as const;

/** In the order in which they are believed: Dynamo's frontend, which is what answers, before the engines it runs. */
export const SERVERS: readonly ServerNames[] = [
  {
    engine: 'dynamo',
    title: 'Dynamo',
    prefix: 'dynamo_',
    metrics: {
      // Waiting is before the first token, which is in flight, too.
      running: ['dynamo_frontend_inflight_requests', 'nv_llm_http_service_inflight_requests'],
      waiting: ['dynamo_frontend_queued_requests'],
      // A share from 0 to 1, whatever it is called.
      kvUsage: [
        'dynamo_component_gpu_cache_usage_percent',
        'dynamo_component_kvstats_gpu_cache_usage_percent',
      ],
      inputTokens: ['dynamo_frontend_input_sequence_tokens_sum'],
      outputTokens: [
        'dynamo_frontend_output_tokens',
        atEnd('dynamo_frontend_output_sequence_tokens_sum'),
      ],
      finished: ['dynamo_frontend_requests', 'nv_llm_http_service_requests'],
    },
    histograms: {
      ttft: ['dynamo_frontend_time_to_first_token_seconds'],
      itl: ['dynamo_frontend_inter_token_latency_seconds'],
      e2e: ['dynamo_frontend_request_duration_seconds'],
    },
  },
  {
    engine: 'vllm',
    title: 'vLLM',
    prefix: 'vllm_',
    metrics: {
      running: ['vllm_num_requests_running'],
      waiting: ['vllm_num_requests_waiting'],
      kvUsage: ['vllm_kv_cache_usage_perc', 'vllm_gpu_cache_usage_perc'],
      preemptions: ['vllm_num_preemptions'],
      inputTokens: ['vllm_prompt_tokens'],
      outputTokens: ['vllm_generation_tokens'],
      finished: ['vllm_request_success'],
      // A histogram in spite of its name.
      steps: ['vllm_iteration_tokens_total_count'],
    },
    histograms: {
      ttft: ['vllm_time_to_first_token_seconds'],
      itl: ['vllm_inter_token_latency_seconds', 'vllm_time_per_output_token_seconds'],
      e2e: ['vllm_e2e_request_latency_seconds'],
      queueTime: ['vllm_request_queue_time_seconds', 'vllm_time_in_queue_requests'],
      prefillTime: ['vllm_request_prefill_time_seconds'],
    },
  },
  {
    engine: 'sglang',
    title: 'SGLang',
    prefix: 'sglang_',
    metrics: {
      running: ['sglang_num_running_reqs'],
      waiting: ['sglang_num_queue_reqs'],
      kvUsage: ['sglang_token_usage'],
      // Its older sglang:num_retracted_reqs is a gauge of the last step, and no count.
      preemptions: ['sglang_num_retracted_requests'],
      inputTokens: [
        { name: 'sglang_realtime_tokens', where: { mode: 'prefill_compute' } },
        atEnd('sglang_prompt_tokens'),
      ],
      outputTokens: [
        { name: 'sglang_realtime_tokens', where: { mode: 'decode' } },
        atEnd('sglang_generation_tokens'),
      ],
      finished: ['sglang_num_requests'],
      steps: ['sglang_cuda_graph_passes'],
    },
    histograms: {
      ttft: ['sglang_time_to_first_token_seconds'],
      itl: ['sglang_inter_token_latency_seconds', 'sglang_time_per_output_token_seconds'],
      e2e: ['sglang_e2e_request_latency_seconds'],
      queueTime: ['sglang_queue_time_seconds'],
    },
  },
  {
    engine: 'tensorrt_llm',
    title: 'TensorRT-LLM',
    prefix: 'trtllm_',
    metrics: {
      running: ['trtllm_num_requests_running'],
      waiting: ['trtllm_num_requests_waiting'],
      kvUsage: ['trtllm_kv_cache_utilization'],
      inputTokens: [atEnd('trtllm_prompt_tokens')],
      outputTokens: [atEnd('trtllm_generation_tokens')],
      finished: ['trtllm_request_success'],
    },
    histograms: {
      ttft: ['trtllm_time_to_first_token_seconds'],
      itl: ['trtllm_time_per_output_token_seconds'],
      e2e: ['trtllm_e2e_request_latency_seconds'],
      queueTime: ['trtllm_request_queue_time_seconds'],
      prefillTime: ['trtllm_request_prefill_time_seconds'],
    },
  },
  {
    engine: 'llama_cpp',
    title: 'llama.cpp',
    prefix: 'llamacpp_',
    metrics: {
      running: ['llamacpp_requests_processing'],
      waiting: ['llamacpp_requests_deferred'],
      // Gone since the middle of 2025.
      kvUsage: ['llamacpp_kv_cache_usage_ratio'],
      inputTokens: ['llamacpp_prompt_tokens'],
      outputTokens: [atEnd('llamacpp_tokens_predicted')],
      steps: ['llamacpp_n_decode'],
    },
    histograms: {},
  },
  {
    engine: 'tgi',
    title: 'TGI',
    prefix: 'tgi_',
    metrics: {
      running: ['tgi_batch_current_size'],
      waiting: ['tgi_queue_size'],
      inputTokens: [atEnd('tgi_request_input_length_sum')],
      outputTokens: [atEnd('tgi_request_generated_tokens_sum')],
      finished: ['tgi_request_success'],
      steps: ['tgi_batch_inference_count'],
    },
    histograms: {
      // No time to the first token; the mean of each request, in which its prefill is, is no ITL.
      e2e: ['tgi_request_duration'],
      queueTime: ['tgi_request_queue_duration'],
    },
  },
  {
    engine: 'lmdeploy',
    title: 'LMDeploy',
    prefix: 'lmdeploy_',
    metrics: {
      running: ['lmdeploy_num_requests_running'],
      waiting: ['lmdeploy_num_requests_waiting'],
      kvUsage: ['lmdeploy_gpu_cache_usage_perc'],
      inputTokens: ['lmdeploy_prompt_tokens'],
      outputTokens: ['lmdeploy_generation_tokens'],
      finished: ['lmdeploy_request_success'],
      steps: ['lmdeploy_iteration_tokens_total_count'],
    },
    histograms: {
      ttft: ['lmdeploy_time_to_first_token_seconds'],
      itl: ['lmdeploy_inter_token_latency_seconds'],
      e2e: ['lmdeploy_e2e_request_latency_seconds'],
      queueTime: ['lmdeploy_request_queue_time_seconds'],
    },
  },
  {
    engine: 'triton',
    title: 'Triton',
    prefix: 'nv_',
    metrics: {
      running: [{ name: 'nv_trt_llm_request_metrics', where: { request_type: 'scheduled' } }],
      waiting: [
        { name: 'nv_trt_llm_request_metrics', where: { request_type: 'waiting' } },
        'nv_inference_pending_request_count',
      ],
      kvUsage: [
        { name: 'nv_trt_llm_kv_cache_block_metrics', where: { kv_cache_block_type: 'fraction' } },
      ],
      finished: ['nv_inference_request_success'],
      steps: ['nv_inference_exec_count'],
    },
    histograms: { ttft: [{ name: 'nv_inference_first_response_histogram_ms', scale: 1e-3 }] },
  },
];

/** A page's name as the table has it: Ray Serve and KServe put their own before it, and gateways write `_` for `:`. */
export function canonical(name: string): string {
  return name.replace(/^(?:ray|kserve)_(?=vllm|sglang)/, '').replace(':', '_');
}

/** The servers whose names these are (canonical), in the order in which they are believed; empty when none of those we know. */
export function serversOn(names: ReadonlySet<string>): readonly ServerNames[] {
  return SERVERS.filter(
    ({ prefix, metrics, histograms }) =>
      [...names].some((name) => name.startsWith(prefix)) &&
      // A prefix as short as Triton's is others' too.
      (prefix.length > 3 ||
        [...Object.values(metrics), ...Object.values(histograms)]
          .flat()
          .some((one) => suffixed(inUse(one).name).some((name) => names.has(name)))),
  );
}

/** A counter with the suffix that its format asks for, and without. */
function suffixed(name: string): readonly [string, string] {
  return [`${name}_total`, name];
}

function inUse(name: string | NameInUse): NameInUse {
  return typeof name === 'string' ? { name } : name;
}

/** A name of the table with the page's own spelling of it. */
export interface FoundName extends NameInUse {
  /** Canonical, with the suffix that the page has. */
  readonly found: string;
}

/** The name under which a page has a number, the first that it has; null when it has none. `names` are canonical. */
export function nameOf(
  servers: readonly ServerNames[],
  key: ServerMetricKey,
  has: (name: string, where: NameInUse['where']) => boolean,
): FoundName | null {
  for (const { metrics } of servers) {
    for (const one of metrics[key] ?? []) {
      const wanted = inUse(one);
      const found = suffixed(wanted.name).find((name) => has(name, wanted.where));
      if (found !== undefined) return { ...wanted, found };
    }
  }
  return null;
}

/** The histogram (without `_bucket`) that a page has of a time, the first of those in the table. `names` are canonical. */
export function histogramOf(
  servers: readonly ServerNames[],
  key: ServerHistogramKey,
  names: ReadonlySet<string>,
): NameInUse | null {
  for (const { histograms } of servers) {
    for (const one of histograms[key] ?? []) {
      const wanted = inUse(one);
      if (names.has(`${wanted.name}_count`)) return wanted;
    }
  }
  return null;
}

const NAMED: ReadonlySet<string> = new Set(
  SERVERS.flatMap(({ metrics, histograms }) => [
    ...Object.values(metrics).flatMap((names) => names.flatMap((one) => suffixed(inUse(one).name))),
    ...Object.values(histograms).flatMap((names) =>
      names.flatMap((one) => PARTS.map((part) => `${inUse(one).name}${part}`)),
    ),
  ]),
);

/** Whether a canonical name is in the table, also as a part of a histogram. */
export function isNamed(name: string): boolean {
  return NAMED.has(name);
}

/** Labels that tell engines and ranks apart which do different work: their numbers add up. */
export const ENGINE_LABELS: readonly string[] = [
  'engine',
  'dp_rank',
  'worker_id',
  'worker',
  'WorkerId',
  'ReplicaId',
  'engine_type',
  'worker_type',
];

/** Labels of ranks and processes that share the work: each says the same number again. */
export const REPLICA_LABELS: readonly string[] = [
  'tp_rank',
  'pp_rank',
  'ep_rank',
  'moe_ep_rank',
  'moe_dp_rank',
  'attn_cp_rank',
  'pid',
];
