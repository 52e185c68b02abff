/** What to change where an inference server is at one of its limits, in the words of its own flags. */

export type SaturationMechanism =
  | 'queue-grows'
  | 'kv-cache-full'
  | 'preemption'
  | 'batch-limit'
  | 'long-prefill'
  | 'cpu-tokenizer'
  | 'cpu-detokenizer';

/** What holds for any server, and what this one calls it. */
interface Remedy {
  readonly any: string;
  readonly by: Readonly<Record<string, string>>;
}

const MORE_KV: Readonly<Record<string, string>> = {
  vllm: '--gpu-memory-utilization up, --max-model-len down, --kv-cache-dtype fp8, or more --tensor-parallel-size',
  sglang:
    '--mem-fraction-static up, --context-length down, --kv-cache-dtype fp8_e4m3, or more --tp-size',
  dynamo: "the engine's own memory flags, or more workers",
  tensorrt_llm: '--kv_cache_free_gpu_memory_fraction up, --max_seq_len down, or an FP8 KV cache',
  llama_cpp: '-c up where memory allows, or --cache-type-k q8_0 and --cache-type-v q8_0',
  tgi: '--max-batch-total-tokens up where memory allows, or --kv-cache-dtype fp8',
};

const REMEDIES: Readonly<Record<SaturationMechanism, Remedy>> = {
  'queue-grows': {
    any: 'Send less, put a limit on what is taken in (429 instead of a queue), or add another instance.',
    by: {},
  },
  'kv-cache-full': {
    any: 'Give the KV cache more room, or let fewer or shorter requests in.',
    by: MORE_KV,
  },
  preemption: {
    any: 'Let fewer requests run at once, or give the KV cache more room: each preemption costs a prefill again.',
    by: {
      ...MORE_KV,
      vllm: `--max-num-seqs down, or ${MORE_KV['vllm'] ?? ''}`,
      sglang: `--max-running-requests down, --schedule-conservativeness up, or ${MORE_KV['sglang'] ?? ''}`,
    },
  },
  'batch-limit': {
    any: 'Let more requests run at once, as far as memory allows.',
    by: {
      vllm: '--max-num-seqs up',
      sglang: '--max-running-requests up, and --cuda-graph-max-bs with it',
      tensorrt_llm: '--max_batch_size up',
      llama_cpp: '-np (--parallel) up, and -c with it: each slot has its part of the context',
      tgi: '--max-concurrent-requests and --max-batch-total-tokens up',
      lmdeploy: '--max-batch-size up',
    },
  },
  'long-prefill': {
    any: 'Have long prompts worked on in parts, or by other instances than those that generate.',
    by: {
      vllm: '--max-num-batched-tokens down (chunked prefill), or prefill and decode apart',
      sglang: '--chunked-prefill-size down, --enable-mixed-chunk, or prefill and decode apart',
      tensorrt_llm: '--enable_chunked_prefill',
      llama_cpp: '-b and -ub down: a batch of the prompt is what the others wait for',
      dynamo: 'workers for prefill of their own (--disaggregation-mode)',
      tgi: '--max-batch-prefill-tokens down',
    },
  },
  'cpu-tokenizer': {
    any: 'Spread it over several processes: more API servers in front of the same engine.',
    by: {
      vllm: '--api-server-count up',
      sglang: '--tokenizer-worker-num up',
      dynamo: 'more frontends',
    },
  },
  'cpu-detokenizer': {
    any: 'Spread it over several processes, or let answers be written in larger pieces.',
    by: {
      vllm: '--api-server-count up',
      sglang: '--stream-interval up, or --skip-tokenizer-init with tokens handled by the caller',
    },
  },
};

/** For people; `software` as `gen_ai.provider.name` has it. */
export function remedyOf(mechanism: SaturationMechanism, software: string | null): string {
  const { any, by } = REMEDIES[mechanism];
  const named = software === null ? undefined : by[software];
  return named === undefined ? any : `${any} Here: ${named}.`;
}
