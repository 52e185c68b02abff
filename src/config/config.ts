import { dirname, isAbsolute, join, normalize, resolve } from 'node:path';
import { readDuration } from '../core/duration.ts';
import { type TraceError, usageError } from '../core/errors.ts';
import { maskText } from '../core/secrets/mask.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { leadsOutside, readSettings } from './settings-file.ts';

/**
 * What the user set beforehand, for where the command line is silent: environment over `.tracewright/config.json` over the
 * user's `tracewright/config.json` under XDG_CONFIG_HOME.
 */

/** Settings that were made anywhere; what is absent was not set. */
export interface Config {
  readonly lagThreshold?: Seconds;
  /** Null: until Ctrl-C. */
  readonly duration?: Seconds | null;
  readonly otlpEndpoint?: string;
  /** Where an exported trace is looked at: a URL with `{trace_id}` in it. */
  readonly traceUrl?: string;
  /** The folder in which recordings get their own folders, absolute. */
  readonly output?: string;
  /** Files of notes that a session shows, absolute; in place of the usual ones. */
  readonly notes?: readonly string[];
  /** Commands of a shell that make a backend anew from its checkout, by its name. */
  readonly rebuild?: Readonly<Record<string, readonly string[]>>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a value stands, for error messages and for what is allowed there. */
interface Origin {
  readonly kind: 'environment' | 'project' | 'user';
  /** The file; null for the environment. */
  readonly file: string | null;
  /** Relative paths start here. */
  readonly folder: string;
}

interface Setting {
  readonly key:
    | 'lag_threshold'
    | 'duration'
    | 'otlp_endpoint'
    | 'trace_url'
    | 'output'
    | 'notes'
    | 'rebuild';
  /** Whether a checked-out project must not decide it: why, and what to use instead. */
  readonly personal?: string;
  readonly variable: string | null;
  read(value: unknown, origin: Origin): Config | null;
  /** What a value has to be, to end the sentence "… is X, not". */
  readonly wanted: string;
}

/** Files of notes; a person keeps two or three. */
const NOTES_LIMIT = 16;
/** Commands of one rebuild. */
const COMMANDS_LIMIT = 16;
/** With any of these set the environment decides where OTLP goes. */
const OTLP_VARIABLES: readonly string[] = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
];

const SETTINGS: readonly Setting[] = [
  {
    key: 'lag_threshold',
    variable: 'TRACEWRIGHT_LAG_THRESHOLD',
    wanted: 'a time such as "50ms" or 0.05 (seconds)',
    read(value, origin) {
      const seconds = toSeconds(value, nameOf(this, origin));
      return seconds === null ? null : { lagThreshold: seconds };
    },
  },
  {
    key: 'duration',
    variable: 'TRACEWRIGHT_DURATION',
    wanted: 'a time such as "30s" or 30 (seconds), or null for until Ctrl-C',
    read(value, origin) {
      if (value === null) return { duration: null };
      const seconds = toSeconds(value, nameOf(this, origin));
      return seconds === null ? null : { duration: seconds };
    },
  },
  {
    key: 'otlp_endpoint',
    // OTEL_EXPORTER_OTLP_ENDPOINT is its variable, read by the exporter itself with all the others.
    variable: null,
    personal:
      'A checked-out project must not decide where data goes: use --otlp-endpoint, OTEL_EXPORTER_OTLP_ENDPOINT or your own configuration.',
    wanted: 'an http:// or https:// URL',
    read(value) {
      if (typeof value !== 'string' || !/^https?:\/\//.test(value)) return null;
      return URL.canParse(value) ? { otlpEndpoint: value } : null;
    },
  },
  {
    key: 'trace_url',
    variable: 'TRACEWRIGHT_TRACE_URL',
    personal:
      'A checked-out project must not decide what you click on: use TRACEWRIGHT_TRACE_URL or your own configuration.',
    wanted: 'an http:// or https:// URL with {trace_id} in it',
    read(value) {
      if (typeof value !== 'string' || !/^https?:\/\/\S*\{trace_id\}\S*$/.test(value)) return null;
      return URL.canParse(value) ? { traceUrl: value } : null;
    },
  },
  {
    key: 'output',
    variable: 'TRACEWRIGHT_OUTPUT',
    wanted: 'a path (in a project: a relative one inside it, and by no link out of it)',
    read(value, { kind, folder }) {
      if (typeof value !== 'string' || value === '' || value.includes('\0')) return null;
      const output = resolve(folder, value);
      if (kind !== 'project') return { output };
      // A checked-out project must not make trace, perhaps under sudo, write elsewhere.
      const leaves = isAbsolute(value) || normalize(value).startsWith('..');
      return leaves || leadsOutside(output, folder) ? null : { output };
    },
  },
  {
    key: 'notes',
    variable: 'TRACEWRIGHT_NOTES',
    wanted:
      'a list of files, in the variable with colons between them (in a project: relative ones inside it)',
    read(value, { kind, folder }) {
      const files: unknown = kind === 'environment' ? String(value).split(':') : value;
      if (!Array.isArray(files) || files.length > NOTES_LIMIT) return null;
      // A checked-out project must not have other files of the user's copied into a session.
      const isUsable = files.every(
        (file: unknown) =>
          typeof file === 'string' &&
          file !== '' &&
          !file.includes('\0') &&
          !(kind === 'project' && (isAbsolute(file) || normalize(file).startsWith('..'))),
      );
      return isUsable ? { notes: files.map((file) => resolve(folder, String(file))) } : null;
    },
  },
  {
    key: 'rebuild',
    variable: null,
    wanted: 'a list of commands for each backend, as {"vllm": ["make develop"]}',
    read(value) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
      const commands = Object.entries(value);
      const isUsable = commands.every(
        ([, list]: readonly [string, unknown]) =>
          Array.isArray(list) &&
          list.length > 0 &&
          list.length <= COMMANDS_LIMIT &&
          list.every((one: unknown) => typeof one === 'string' && /^[^\0\n]+$/.test(one)),
      );
      return isUsable ? { rebuild: Object.fromEntries(commands) } : null;
    },
  },
];

/**
 * All settings that were made beforehand; rejects with a usage error that names file and key when
 * one cannot be used, and the file where it is not ours to believe.
 */
export async function loadConfig(options: {
  readonly cwd: string;
  readonly env: Environment;
}): Promise<Config> {
  const { cwd, env } = options;
  const project = join(cwd, '.tracewright', 'config.json');
  const user = join(userDirectory(env), 'tracewright', 'config.json');
  const config = {
    ...readConfigFile({ kind: 'user', file: user, folder: dirname(user) }, env),
    ...readConfigFile({ kind: 'project', file: project, folder: cwd }, env),
    ...readEnvironment(env, cwd),
  };
  if (!OTLP_VARIABLES.some((name) => (env[name] ?? '') !== '')) return config;
  const { otlpEndpoint: _, ...others } = config;
  return others;
}

function userDirectory(env: Environment): string {
  const xdg = env['XDG_CONFIG_HOME'];
  // The XDG specification has relative paths ignored.
  if (xdg !== undefined && isAbsolute(xdg)) return xdg;
  return join(env['HOME'] ?? '/', '.config');
}

function readConfigFile(origin: Origin & { readonly file: string }, env: Environment): Config {
  const { file, kind } = origin;
  const text = readSettings(file, env);
  if (text === null) return {};
  let config: Config = {};
  for (const [key, value] of Object.entries(parseFile(file, text))) {
    const setting = SETTINGS.find((known) => known.key === key);
    if (setting === undefined)
      throw usageError(
        `${printable(file)}: unknown key ${printable(JSON.stringify(key), 60)}`,
        `Known keys: ${SETTINGS.map((known) => known.key).join(', ')}.`,
      );
    if (kind === 'project' && setting.personal !== undefined)
      throw usageError(
        `${printable(file)}: ${setting.key} may not stand in a project's file`,
        setting.personal,
      );
    config = { ...config, ...readSetting(setting, value, origin) };
  }
  return config;
}

function parseFile(file: string, text: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? printable(error.message) : 'unreadable';
    throw usageError(`${printable(file)} is not JSON: ${why}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw usageError(`${printable(file)} is not a JSON object`);
  return parsed as Readonly<Record<string, unknown>>;
}

function readEnvironment(env: Environment, cwd: string): Config {
  let config: Config = {};
  for (const setting of SETTINGS) {
    const text = setting.variable === null ? undefined : env[setting.variable];
    if (text === undefined || text === '') continue;
    const origin = { kind: 'environment', file: null, folder: cwd } as const;
    config = { ...config, ...readSetting(setting, text, origin) };
  }
  return config;
}

function readSetting(setting: Setting, value: unknown, origin: Origin): Config {
  const config = setting.read(value, origin);
  if (config === null) throw unusable(setting, value, origin);
  return config;
}

function unusable(setting: Setting, value: unknown, origin: Origin): TraceError {
  const said = printable(maskText(JSON.stringify(value)), 60);
  return usageError(`${nameOf(setting, origin)} is ${said}, not ${setting.wanted}`);
}

/** A setting by where it was made: the variable, or the file and the key. */
function nameOf({ key, variable }: Pick<Setting, 'key' | 'variable'>, origin: Origin): string {
  return origin.file === null ? (variable ?? key) : `${printable(origin.file)}: ${key}`;
}

/**
 * A positive number of seconds, or a text with a unit; null for anything else. Throws for a text
 * that is none.
 */
function toSeconds(value: unknown, name: string): Seconds | null {
  // A bare number is seconds in the file and milliseconds at --lag-threshold: a text says which.
  const seconds = typeof value === 'string' ? readDuration(value, name, null) : value;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 ? seconds : null;
}
