import type { GenAiProfile } from '../../core/semconv-genai.ts';
import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  type OptionTable,
  type Usage,
} from '../command-line/command.ts';
import { loadHelp } from './help.ts';
import { LOAD_APIS } from './apis.ts';
import { PEER_FLAGS } from './peer-flags.ts';

export const LOAD_FORMATS = ['text', 'json', 'csv', 'junit'] as const;
/** Names that spans and metrics of requests get: the conventions' released form, or the one that is being prepared. */
export const GENAI_PROFILES: readonly GenAiProfile[] = ['stable', 'next'];
export const DATASET_ORDERS = ['sequential', 'random'] as const;
/** As OTEL_EXPORTER_OTLP_PROTOCOL has them. */
export const OTLP_PROTOCOLS = ['grpc', 'http/protobuf', 'http/json'] as const;

const OPTIONS = {
  url: { type: 'string', short: 'u' },
  model: { type: 'string', short: 'm' },
  api: { type: 'string' },
  'api-key': { type: 'string' },
  header: { type: 'string', short: 'H', multiple: true },
  unix: { type: 'string' },
  insecure: { type: 'boolean', short: 'k' },
  cacert: { type: 'string' },

  concurrency: { type: 'string', short: 'c' },
  rate: { type: 'string', short: 'r' },
  burstiness: { type: 'string' },
  'max-concurrency': { type: 'string' },
  ramp: { type: 'string' },
  sweep: { type: 'string' },
  'sweep-rate': { type: 'string' },
  stages: { type: 'string' },
  replay: { type: 'string' },
  speed: { type: 'string' },

  duration: { type: 'string', short: 'd' },
  requests: { type: 'string', short: 'n' },
  warmup: { type: 'string' },
  drain: { type: 'string' },
  timeout: { type: 'string' },
  'connect-timeout': { type: 'string' },
  'first-byte-timeout': { type: 'string' },
  'stall-timeout': { type: 'string' },

  isl: { type: 'string' },
  'isl-stddev': { type: 'string' },
  osl: { type: 'string' },
  'osl-stddev': { type: 'string' },
  'prefix-tokens': { type: 'string' },
  prefixes: { type: 'string' },
  dataset: { type: 'string' },
  'dataset-order': { type: 'string' },
  mix: { type: 'string', multiple: true },
  turns: { type: 'string' },
  'think-time': { type: 'string' },
  'check-nonce': { type: 'boolean' },
  'no-stream': { type: 'boolean' },
  'ignore-eos': { type: 'boolean' },
  'extra-body': { type: 'string', multiple: true },
  seed: { type: 'string' },

  slo: { type: 'string', multiple: true },
  'fail-on': { type: 'string', multiple: true },
  baseline: { type: 'string' },
  attach: { type: 'string' },
  gpu: { type: 'boolean' },
  'no-gpu': { type: 'boolean' },
  'metrics-url': { type: 'string' },
  'metrics-interval': { type: 'string' },

  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  save: { type: 'string' },
  csv: { type: 'string' },
  junit: { type: 'string' },
  'request-log': { type: 'string' },
  repro: { type: 'string' },
  'exit-zero': { type: 'boolean' },
  'no-progress': { type: 'boolean' },

  output: { type: 'string', short: 'o' },
  force: { type: 'boolean' },
  'no-recording': { type: 'boolean' },

  otel: { type: 'boolean' },
  'otlp-endpoint': { type: 'string' },
  'otlp-protocol': { type: 'string' },
  'no-propagate': { type: 'boolean' },
  'trace-sample': { type: 'string' },
  'genai-profile': { type: 'string' },

  workers: { type: 'string' },
  'run-id': { type: 'string' },
  part: { type: 'string' },

  yes: { type: 'boolean', short: 'y' },
  'dry-run': { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

/** `trace load` as its help shows it. */
export const loadUsage: Usage = {
  name: 'load',
  summary: 'Send load to an OpenAI-compatible server and measure it',
  help: loadHelp,
  options: OPTIONS,
  foreign: foreignOptions(),
  completes: {
    argument: 'text',
    values: {
      api: LOAD_APIS,
      cacert: 'file',
      replay: 'file',
      dataset: 'file',
      'dataset-order': DATASET_ORDERS,
      baseline: 'file',
      attach: 'process',
      format: LOAD_FORMATS,
      save: 'file',
      csv: 'file',
      junit: 'file',
      'request-log': 'file',
      repro: 'folder',
      output: 'folder',
      'otlp-protocol': OTLP_PROTOCOLS,
      'genai-profile': GENAI_PROFILES,
      unix: 'file',
    },
  },
};

function foreignOptions(): OptionTable {
  return Object.fromEntries(
    PEER_FLAGS.map(({ flag, type, multiple = false }) => [flag, { type, multiple }]),
  );
}
