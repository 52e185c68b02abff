import { usageError } from '../../core/errors.ts';
import type { Slo } from '../../core/load-types.ts';
import { parsePid } from '../../core/pid.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { genAiProfileOf } from '../../core/semconv-genai.ts';
import { printable } from '../../core/text.ts';
import type { Ratio, Seconds } from '../../core/types.ts';
import type { LoadPlan, PromptPlan, StagePlan } from '../../load/plan.ts';
import type { AttachDefaults } from '../attach/options.ts';
import type { OptionValues } from '../command-line/command.ts';
import { LONGEST, MOST_REQUESTS, parseStages } from './arrivals.ts';
import { GOODPUT_WORD, translateIdioms } from './peer-idioms.ts';
import { translatePeerFlags } from './peer-values.ts';
import { parsePrompts } from './prompt-options.ts';
import type { LoadSettings } from './settings.ts';
import { type EndpointOptions, parseEndpoint } from './url.ts';
import { GENAI_PROFILES, LOAD_FORMATS, OTLP_PROTOCOLS } from './usage.ts';
import { contradiction, LoadValues } from './values.ts';
import { parseChoice, parseDuration, parseHttpUrl } from '../command-line/parse.ts';

/** A request may take this long unless told otherwise: a long answer of a slow model, and not a hang that outlives the patience of CI. */
const DEFAULT_TIMEOUT: Seconds = 600;
/** Connecting takes a round trip; SYN is sent again after 1, 3 and 7 s. */
const DEFAULT_CONNECT_TIMEOUT: Seconds = 10;
/** Most answers take less; what takes longer is counted as unfinished. */
const DEFAULT_DRAIN: Seconds = 30;
/** As often as vLLM and SGLang renew their pages. */
const DEFAULT_METRICS_INTERVAL: Seconds = 1;
const MOST_WORKERS = 64;
const MOST_PARTS = 1000;

/** One `trace load`, decided as far as the command line alone decides it. */
export interface LoadOptions {
  readonly endpoint: EndpointOptions;
  /** Null: the only one that the server has. */
  readonly model: string | null;
  readonly stages: readonly StagePlan[];
  readonly prompts: PromptPlan;
  readonly stream: boolean;
  readonly ignoreEos: boolean;
  /** JSON objects, or `@file`: in this order, the last wins. */
  readonly extraBody: readonly string[];
  readonly warmup: LoadPlan['warmup'];
  readonly timeouts: LoadPlan['timeouts'];
  readonly drain: Seconds;
  readonly seed: number;
  readonly workers: number;
  readonly slos: readonly Slo[];
  /** Null: a name that nobody else has. */
  readonly runId: string | null;
  readonly part: { readonly index: number; readonly of: number };
  readonly propagate: boolean;
  /** Null: all up to the number of spans that a trace is still readable with. */
  readonly traceSample: Ratio | null;
  readonly settings: LoadSettings;
  readonly result: ResultOptions;
  /** Folder for a reproduction of what went wrong; null for none. */
  readonly repro: string | null;
  readonly isConfirmed: boolean;
  readonly dryRun: boolean;
  readonly progress: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly noColor: boolean;
  /** What was accepted and does nothing, for stderr. */
  readonly notes: readonly string[];
}

/** What becomes of the result. */
export interface ResultOptions {
  readonly format: (typeof LOAD_FORMATS)[number];
  /** Files that get it too. */
  readonly files: {
    readonly json: string | null;
    readonly csv: string | null;
    readonly junit: string | null;
  };
  readonly overwrite: boolean;
  /** Gates, as given. */
  readonly failOn: readonly string[];
  /** Recording or JSON result to compare with. */
  readonly baseline: string | null;
  readonly exitZero: boolean;
}

/** The options of one run, flag over configuration over default. Contradictions are usage errors. */
export function parseLoadOptions(
  given: OptionValues,
  positionals: readonly string[],
  context: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly defaults?: Omit<AttachDefaults, 'duration' | 'lagThreshold'>;
  },
): LoadOptions {
  const { env, defaults = {} } = context;
  const { url, goodput } = splitPositionals(given, positionals);
  const translated = translatePeerFlags(
    goodput.length === 0 ? given : { ...given, goodput: [given['goodput'] ?? [], goodput].flat(2) },
  );
  const values = new LoadValues(translateIdioms(translated.values));
  const endpoint = parseEndpoint(values, url, env);
  const isEmbedding = endpoint.api === 'embeddings';
  const part = parsePart(values);
  const runId = parseRunId(values);
  if (part.of > 1 && runId === null) {
    throw usageError(
      '--part needs --run-id',
      'The same for each part, so that they can be merged.',
    );
  }
  const seed = values.count('seed', 0, Number.MAX_SAFE_INTEGER) ?? 0;
  return {
    endpoint,
    model: values.text('model'),
    stages: parseStages(values),
    prompts: parsePrompts(values, endpoint.api),
    stream: !isEmbedding && !values.isSet('no-stream'),
    ignoreEos: values.isSet('ignore-eos'),
    extraBody: values.texts('extra-body'),
    warmup: parseWarmup(values),
    timeouts: {
      connect: values.duration('connect-timeout', 0.001, LONGEST) ?? DEFAULT_CONNECT_TIMEOUT,
      firstByte: values.duration('first-byte-timeout', 0.001, LONGEST),
      stall: values.duration('stall-timeout', 0.001, LONGEST),
      total: values.duration('timeout', 0.001, LONGEST) ?? DEFAULT_TIMEOUT,
    },
    drain: values.duration('drain', 0, LONGEST) ?? DEFAULT_DRAIN,
    seed,
    workers: values.count('workers', 1, MOST_WORKERS) ?? 1,
    slos: values.texts('slo').flatMap(parseSlos),
    runId,
    part,
    propagate: !values.isSet('no-propagate'),
    traceSample: values.decimal('trace-sample', 0, 1),
    settings: parseSettings(values, { env, defaults }),
    result: parseResult(values),
    repro: parseRepro(values),
    isConfirmed: values.isSet('yes'),
    dryRun: values.isSet('dry-run'),
    progress: !values.isSet('no-progress') && !values.isSet('quiet'),
    quiet: values.isSet('quiet'),
    verbose: values.isSet('verbose'),
    noColor: values.isSet('no-color'),
    notes: translated.notes,
  };
}

/** The URL, and words that a shell split off vLLM's `--goodput ttft:200 tpot:50`. */
function splitPositionals(
  given: OptionValues,
  positionals: readonly string[],
): { readonly url: string | undefined; readonly goodput: readonly string[] } {
  const isGoodput = (word: string) => given['goodput'] !== undefined && GOODPUT_WORD.test(word);
  const [url, another] = positionals.filter((word) => !isGoodput(word));
  if (another !== undefined) {
    throw usageError(
      `one URL at a time, got also '${printable(maskText(another), 60)}'`,
      'Results of several machines are joined by trace load merge.',
    );
  }
  return { url, goodput: positionals.filter(isGoodput) };
}

function parseWarmup(values: LoadValues): LoadPlan['warmup'] {
  const text = values.text('warmup');
  // The first request of a replay is one of the data.
  if (text === null) return values.has('replay') ? null : { requests: 1 };
  if (/^0+[a-z]*$/.test(text)) return null;
  if (/^\d+$/.test(text)) return { requests: Math.min(Number(text), MOST_REQUESTS) };
  const bounds = { least: 0, most: LONGEST };
  return { duration: parseDuration(text, { flag: '--warmup', bare: 's', ...bounds }) };
}

const SLO_PATTERN = /^\s*(ttft|tpot|itl|e2e|ntpot)\s*<=?\s*([\d.]+\s?[a-z]*)\s*$/;

/** `ttft<200ms,tpot<50ms`. */
function parseSlos(text: string): readonly Slo[] {
  return text.split(',').map((piece) => {
    const [, metric, limit = ''] = SLO_PATTERN.exec(piece) ?? [];
    if (metric === undefined) {
      throw usageError(
        `--slo takes limits such as 'ttft<200ms,tpot<50ms', got '${printable(piece, 40)}'`,
        'Of ttft, tpot, itl, e2e and ntpot.',
      );
    }
    const bounds = { least: 0.000_001, most: LONGEST };
    return {
      metric: metric as Slo['metric'],
      limit: parseDuration(limit, { flag: '--slo', bare: 'ms', ...bounds }),
    };
  });
}

/** `2/3`: the second of three; index from 0. */
function parsePart(values: LoadValues): LoadPlan['part'] {
  const text = values.text('part');
  if (text === null) return { index: 0, of: 1 };
  const [, index = '', of = ''] = /^(\d{1,4})\/(\d{1,4})$/.exec(text.trim()) ?? [];
  const part = { index: Number(index) - 1, of: Number(of) };
  if (of === '' || part.index < 0 || part.index >= part.of || part.of > MOST_PARTS) {
    throw usageError(`--part takes which of how many, such as 2/3, got '${printable(text, 40)}'`);
  }
  return part;
}

function parseRunId(values: LoadValues): string | null {
  const text = values.text('run-id');
  if (text === null || /^[\w.:-]{1,100}$/.test(text)) return text;
  throw usageError(
    `--run-id takes letters, digits and . : _ -, at most 100, got '${printable(text, 60)}'`,
  );
}

function parseSettings(
  values: LoadValues,
  context: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly defaults: Omit<AttachDefaults, 'duration' | 'lagThreshold'>;
  },
): LoadSettings {
  const { env, defaults } = context;
  const isKept = !values.isSet('no-recording');
  if (!isKept && values.has('output')) throw contradiction('--no-recording', '--output');
  const endpoint = values.text('otlp-endpoint') ?? defaults.otlpEndpoint ?? null;
  const protocol = values.text('otlp-protocol');
  const profile = values.text('genai-profile');
  const metricsUrl = values.text('metrics-url');
  const log = values.text('request-log');
  const pid = values.text('attach');
  return {
    recording: {
      enabled: isKept,
      path: values.text('output'),
      parent: defaults.output ?? null,
      overwrite: values.isSet('force'),
      raw: false,
    },
    otlp: {
      enabled: values.isSet('otel') || endpoint !== null || protocol !== null,
      endpoint: endpoint === null ? null : parseHttpUrl(endpoint, '--otlp-endpoint'),
      protocol: protocol === null ? null : parseChoice(protocol, OTLP_PROTOCOLS, '--otlp-protocol'),
      traceUrl: defaults.traceUrl ?? null,
    },
    genaiProfile:
      profile === null
        ? genAiProfileOf(env)
        : parseChoice(profile, GENAI_PROFILES, '--genai-profile'),
    attach: pid === null ? null : { pid: parsePid(pid) },
    gpu: parseGpu(values),
    metricsUrl: metricsUrl === null ? null : parseHttpUrl(metricsUrl, '--metrics-url'),
    metricsInterval: values.duration('metrics-interval', 0.1, LONGEST) ?? DEFAULT_METRICS_INTERVAL,
    requestLog: log === null ? null : { path: log, overwrite: values.isSet('force') },
  };
}

function parseGpu(values: LoadValues): boolean | null {
  const [wanted, unwanted] = [values.isSet('gpu'), values.isSet('no-gpu')];
  if (wanted && unwanted) throw contradiction('--gpu', '--no-gpu');
  return wanted ? true : unwanted ? false : null;
}

/** Its requests are read from the recording. */
function parseRepro(values: LoadValues): string | null {
  const folder = values.text('repro');
  if (folder !== null && values.isSet('no-recording'))
    throw contradiction('--repro', '--no-recording');
  return folder;
}

/** How a result is judged and shown. */
export function parseResult(values: LoadValues): ResultOptions {
  const named = values.text('format');
  const format = named === null ? null : parseChoice(named, LOAD_FORMATS, '-f, --format');
  if (values.isSet('json') && format !== null && format !== 'json') {
    throw contradiction('--json', `--format ${format}`);
  }
  return {
    format: values.isSet('json') ? 'json' : (format ?? 'text'),
    files: { json: values.text('save'), csv: values.text('csv'), junit: values.text('junit') },
    overwrite: values.isSet('force'),
    failOn: values.texts('fail-on'),
    baseline: values.text('baseline'),
    exitZero: values.isSet('exit-zero'),
  };
}
