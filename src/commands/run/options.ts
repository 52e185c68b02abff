import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import {
  type AttachDefaults,
  type AttachOptions,
  attachUsage,
  parseAttachOptions,
} from '../attach/options.ts';
import type { OptionTable, OptionValues, Usage } from '../command-line/command.ts';
import { parseHttpUrl } from '../command-line/parse.ts';
import { FAIL_ON_WORDS, type FailOn, parseFailOn } from './fail-on.ts';
import { runHelp } from './help.ts';

/** What of attach's options makes sense for a process that trace starts. */
const SHARED = [
  'subprocesses',
  'no-subprocesses',
  'gpu',
  'no-gpu',
  'duration',
  'lag-threshold',
  'trigger',
  'trigger-before',
  'trigger-after',
  'trigger-max',
  'trigger-cooldown',
  'inspect',
  'max-pause',
  'metrics-url',
  'metrics-interval',
  'metrics',
  'no-metrics',
  'probe-url',
  'probe-interval',
  'postgres-url',
  'postgres-log',
  'format',
  'json',
  'output',
  'force',
  'no-recording',
  'raw',
  'max-size',
  'otel',
  'otlp-endpoint',
  'otlp-protocol',
  'session',
  'no-session',
  'help',
  'quiet',
  'verbose',
  'no-color',
] as const;

const OPTIONS: OptionTable = {
  ...Object.fromEntries(
    SHARED.flatMap((name) => {
      const option = attachUsage.options[name];
      return option === undefined ? [] : [[name, option] as const];
    }),
  ),
  report: { type: 'string' },
  'ready-url': { type: 'string' },
  'fail-on': { type: 'string', multiple: true },
};

/** `trace run` as its help shows it. */
export const runUsage: Usage = {
  name: 'run',
  summary: 'Start a command and watch it from its first moment on',
  help: runHelp,
  options: OPTIONS,
  bare: attachUsage.bare ?? {},
  takesCommand: true,
  completes: {
    argument: 'command',
    values: {
      ...attachUsage.completes.values,
      report: 'file',
      'fail-on': FAIL_ON_WORDS,
    },
  },
};

/** One `trace run`, decided. */
export interface RunOptions {
  /** Program and arguments; never empty. */
  readonly command: readonly string[];
  /** As attach's, without a target as long as nothing is started; `duration` null: until the command ends. */
  readonly watch: AttachOptions;
  /** The file that the report goes to, and whether one that is there may be replaced; null: stderr. */
  readonly report: { readonly path: string; readonly overwrite: boolean } | null;
  /** Asked until it answers with 2xx; null: not. */
  readonly readyUrl: string | null;
  /** Empty: the exit code is the command's whatever was found. */
  readonly failOn: readonly FailOn[];
}

/** The options of one run. Contradictions, and a command that stands in the wrong place, are usage errors. */
export function parseRunOptions(
  values: OptionValues,
  words: { readonly positionals: readonly string[]; readonly command: readonly string[] },
  defaults: AttachDefaults = {},
): RunOptions {
  const [stray] = words.positionals;
  if (stray !== undefined || words.command.length === 0) {
    throw usageError(
      stray === undefined
        ? 'there is no command behind --'
        : `'${printable(stray, 60)}' stands before --: the command and its arguments stand behind it`,
      'trace run [options] -- python app.py --port 8000',
    );
  }
  const { report, force, 'ready-url': readyUrl } = values;
  const toStderr = typeof report !== 'string';
  const watch = parseAttachOptions(
    // A configured duration is about looking at what runs already.
    {
      ...values,
      duration: values['duration'] ?? '0',
      // Without a recording it is about the file alone.
      force: values['no-recording'] === true && !toStderr ? undefined : force,
    },
    [],
    defaults,
  );
  return {
    command: words.command,
    watch: {
      ...watch,
      // A wrapper (sh, npm, uv run) is not what was meant.
      subprocesses: watch.subprocesses ?? true,
      progress: false,
      // A document on stderr is one only where nothing of ours stands beside it.
      quiet: watch.quiet || (toStderr && watch.format === 'json'),
    },
    report: toStderr ? null : { path: report, overwrite: force === true },
    readyUrl: typeof readyUrl === 'string' ? parseHttpUrl(readyUrl, '--ready-url') : null,
    failOn: parseFailOn([values['fail-on'] ?? []].flat().map(String)),
  };
}
