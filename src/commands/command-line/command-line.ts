import { parseArgs } from 'node:util';
import { usageError, type TraceError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { OptionTable, OptionValues, Usage } from './command.ts';
import { nearest } from './nearest.ts';

/** A verb's arguments, split by its own option table. Whatever the table does not know is a usage error. */
export function parseCommandLine(
  usage: Pick<Usage, 'name' | 'options' | 'bare' | 'foreign' | 'takesCommand'>,
  args: readonly string[],
): { values: OptionValues; positionals: string[]; command: readonly string[] } {
  const end = usage.takesCommand === undefined ? -1 : args.indexOf('--');
  if (usage.takesCommand === true && end === -1) {
    throw usageError(
      'the command stands behind --, and there is none',
      `trace ${usage.name} [options] -- python app.py --port 8000`,
    );
  }
  const own = end === -1 ? args : args.slice(0, end);
  try {
    const parsed = parseArgs({
      args: withBareValues(own, usage.bare ?? {}),
      options: { ...usage.foreign, ...usage.options },
      allowPositionals: true,
      strict: true,
    });
    return { ...parsed, command: end === -1 ? [] : args.slice(end + 1) };
  } catch (error) {
    throw readable(error, usage);
  }
}

/** `--inspect` becomes `--inspect=open`, which is what parseArgs understands; what stands behind `--` is left alone. */
function withBareValues(args: readonly string[], bare: Readonly<Record<string, string>>): string[] {
  const end = args.indexOf('--');
  return args.map((word, at) => {
    const value = end !== -1 && at > end ? undefined : bare[word.replace(/^--/, '')];
    return value === undefined || !word.startsWith('--') ? word : `${word}=${value}`;
  });
}

/** The same mistake in one line, naming the flag that was probably meant. Anything else passes through unchanged. */
function readable(error: unknown, usage: Pick<Usage, 'name' | 'options' | 'foreign'>): unknown {
  if (!(error instanceof TypeError) || !('code' in error)) return error;
  const message = error.message;
  if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const typed = /Unknown option '([^']*)'/.exec(message)?.[1] ?? '';
    return unknownFlag(typed, usage);
  }
  if (error.code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') {
    // parseArgs: "Option '-d, --duration <value>' argument missing", "… does not take an argument", "… argument is
    // ambiguous.\nDid you forget …". The first sentence says it all.
    const flag = /Option '([^']*)'/.exec(message)?.[1] ?? 'a flag';
    const name = flag.replace(/ <value>$/, '');
    if (message.includes('does not take an argument')) {
      return usageError(`${name} takes no value`);
    }
    const what = message.includes('ambiguous') ? 'a flag came instead' : 'none was given';
    return usageError(`${name} needs a value, ${what}`, `trace ${usage.name} --help`);
  }
  return error;
}

function unknownFlag(
  typed: string,
  usage: Pick<Usage, 'name' | 'options' | 'foreign'>,
): TraceError {
  // Ours first: of two that are as near, the one that the help shows.
  const meant = nearest(typed, [...flagsOf(usage.options), ...flagsOf(usage.foreign ?? {})]);
  return usageError(
    `unknown option '${printable(typed, 60)}'`,
    meant === null
      ? `See trace ${usage.name} --help`
      : `Did you mean ${meant}? See trace ${usage.name} --help`,
  );
}

/** Every flag of an option table as it is typed, long forms first. */
export function flagsOf(options: OptionTable): string[] {
  const shorts = Object.values(options).flatMap((option) => option.short ?? []);
  return [
    ...Object.keys(options).map((name) => `--${name}`),
    ...shorts.map((letter) => `-${letter}`),
  ];
}
