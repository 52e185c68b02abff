import { boundedDuration, writeDuration } from '../../core/duration.ts';
import { usageError } from '../../core/errors.ts';
import { parsePid } from '../../core/pid.ts';
import { printable } from '../../core/text.ts';
import type { Bytes, Seconds } from '../../core/types.ts';
import { attachHelp } from './help.ts';
import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import { parseChoice, parseDuration, parseHttpUrl, parseSize } from '../command-line/parse.ts';
import { parseServerOptions, SERVER_OPTIONS, type ServerOptions } from '../server/options.ts';
import {
  belowTriggers,
  parseTriggerOptions,
  TRIGGER_OPTIONS,
  type TriggerOptions,
} from '../flight/trigger-options.ts';

/** How long attach watches unless told otherwise: two screens of a stuttering server, short enough to wait for. */
export const DEFAULT_DURATION: Seconds = 10;
/** Shorter runs hold too few samples to say anything; Node's timers end at 24.8 days (2^31 ms). */
const DURATION_BOUNDS = { least: 1, most: 24 * 86_400 } as const;
/**
 * A loop that stands still this long is reported. Half of asyncio's own `loop.slow_callback_duration` (0.1 s), because two
 * such waits in one request are already visible to a person.
 */
export const DEFAULT_LAG_THRESHOLD: Seconds = 0.05;
/** Below 5 ms the sampling period (a quarter of it) would cost more than a twentieth of a core. */
const LAG_BOUNDS = { least: 0.005, most: 10 } as const;
/** In less a recording has hardly a few minutes before it is thinned out. */
const SIZE_BOUNDS = { least: 16 * 2 ** 20, most: 2 ** 40 } as const;
/** V8 was measured to need a second for a heap of 380 MB. */
const PAUSE_BOUNDS = { least: 0, most: 60 } as const;

/** A server with a model to load is away for minutes only when it is not coming; its process is back much sooner. */
const RESTART_WAIT: Seconds = 60;
const RESTART_BOUNDS = { least: 1, most: 86_400 } as const;

const OPTIONS = {
  pid: { type: 'string', short: 'p', multiple: true },
  match: { type: 'string' },
  all: { type: 'boolean' },
  subprocesses: { type: 'boolean' },
  'no-subprocesses': { type: 'boolean' },
  gpu: { type: 'boolean' },
  'no-gpu': { type: 'boolean' },
  'follow-restarts': { type: 'string' },
  duration: { type: 'string', short: 'd' },
  'lag-threshold': { type: 'string' },
  output: { type: 'string', short: 'o' },
  force: { type: 'boolean' },
  'no-recording': { type: 'boolean' },
  raw: { type: 'boolean' },
  'max-size': { type: 'string' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  'no-progress': { type: 'boolean' },
  otel: { type: 'boolean' },
  'otlp-endpoint': { type: 'string' },
  'otlp-protocol': { type: 'string' },
  inspect: { type: 'string' },
  'max-pause': { type: 'string' },
  'require-stacks': { type: 'boolean' },
  'exit-zero': { type: 'boolean' },
  ...TRIGGER_OPTIONS,
  ...SERVER_OPTIONS,
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

/** As OTEL_EXPORTER_OTLP_PROTOCOL has them. */
const OTLP_PROTOCOLS = ['grpc', 'http/protobuf', 'http/json'] as const;

/** `trace attach` as its help shows it. */
export const attachUsage: Usage = {
  name: 'attach',
  summary: 'Watch a running process: why it stalls, leaks or hangs',
  help: attachHelp,
  options: OPTIONS,
  bare: { inspect: 'open', 'follow-restarts': writeDuration(RESTART_WAIT) },
  completes: {
    argument: 'process',
    values: {
      pid: 'process',
      output: 'folder',
      format: ['text', 'json'],
      'otlp-protocol': OTLP_PROTOCOLS,
      'postgres-log': 'file',
    },
  },
};

/** What the configuration may decide where the command line is silent. */
export interface AttachDefaults {
  readonly duration?: Seconds | null;
  readonly lagThreshold?: Seconds;
  readonly otlpEndpoint?: string;
  /** Where traces are looked at, with `{trace_id}` in it. */
  readonly traceUrl?: string;
  /** The folder in which recordings get their own folders. */
  readonly output?: string;
}

/** One `trace attach`, decided. */
export interface AttachOptions {
  /** Which process; `list` when none was named. */
  readonly target:
    | { readonly by: 'pid'; readonly pid: number; readonly others?: readonly number[] }
    /** `all`: each process that matches; else it must be one. */
    | { readonly by: 'match'; readonly pattern: string; readonly all?: boolean }
    | { readonly by: 'list' };
  /** Watch the processes that the target started too; null: where it is a server known to spread over several. */
  readonly subprocesses: boolean | null;
  /** Read the GPUs too; null: where there are any and the target uses one. */
  readonly gpu: boolean | null;
  /** When the target ends, wait so long for it to come back under another pid; null: the run ends with it. */
  readonly followRestarts: Seconds | null;
  /** Null: until Ctrl-C or the end of the target. */
  readonly duration: Seconds | null;
  readonly lagThreshold: Seconds;
  /** Write what is around events, and nothing else; null: the whole run. */
  readonly trigger: TriggerOptions | null;
  /** What a server says of itself, and what a small request to it takes. */
  readonly server: ServerOptions;
  readonly recording: {
    readonly enabled: boolean;
    /** The folder to write to; null for a new one in the default place. */
    readonly path: string | null;
    /** The configured default place; null for `.tracewright` in the working directory. */
    readonly parent: string | null;
    /** Whether a folder that is already there may be replaced. */
    readonly overwrite: boolean;
    /** Whether each single reading is stored too. */
    readonly raw: boolean;
    /** The most it may take on disk; the writer's own limit where nothing was said. */
    readonly maxSize?: Bytes;
  };
  readonly otlp: {
    readonly enabled: boolean;
    /** Null: whatever the `OTEL_*` variables say, else the specification's default. */
    readonly endpoint: string | null;
    /** Null: as the `OTEL_*` variables say, else the specification's default. */
    readonly protocol: (typeof OTLP_PROTOCOLS)[number] | null;
    /** Where traces are looked at, with `{trace_id}` in it; null: in a Jaeger that is found to have this one. */
    readonly traceUrl: string | null;
  };
  readonly format: 'text' | 'json';
  /** Open a Node target's inspector and close it again; `force`: also where its signal handlers cannot be read. Null: never. */
  readonly inspect: 'open' | 'force' | null;
  /** How long starting V8's profiler may hold a Node target; 0 leaves its inspector alone. Null for the profiler's own limit. */
  readonly maxPause: Seconds | null;
  readonly requireStacks: boolean;
  readonly exitZero: boolean;
  readonly progress: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly noColor: boolean;
}

/** The options of one run, flag over configuration over default. Contradictions are usage errors. */
export function parseAttachOptions(
  values: OptionValues,
  positionals: readonly string[],
  defaults: AttachDefaults = {},
): AttachOptions {
  const text = (name: string) => textValue(values, name);
  const isSet = (name: string) => values[name] === true;
  const endpoint = text('otlp-endpoint') ?? defaults.otlpEndpoint ?? null;
  const protocol = text('otlp-protocol');
  if (isSet('no-recording')) {
    for (const flag of ['output', 'raw', 'max-size', 'force']) {
      if (values[flag] !== undefined) throw contradiction('--no-recording', `--${flag}`);
    }
  }
  const trigger = parseTriggerOptions(values);
  const target = chooseTarget(values, positionals);
  const followRestarts = chooseFollowRestarts(text('follow-restarts'), target);
  return {
    target,
    subprocesses: chooseEither(values, 'subprocesses'),
    gpu: chooseEither(values, 'gpu'),
    followRestarts,
    // What waits for an event or a restart is left on; a configured duration is that of looking.
    duration: chooseDuration(
      text('duration'),
      trigger === null && followRestarts === null ? defaults.duration : null,
    ),
    lagThreshold: belowTriggers(trigger, {
      threshold: chooseLagThreshold(text('lag-threshold'), defaults.lagThreshold),
      isGiven: text('lag-threshold') !== undefined,
      least: LAG_BOUNDS.least,
    }),
    trigger,
    server: parseServerOptions(values),
    recording: {
      enabled: !isSet('no-recording'),
      path: text('output') ?? null,
      parent: defaults.output ?? null,
      overwrite: isSet('force'),
      raw: isSet('raw'),
      ...chooseMaxSize(text('max-size')),
    },
    otlp: {
      // Naming a protocol asks for sending as naming an endpoint does.
      enabled: isSet('otel') || endpoint !== null || protocol !== undefined,
      endpoint: endpoint === null ? null : parseHttpUrl(endpoint, '--otlp-endpoint'),
      protocol:
        protocol === undefined ? null : parseChoice(protocol, OTLP_PROTOCOLS, '--otlp-protocol'),
      traceUrl: defaults.traceUrl ?? null,
    },
    format: chooseFormat(values),
    inspect: chooseInspect(text('inspect'), text('max-pause')),
    maxPause: chooseMaxPause(text('max-pause')),
    requireStacks: isSet('require-stacks'),
    exitZero: isSet('exit-zero'),
    progress: !isSet('no-progress') && !isSet('quiet'),
    quiet: isSet('quiet'),
    verbose: isSet('verbose'),
    noColor: isSet('no-color'),
  };
}

function chooseInspect(
  text: string | undefined,
  maxPause: string | undefined,
): AttachOptions['inspect'] {
  if (text === undefined) return null;
  if (chooseMaxPause(maxPause) === 0) throw contradiction('--inspect', '--max-pause 0');
  return parseChoice<'open' | 'force'>(text, ['open', 'force'], '--inspect');
}

function chooseMaxSize(text: string | undefined): { readonly maxSize?: Bytes } {
  return text === undefined
    ? {}
    : { maxSize: parseSize(text, { flag: '--max-size', ...SIZE_BOUNDS }) };
}

function chooseMaxPause(text: string | undefined): Seconds | null {
  if (text === undefined) return null;
  return parseDuration(text, { flag: '--max-pause', bare: 'ms', ...PAUSE_BOUNDS });
}

/** `--json` is `--format json`; asking for both, differently, is a mistake worth stopping at. */
export function chooseFormat(values: OptionValues): 'text' | 'json' {
  const named = textValue(values, 'format');
  const format =
    named === undefined ? undefined : parseChoice(named, ['text', 'json'], '-f, --format');
  if (values['json'] === true) {
    if (format === 'text') throw contradiction('--json', '--format text');
    return 'json';
  }
  return format ?? 'text';
}

function chooseTarget(
  values: OptionValues,
  positionals: readonly string[],
): AttachOptions['target'] {
  const flags = [values['pid'] ?? []].flat().map(String);
  const [pid, ...others] = new Set([...positionals, ...flags].map(parsePid));
  const pattern = textValue(values, 'match');
  const all = values['all'] === true;
  if (all && pattern === undefined) {
    throw usageError(
      '--all needs --match: it takes each process that matches',
      'Several pids can be given one after the other.',
    );
  }
  if (pattern === undefined) {
    if (pid === undefined) return { by: 'list' };
    return { by: 'pid', pid, ...(others.length === 0 ? {} : { others }) };
  }
  if (pid !== undefined) throw contradiction(`pid ${pid}`, '--match');
  if (pattern === '') {
    throw usageError('--match needs a pattern, got an empty one', 'Bare trace attach lists all.');
  }
  return { by: 'match', pattern, ...(all ? { all } : {}) };
}

/** Several targets are told apart by their pids, which a restart takes away. */
function chooseFollowRestarts(
  text: string | undefined,
  target: AttachOptions['target'],
): Seconds | null {
  if (text === undefined) return null;
  if ((target.by === 'pid' && target.others !== undefined) || (target.by === 'match' && target.all))
    throw contradiction('--follow-restarts', 'several targets');
  return parseDuration(text, { flag: '--follow-restarts', bare: 's', ...RESTART_BOUNDS });
}

/** `--x` and `--no-x`; null where neither was given. */
function chooseEither(values: OptionValues, name: 'subprocesses' | 'gpu'): boolean | null {
  const [wanted, unwanted] = [values[name] === true, values[`no-${name}`] === true];
  if (wanted && unwanted) throw contradiction(`--${name}`, `--no-${name}`);
  return wanted ? true : unwanted ? false : null;
}

function chooseDuration(
  text: string | undefined,
  configured: Seconds | null | undefined,
): Seconds | null {
  if (text === undefined) {
    if (configured === undefined) return DEFAULT_DURATION;
    if (configured === null) return null;
    return boundedDuration(configured, DURATION_BOUNDS, configuredAs('duration', configured));
  }
  if (text === '0' || text === 'inf') return null;
  return parseDuration(text, { flag: '-d, --duration', bare: 's', ...DURATION_BOUNDS });
}

function chooseLagThreshold(text: string | undefined, configured: Seconds | undefined): Seconds {
  const rule = { flag: '--lag-threshold', bare: 'ms', ...LAG_BOUNDS } as const;
  if (text !== undefined) return parseDuration(text, rule);
  if (configured === undefined) return DEFAULT_LAG_THRESHOLD;
  return boundedDuration(configured, LAG_BOUNDS, configuredAs('lag_threshold', configured));
}

function configuredAs(key: string, seconds: Seconds): { name: string; text: string } {
  return { name: `the configured ${key}`, text: writeDuration(seconds) };
}

function textValue(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

function contradiction(one: string, other: string): Error {
  return usageError(
    `${printable(one, 60)} and ${other} contradict each other`,
    'Give one of them.',
  );
}
