/**
 * What people type who come from `vllm bench serve`, AIPerf, GuideLLM or genai-bench, and what it is here. A flag means what it meant
 * there or is refused with the way to ask for it; one that has nothing to do here (a tokenizer: the server counts) is accepted and said.
 */

export interface PeerFlag {
  readonly flag: string;
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  /** What to do with it. */
  readonly is:
    | { readonly kind: 'alias'; readonly flag: string }
    /** Our flags and their values, from the value that was given; null for a value that we cannot mean the same by. */
    | {
        readonly kind: 'translated';
        readonly to: (value: string) => Translation | null;
        /** What it takes here, to end the sentence "takes …". */
        readonly takes: string;
      }
    /** Nothing is left to do: why. */
    | { readonly kind: 'moot'; readonly why: string }
    /** Not here: what to do instead. */
    | { readonly kind: 'refused'; readonly instead: string };
}

/** Flags of ours by name; `true` for a switch. */
export type Translation = Readonly<Record<string, string | true>>;

const alias = (flag: string, ours: string): PeerFlag => ({
  flag,
  type: 'string',
  is: { kind: 'alias', flag: ours },
});
const switchAlias = (flag: string, ours: string): PeerFlag => ({
  ...alias(flag, ours),
  type: 'boolean',
});
const moot = (flag: string, type: 'string' | 'boolean', why: string): PeerFlag => ({
  flag,
  type,
  is: { kind: 'moot', why },
});
const refused = (flag: string, type: 'string' | 'boolean', instead: string): PeerFlag => ({
  flag,
  type,
  is: { kind: 'refused', instead },
});
const translated = (
  flag: string,
  takes: string,
  to: (value: string) => Translation | null,
): PeerFlag => ({ flag, type: 'string', multiple: true, is: { kind: 'translated', to, takes } });

/** A field of every body, as a number where it is one. */
const field = (flag: string, name: string): PeerFlag =>
  translated(flag, 'a number', (value) =>
    /^-?\d{1,9}(?:\.\d{1,9})?$/.test(value) ? { 'extra-body': `{"${name}":${value}}` } : null,
  );
const milliseconds = (flag: string, ours: string): PeerFlag =>
  translated(flag, 'milliseconds', (value) =>
    /^\d+(?:\.\d+)?$/.test(value) ? { [ours]: `${value}ms` } : null,
  );
const choice = (flag: string, choices: Readonly<Record<string, Translation>>): PeerFlag =>
  translated(flag, Object.keys(choices).join(' or '), (value) =>
    Object.hasOwn(choices, value) ? (choices[value] ?? null) : null,
  );

const TOKENIZER = "no tokenizer is needed: the server's usage counts the tokens";
const SUMMARY = 'every result has mean, p50, p90, p95, p99, the extremes and the whole histograms';
const OWN_FORMATS = 'use --save FILE, --csv FILE, --junit FILE or --request-log FILE';

const POISSON: Translation = { burstiness: '1' };

export const PEER_FLAGS: readonly PeerFlag[] = [
  // The endpoint.
  alias('base-url', 'url'),
  alias('target', 'url'),
  alias('api-base', 'url'),
  alias('model-name', 'model'),
  alias('model-names', 'model'),
  alias('served-model-name', 'model'),
  alias('api-model-name', 'model'),
  { flag: 'endpoint', type: 'string', is: { kind: 'alias', flag: 'path' } },
  { flag: 'custom-endpoint', type: 'string', is: { kind: 'alias', flag: 'path' } },
  { flag: 'host', type: 'string', is: { kind: 'alias', flag: 'host' } },
  { flag: 'port', type: 'string', is: { kind: 'alias', flag: 'port' } },
  choice('endpoint-type', {
    chat: { api: 'chat' },
    completions: { api: 'completions' },
    responses: { api: 'responses' },
    embeddings: { api: 'embeddings' },
  }),
  choice('backend', {
    'openai-chat': { api: 'chat' },
    openai: { api: 'completions' },
    vllm: { api: 'completions' },
    'openai-embeddings': { api: 'embeddings' },
    openai_http: {},
  }),
  choice('request-type', {
    chat_completions: { api: 'chat' },
    text_completions: { api: 'completions' },
  }),
  switchAlias('streaming', 'stream'),
  switchAlias('stream', 'stream'),
  alias('request-timeout-seconds', 'timeout'),
  alias('aiohttp-connection-timeout', 'connect-timeout'),

  // When requests are sent.
  translated('request-rate', 'requests a second, or inf', (value) =>
    value === 'inf' ? { rate: value } : { rate: value, '?burstiness': '1' },
  ),
  alias('vllm-burstiness', 'burstiness'),
  alias('arrival-smoothness', 'burstiness'),
  choice('request-rate-mode', { constant: { burstiness: 'inf' }, poisson: POISSON }),
  choice('arrival-pattern', {
    constant: { burstiness: 'inf' },
    poisson: POISSON,
    gamma: {},
    concurrency_burst: {},
  }),
  alias('num-concurrency', 'concurrency'),
  alias('num-requests', 'requests'),
  alias('num-prompts', 'requests'),
  alias('request-count', 'requests'),
  alias('max-requests', 'requests'),
  alias('max-requests-per-run', 'requests'),
  alias('benchmark-duration', 'duration'),
  alias('max-seconds', 'duration'),
  alias('benchmark-grace-period', 'drain'),
  alias('grace', 'drain'),
  alias('num-warmups', 'warmup'),
  alias('warmup-request-count', 'warmup'),
  alias('num-warmup-requests', 'warmup'),
  translated('warmup-duration', 'seconds', (value) =>
    /^\d+(?:\.\d+)?$/.test(value) ? { warmup: `${value}s` } : null,
  ),
  translated('max-time-per-run', 'minutes', (value) =>
    /^\d+(?:\.\d+)?$/.test(value) ? { duration: `${value}m` } : null,
  ),
  choice('ramp-up-strategy', { linear: {} }),
  alias('ramp-up-start-rps', 'ramp-from'),
  alias('ramp-up-end-rps', 'ramp-to'),
  alias('concurrency-ramp-duration', 'ramp'),
  alias('request-rate-ramp-duration', 'ramp'),
  alias('rampup', 'ramp'),
  alias('profile', 'rate-type'),
  { flag: 'rate-type', type: 'string', is: { kind: 'alias', flag: 'rate-type' } },
  switchAlias('fixed-schedule', 'fixed-schedule'),
  refused('prefill-concurrency', 'string', 'use -c, or --max-concurrency with a rate'),
  refused('user-centric-rate', 'string', 'use --turns with --think-time'),
  refused('request-cancellation-rate', 'string', 'trace load does not cancel requests'),
  refused('max-errors', 'string', "use --fail-on 'errors>10'"),
  refused('max-error-rate', 'string', "use --fail-on 'error_ratio>5%'"),
  refused('traffic-scenario', 'string', 'use --isl, --osl and their --isl-stddev, --osl-stddev'),

  // Prompts.
  alias('input-tokens', 'isl'),
  alias('output-tokens', 'osl'),
  alias('input-len', 'isl'),
  alias('output-len', 'osl'),
  alias('random-input-len', 'isl'),
  alias('random-output-len', 'osl'),
  alias('synthetic-input-tokens-mean', 'isl'),
  alias('prompt-input-tokens-mean', 'isl'),
  alias('prompt-output-tokens-mean', 'osl'),
  alias('output-tokens-mean', 'osl'),
  alias('synthetic-input-tokens-stddev', 'isl-stddev'),
  alias('prompt-input-tokens-stddev', 'isl-stddev'),
  alias('prompt-output-tokens-stddev', 'osl-stddev'),
  alias('output-tokens-stddev', 'osl-stddev'),
  alias('random-range-ratio', 'range-ratio'),
  alias('random-prefix-len', 'prefix-tokens'),
  alias('prefix-prompt-length', 'prefix-tokens'),
  alias('prompt-prefix-length', 'prefix-tokens'),
  alias('prefix-prompt-pool-size', 'prefixes'),
  alias('prompt-prefix-pool-size', 'prefixes'),
  alias('num-prefix-prompts', 'prefixes'),
  alias('prefix-repetition-prefix-len', 'prefix-tokens'),
  alias('prefix-repetition-suffix-len', 'isl'),
  alias('prefix-repetition-num-prefixes', 'prefixes'),
  alias('prefix-repetition-output-len', 'osl'),
  alias('sharegpt-output-len', 'osl'),
  alias('custom-output-len', 'osl'),
  choice('dataset-name', { random: {}, sharegpt: {}, custom: {}, prefix_repetition: {} }),
  alias('dataset-path', 'dataset'),
  alias('input-file', 'dataset'),
  choice('custom-dataset-type', {
    single_turn: {},
    multi_turn: {},
    mooncake_trace: { 'fixed-schedule': true },
  }),
  { flag: 'data', type: 'string', is: { kind: 'alias', flag: 'data' } },
  alias('num-conversations', 'conversations'),
  alias('conversation-num', 'conversations'),
  alias('num-sessions', 'conversations'),
  alias('conversation-turn-mean', 'turns'),
  alias('session-turns-mean', 'turns'),
  milliseconds('conversation-turn-delay-mean', 'think-time'),
  milliseconds('session-turn-delay-mean', 'think-time'),
  alias('random-seed', 'seed'),
  { ...alias('extra-inputs', 'extra-inputs'), multiple: true },
  field('temperature', 'temperature'),
  field('top-p', 'top_p'),
  field('top-k', 'top_k'),
  field('min-p', 'min_p'),
  field('frequency-penalty', 'frequency_penalty'),
  field('presence-penalty', 'presence_penalty'),
  field('repetition-penalty', 'repetition_penalty'),
  field('logprobs', 'logprobs'),
  refused('public-dataset', 'string', 'download it and use --dataset FILE (JSON Lines)'),
  refused('hf-split', 'string', 'export the data set as JSON Lines and use --dataset FILE'),
  refused('hf-subset', 'string', 'export the data set as JSON Lines and use --dataset FILE'),
  refused('lora-modules', 'string', 'run once for each model with -m'),
  refused('use-beam-search', 'boolean', `use --extra-body '{"use_beam_search":true}'`),

  // What is measured.
  { ...alias('goodput', 'goodput'), multiple: true },
  alias('server-metrics', 'metrics-url'),
  refused('gpu-telemetry', 'string', 'use --metrics-url for what the server itself shows'),
  moot('no-gpu-telemetry', 'boolean', 'no GPU is read'),
  moot('no-server-metrics', 'boolean', 'the server is asked for metrics only with --metrics-url'),
  moot('percentile-metrics', 'string', SUMMARY),
  moot('metric-percentiles', 'string', SUMMARY),
  moot('tokenizer', 'string', TOKENIZER),
  moot('processor', 'string', TOKENIZER),
  moot('model-tokenizer', 'string', TOKENIZER),
  moot('tokenizer-mode', 'string', TOKENIZER),
  moot('tokenizer-trust-remote-code', 'boolean', TOKENIZER),
  moot('trust-remote-code', 'boolean', TOKENIZER),
  moot('use-server-token-count', 'boolean', TOKENIZER),
  moot('num-dataset-entries', 'string', 'every synthetic prompt is made anew'),
  moot('ready-check-timeout-sec', 'string', 'the server is asked once, before the run'),

  // Results.
  alias('result-filename', 'save'),
  alias('output-path', 'save'),
  refused('save-result', 'boolean', 'use --save FILE'),
  refused('save-detailed', 'boolean', 'use --request-log FILE'),
  refused('append-result', 'boolean', OWN_FORMATS),
  refused('result-dir', 'string', OWN_FORMATS),
  refused(
    'artifact-dir',
    'string',
    '-o FOLDER takes the recording; for files '.concat(OWN_FORMATS),
  ),
  refused('output-artifact-dir', 'string', OWN_FORMATS),
  refused('output-dir', 'string', OWN_FORMATS),
  refused('outputs', 'string', OWN_FORMATS),
  refused('metadata', 'string', 'name the run with --run-id'),
  refused('label', 'string', 'name the run with --run-id'),
  switchAlias('disable-tqdm', 'no-progress'),
  switchAlias('disable-progress', 'no-progress'),
  choice('ui', { none: { 'no-progress': true }, simple: {}, dashboard: {} }),
  choice('ui-type', { none: { 'no-progress': true }, simple: {}, dashboard: {} }),
  alias('workers-max', 'workers'),
];
