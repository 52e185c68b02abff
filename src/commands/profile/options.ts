import { usageError } from '../../core/errors.ts';
import { parsePid } from '../../core/pid.ts';
import { PROFILE_MODES, type ProfileMode } from '../../core/profile.ts';
import type { Ratio, Seconds } from '../../core/types.ts';
import type { TargetSelector } from '../../platform/target.ts';
import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import {
  type DurationRule,
  invalidValue,
  parseChoice,
  parseCount,
  parseDuration,
} from '../command-line/parse.ts';
import { profileHelp } from './help.ts';

/** How long a profile takes unless told otherwise: a thousand looks. */
const DEFAULT_DURATION: Seconds = 10;
const DURATION_BOUNDS = { least: 0.1, most: 86_400 } as const;
/** Looks a second: what other profilers take, and costs 1 % of a core for a thread that runs. */
const DEFAULT_RATE = 100;
/** More than a thousand a second read the stack of a busy thread for a tenth of the time. */
const RATE_BOUNDS = { least: 1, most: 1000 } as const;
/** Each look of `--native` stops the process and takes a tenth of a second or more. */
const DEFAULT_NATIVE_RATE = 2;
const NATIVE_RATE_BOUNDS = { least: 1, most: 10 } as const;
/** Cores; in percent on the command line. */
const DEFAULT_OVERHEAD: Ratio = 0.03;
const OVERHEAD_BOUNDS = { least: 0.1, most: 100 } as const;
/** As `trace attach` has them. */
const DEFAULT_LAG_THRESHOLD: Seconds = 0.05;
const LAG_BOUNDS = { least: 0.005, most: 10 } as const;
const PAUSE_BOUNDS = { least: 0, most: 60 } as const;
const DEFAULT_TOP = 15;
const TOP_BOUNDS = { least: 1, most: 1000 } as const;

const OPTIONS = {
  pid: { type: 'string', short: 'p' },
  match: { type: 'string' },
  subprocesses: { type: 'boolean' },
  duration: { type: 'string', short: 'd' },
  mode: { type: 'string', short: 'm' },
  rate: { type: 'string', short: 'r' },
  'max-overhead': { type: 'string' },
  exact: { type: 'boolean' },
  native: { type: 'string' },
  'lag-threshold': { type: 'string' },
  inspect: { type: 'string' },
  'max-pause': { type: 'string' },
  top: { type: 'string', short: 'n' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  output: { type: 'string', short: 'o' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

/** Which tool reads native frames; `any`: the one that is there. */
const NATIVE_CHOICES = ['any', 'eu-stack', 'py-spy'] as const;
export type NativeChoice = (typeof NATIVE_CHOICES)[number];

/** What a profile can be written as. */
const FORMATS = ['text', 'json', 'pprof', 'speedscope', 'collapsed', 'chrome'] as const;
export type ProfileFormat = (typeof FORMATS)[number];

/** What a file's name says of its format; the first that fits. */
const ENDINGS: readonly (readonly [RegExp, ProfileFormat])[] = [
  [/\.(?:pprof|pb|prof)(?:\.gz)?$/, 'pprof'],
  [/\.(?:chrome|trace)\.json$/, 'chrome'],
  [/\.speedscope(?:\.json)?$/, 'speedscope'],
  [/\.(?:folded|collapsed)(?:\.txt)?$/, 'collapsed'],
  [/\.json$/, 'json'],
  [/\.txt$/, 'text'],
];

/** `trace profile` as its help shows it. */
export const profileUsage: Usage = {
  name: 'profile',
  summary: 'Say where a process spends its time, by function',
  help: profileHelp,
  options: OPTIONS,
  bare: { inspect: 'open', native: 'any' },
  completes: {
    argument: 'process',
    values: {
      pid: 'process',
      output: 'file',
      native: NATIVE_CHOICES,
      mode: PROFILE_MODES,
      format: FORMATS,
    },
  },
};

/** One `trace profile`, decided. */
export interface ProfileOptions {
  readonly target:
    | { readonly by: 'pid'; readonly pid: number }
    | { readonly by: 'match'; readonly pattern: string }
    /** No process: what a recording holds of one. */
    | { readonly by: 'recording'; readonly path: string };
  readonly subprocesses: boolean;
  /** Null: until Ctrl-C or the end of the target. */
  readonly duration: Seconds | null;
  readonly mode: ProfileMode;
  /** Looks a second. */
  readonly rate: number;
  /** The kernel's own account of when threads ran, beside the stacks. */
  readonly exact: boolean;
  /** Native frames, by a tool that stops the process for each look. */
  readonly native: NativeChoice | null;
  readonly maxOverhead: Ratio;
  readonly lagThreshold: Seconds;
  /** Open a Node target's inspector; `force`: also where its signal handlers cannot be read. Null: use one that is open. */
  readonly inspect: 'open' | 'force' | null;
  /** How long starting V8's profiler may hold a Node target; null for the profiler's own limit. */
  readonly maxPause: Seconds | null;
  readonly top: number;
  readonly format: ProfileFormat;
  /** Null: the terminal gets the result; `-` is the same, with a format that is no text too. */
  readonly output: string | null;
  readonly quiet: boolean;
  readonly noColor: boolean;
}

/** How the process is found. A recording is none: that is decided before. */
export function selectorOf(target: ProfileOptions['target']): TargetSelector {
  if (target.by === 'recording') throw new TypeError('a recording is no process');
  return target.by === 'pid' ? { pid: target.pid } : { match: target.pattern };
}

/** The options of one run, or a usage error. */
export function parseProfileOptions(
  values: OptionValues,
  positionals: readonly string[],
): ProfileOptions {
  const text = (name: string): string | undefined => {
    const value = values[name];
    return typeof value === 'string' ? value : undefined;
  };
  const native = text('native');
  const top = text('top');
  const inspect = text('inspect');
  const output = text('output') ?? null;
  const target = chooseTarget(positionals, text('pid'), text('match'));
  return {
    target,
    subprocesses: values['subprocesses'] === true,
    duration: chooseDuration(text('duration')),
    mode: chooseMode(text('mode') ?? (target.by === 'recording' ? 'blocked' : undefined), values),
    exact: values['exact'] === true,
    native: native === undefined ? null : parseChoice(native, NATIVE_CHOICES, '--native'),
    rate: chooseRate(text('rate'), native !== undefined),
    maxOverhead: chooseOverhead(text('max-overhead')),
    lagThreshold: optional(text('lag-threshold'), LAG_RULE) ?? DEFAULT_LAG_THRESHOLD,
    inspect:
      inspect === undefined ? null : parseChoice(inspect, ['open', 'force'] as const, '--inspect'),
    maxPause: optional(text('max-pause'), PAUSE_RULE),
    top: top === undefined ? DEFAULT_TOP : parseCount(top, { flag: '-n, --top', ...TOP_BOUNDS }),
    format: chooseFormat(values, output),
    output: output === '-' ? null : output,
    quiet: values['quiet'] === true,
    noColor: values['no-color'] === true,
  };
}

/** `--exact` has to know the stacks of those who wait, too. */
function chooseMode(text: string | undefined, values: OptionValues): ProfileMode {
  const exact = values['exact'] === true;
  const mode = parseChoice(text ?? (exact ? 'wall' : 'cpu'), PROFILE_MODES, '-m, --mode');
  if (exact && mode !== 'wall')
    throw usageError(
      `--exact and --mode ${mode} contradict each other`,
      '--exact tells of each thread when it ran and when it waited, as --mode wall does.',
    );
  if (values['native'] !== undefined) refuseBesideNative(mode, values);
  return mode;
}

/** A path, or a recording's name as trace gives it: no pid looks so. */
const RECORDING = /[/.]|^\d{8}T\d{6}Z-/;

/** What the looks of another program cannot tell. */
function refuseBesideNative(mode: ProfileMode, values: OptionValues): void {
  const other = ['exact', 'inspect', 'subprocesses', 'max-overhead'].find(
    (name) => values[name] !== undefined && values[name] !== false,
  );
  const flag = other === undefined ? `--mode ${mode}` : `--${other}`;
  if (other !== undefined || mode === 'gil' || mode === 'blocked')
    throw usageError(
      `--native and ${flag} contradict each other`,
      'With --native another program looks, at one process, in mode cpu or wall.',
    );
}

/** Looks a second. */
function chooseRate(text: string | undefined, native: boolean): number {
  if (text === undefined) return native ? DEFAULT_NATIVE_RATE : DEFAULT_RATE;
  const bounds = native ? NATIVE_RATE_BOUNDS : RATE_BOUNDS;
  return parseCount(text.replace(/ ?hz$/i, ''), { flag: '-r, --rate', ...bounds });
}

function chooseTarget(
  positionals: readonly string[],
  flag: string | undefined,
  pattern: string | undefined,
): ProfileOptions['target'] {
  const [path = '', more] = positionals;
  if (RECORDING.test(path) && more === undefined && flag === undefined && pattern === undefined)
    return { by: 'recording', path };
  const words = [...positionals, ...(flag === undefined ? [] : [flag])];
  const pids = new Set(words.map(parsePid));
  const [pid, another] = pids;
  if (another !== undefined)
    throw usageError(
      `one process at a time, got pids ${[...pids].join(', ')}`,
      'With --subprocesses those that it started are profiled too.',
    );
  if (pid !== undefined && pattern !== undefined)
    throw usageError(`pid ${pid} and --match contradict each other`, 'Give one of them.');
  if (pid !== undefined) return { by: 'pid', pid };
  if (pattern !== undefined && pattern !== '') return { by: 'match', pattern };
  throw usageError('no process named', 'trace profile <pid>; trace attach lists what there is');
}

const LAG_RULE = { flag: '--lag-threshold', bare: 'ms', ...LAG_BOUNDS } as const;
const PAUSE_RULE = { flag: '--max-pause', bare: 'ms', ...PAUSE_BOUNDS } as const;

function optional(text: string | undefined, rule: DurationRule): Seconds | null {
  return text === undefined ? null : parseDuration(text, rule);
}

function chooseDuration(text: string | undefined): Seconds | null {
  if (text === undefined) return DEFAULT_DURATION;
  if (text === '0' || text === 'inf') return null;
  return parseDuration(text, { flag: '-d, --duration', bare: 's', ...DURATION_BOUNDS });
}

/** `3`, `3%`, `0.5 %`: percent of a core. */
function chooseOverhead(text: string | undefined): Ratio {
  if (text === undefined) return DEFAULT_OVERHEAD;
  const match = /^(\d{1,3}(?:\.\d{1,3})?|\.\d{1,3}) ?%?$/.exec(text.trim());
  const percent = Number(match?.[1] ?? Number.NaN);
  const { least, most } = OVERHEAD_BOUNDS;
  if (!(percent >= least && percent <= most))
    throw invalidValue('--max-overhead', text, `a share of a core from ${least}% to ${most}%`);
  return percent / 100;
}

/** What was asked for by name, else what the file's name says, else the table. */
function chooseFormat(values: OptionValues, output: string | null): ProfileFormat {
  const named = values['format'];
  const format =
    typeof named === 'string' ? parseChoice(named, FORMATS, '-f, --format') : undefined;
  if (values['json'] === true) {
    if (format !== undefined && format !== 'json')
      throw usageError(`--json and --format ${format} contradict each other`, 'Give one of them.');
    return 'json';
  }
  if (format !== undefined) return format;
  if (output === null || output === '-') return 'text';
  const known = ENDINGS.find(([ending]) => ending.test(output))?.[1];
  if (known !== undefined) return known;
  throw usageError(
    `the name of the output file does not tell its format`,
    `End it in .pprof, .speedscope.json, .collapsed, .chrome.json, .json or .txt, or name a --format.`,
  );
}
