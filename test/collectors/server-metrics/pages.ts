/**
 * Pages of inference servers as their versions write them, cut to what is asked here, and what they say. Names, labels and types are those of the
 * servers' own sources.
 */

/** What a page comes to: a number for each engine, or one where it tells no engines apart. */
export interface ServerPage {
  readonly server: string;
  readonly engine: string | null;
  readonly page: string;
  readonly says: Readonly<Record<string, number | Readonly<Record<string, number>>>>;
  /** Counted when a request is over. */
  readonly atEnd?: readonly string[];
}

const vllmHistogram = (name: string, labels: string): string =>
  [0.001, 0.1, 2560]
    .map((le, i) => `${name}_bucket{${labels},le="${le.toFixed(3)}"} ${i * 3}.0`)
    .concat(`${name}_bucket{${labels},le="+Inf"} 7.0`, `${name}_count{${labels}} 7.0`)
    .concat(`${name}_sum{${labels}} 1.25`)
    .join('\n');

export const PAGES: readonly ServerPage[] = [
  {
    server: 'vLLM 0.32, two engines',
    engine: 'vllm',
    page: `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 1.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="1",model_name="tiny"} 0.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.9
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.1
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="tiny"} 4.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="tiny"} 1.7e+09
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1234.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="tiny"} 99.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 2.0
# TYPE vllm:iteration_tokens_total histogram
${vllmHistogram('vllm:iteration_tokens_total', 'engine="0",model_name="tiny"')}
`,
    says: {
      'requests.running': { 0: 3, 1: 1 },
      'requests.waiting': { 0: 2, 1: 0 },
      'kv_cache.utilization': { 0: 0.9, 1: 0.1 },
      preemptions: { 0: 4 },
      'tokens.input': { 0: 1234 },
      'tokens.output': { 0: 99 },
      'requests.finished': { 0: 7 },
      'scheduler.steps': { 0: 7 },
    },
  },
  {
    server: 'vLLM 0.5, before engines had a number',
    engine: 'vllm',
    page: `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 1.0
# TYPE vllm:num_requests_swapped gauge
vllm:num_requests_swapped{model_name="m"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 0.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{model_name="m"} 0.0125
# TYPE vllm:cpu_cache_usage_perc gauge
vllm:cpu_cache_usage_perc{model_name="m"} 0.5
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{model_name="m"} 0.0
`,
    says: {
      'requests.running': 1,
      'requests.waiting': 0,
      'kv_cache.utilization': 0.0125,
      preemptions: 0,
    },
  },
  {
    server: 'vLLM below Ray Serve, which writes each counter twice',
    engine: 'vllm',
    page: `# TYPE ray_vllm_num_requests_running gauge
ray_vllm_num_requests_running{Component="core_worker",ReplicaId="a",engine="0",model_name="m"} 2
ray_vllm_num_requests_running{Component="core_worker",ReplicaId="b",engine="0",model_name="m"} 1
# TYPE ray_vllm_generation_tokens gauge
ray_vllm_generation_tokens{ReplicaId="a",engine="0"} 50
# TYPE ray_vllm_generation_tokens_total counter
ray_vllm_generation_tokens_total{ReplicaId="a",engine="0"} 50
`,
    says: { 'requests.running': { '0 a': 2, '0 b': 1 }, 'tokens.output': { '0 a': 50 } },
  },
  {
    server:
      'SGLang 0.5, two data-parallel ranks of two tensor-parallel ones that each say the same',
    engine: 'sglang',
    page: `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="glm",pp_rank="0",tp_rank="0"} 4.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="glm",pp_rank="0",tp_rank="1"} 4.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="glm",pp_rank="0",tp_rank="2"} 2.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="glm",pp_rank="0",tp_rank="0"} 9.0
# TYPE sglang:token_usage gauge
sglang:token_usage{dp_rank="0",engine_type="unified",model_name="glm",pp_rank="0",tp_rank="0"} 0.10
sglang:token_usage{dp_rank="0",engine_type="unified",model_name="glm",pp_rank="0",tp_rank="1"} 0.20
# TYPE sglang:num_retracted_reqs gauge
sglang:num_retracted_reqs{dp_rank="0",tp_rank="0"} 1.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{dp_rank="0",tp_rank="0"} 6.0
# TYPE sglang:realtime_tokens_total counter
sglang:realtime_tokens_total{dp_rank="0",mode="prefill_compute",tp_rank="0"} 100.0
sglang:realtime_tokens_total{dp_rank="0",mode="prefill_cache",tp_rank="0"} 900.0
sglang:realtime_tokens_total{dp_rank="0",mode="decode",tp_rank="0"} 70.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="glm"} 60.0
# TYPE sglang:cuda_graph_passes_total counter
sglang:cuda_graph_passes_total{dp_rank="0",mode="decode_cuda_graph",tp_rank="0"} 30.0
sglang:cuda_graph_passes_total{dp_rank="0",mode="prefill_none",tp_rank="0"} 5.0
# TYPE sglang:num_requests_total counter
sglang:num_requests_total{model_name="glm"} 3.0
`,
    says: {
      'requests.running': { 0: 4, 1: 2 },
      'requests.waiting': { 0: 9 },
      'kv_cache.utilization': { 0: 0.2 },
      preemptions: { 0: 6 },
      'tokens.input': { 0: 100 },
      'tokens.output': { 0: 70 },
      'scheduler.steps': { 0: 35 },
      'requests.finished': 3,
    },
  },
  {
    server: 'SGLang 0.4, which counts tokens when a request is over',
    engine: 'sglang',
    page: `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 162.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 7557572.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.28
`,
    says: { 'requests.running': 162, 'tokens.output': 7_557_572, 'kv_cache.utilization': 0.28 },
    atEnd: ['tokens.output'],
  },
  {
    server: "Dynamo 1.6's frontend",
    engine: 'dynamo',
    page: `# TYPE dynamo_frontend_inflight_requests gauge
dynamo_frontend_inflight_requests{model="tiny"} 4
# TYPE dynamo_frontend_queued_requests gauge
dynamo_frontend_queued_requests{model="tiny"} 1
# TYPE dynamo_frontend_output_tokens_total counter
dynamo_frontend_output_tokens_total{model="tiny"} 640
# TYPE dynamo_frontend_input_sequence_tokens histogram
dynamo_frontend_input_sequence_tokens_sum{model="tiny"} 2048
# TYPE dynamo_frontend_requests_total counter
dynamo_frontend_requests_total{endpoint="chat_completions",model="tiny",request_type="stream",status="success"} 10
dynamo_frontend_requests_total{endpoint="chat_completions",model="tiny",request_type="stream",status="error"} 1
`,
    says: {
      'requests.running': 4,
      'requests.waiting': 1,
      'tokens.output': 640,
      'tokens.input': 2048,
      'requests.finished': 11,
    },
  },
  {
    server: "Dynamo's worker around vLLM: what is missing in its names is in those of the engine",
    engine: 'dynamo',
    page: `# TYPE dynamo_component_gpu_cache_usage_percent gauge
dynamo_component_gpu_cache_usage_percent{dynamo_component="backend",dp_rank="0"} 0.75
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 2
`,
    says: { 'kv_cache.utilization': { 0: 0.75 }, 'requests.running': { 0: 2 } },
  },
  {
    server: 'TensorRT-LLM 1.3',
    engine: 'tensorrt_llm',
    page: `# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 5.0
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 3.0
# TYPE trtllm_kv_cache_utilization gauge
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.5
# TYPE trtllm_generation_tokens_total counter
trtllm_generation_tokens_total{engine_type="trtllm",model_name="m"} 70.0
# TYPE trtllm_request_success_total counter
trtllm_request_success_total{engine_type="trtllm",finished_reason="stop",model_name="m"} 2.0
`,
    says: {
      'requests.running': 5,
      'requests.waiting': 3,
      'kv_cache.utilization': 0.5,
      'tokens.output': 70,
      'requests.finished': 2,
    },
    atEnd: ['tokens.output'],
  },
  {
    server: 'TensorRT-LLM 1.0, with colons and without gauges',
    engine: 'tensorrt_llm',
    page: `# TYPE trtllm:request_success_total counter
trtllm:request_success_total{engine_type="undefined",finished_reason="length",model_name="m"} 8.0
# TYPE trtllm:time_to_first_token_seconds histogram
trtllm:time_to_first_token_seconds_count{model_name="m"} 8.0
`,
    says: { 'requests.finished': 8 },
  },
  {
    server: 'llama.cpp',
    engine: 'llama_cpp',
    page: `# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 100
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 40
# TYPE llamacpp:n_decode_total counter
llamacpp:n_decode_total 44
# TYPE llamacpp:n_busy_slots_per_decode gauge
llamacpp:n_busy_slots_per_decode 1.5
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 2
`,
    says: {
      'requests.running': 1,
      'requests.waiting': 2,
      'tokens.input': 100,
      'tokens.output': 40,
      'scheduler.steps': 44,
    },
    atEnd: ['tokens.output'],
  },
  {
    server: 'TGI 3',
    engine: 'tgi',
    page: `# TYPE tgi_queue_size gauge
tgi_queue_size 7
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 12
# TYPE tgi_batch_inference_count counter
tgi_batch_inference_count{method="prefill"} 3
tgi_batch_inference_count{method="decode"} 300
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_sum 900
# TYPE tgi_request_success counter
tgi_request_success 21
`,
    says: {
      'requests.running': 12,
      'requests.waiting': 7,
      'scheduler.steps': 303,
      'tokens.output': 900,
      'requests.finished': 21,
    },
    atEnd: ['tokens.output'],
  },
  {
    server: 'Triton with TensorRT-LLM',
    engine: 'triton',
    page: `# TYPE nv_inference_request_success counter
nv_inference_request_success{model="tensorrt_llm",version="1"} 500
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 3
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 2
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.25
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 120
`,
    says: {
      'requests.running': 3,
      'requests.waiting': 2,
      'kv_cache.utilization': 0.25,
      'requests.finished': 500,
    },
  },
  {
    server: 'LMDeploy',
    engine: 'lmdeploy',
    page: `# TYPE lmdeploy:num_requests_running gauge
lmdeploy:num_requests_running{engine="0",model_name="m"} 5.0
# TYPE lmdeploy:generation_tokens_total counter
lmdeploy:generation_tokens_total{engine="0",model_name="m"} 12.0
`,
    says: { 'requests.running': { 0: 5 }, 'tokens.output': { 0: 12 } },
  },
  {
    server: 'a server that is not known, with a GPU exporter’s prefix',
    engine: null,
    page: `# TYPE http_requests_total counter
http_requests_total{code="200"} 17
nv_gpu_utilization{gpu="0"} 0.5
num_requests_running 3
`,
    says: {},
  },
];
