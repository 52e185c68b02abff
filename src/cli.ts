import type { CommandResult, Environment, OptionTable } from './commands/command-line/command.ts';
import { COMMON_OPTIONS } from './commands/command-line/command.ts';
import type { SessionLog } from './commands/session/log.ts';
import { VERBS, type Verb, verbBelow } from './commands/registry.ts';
import { TraceError, usageError } from './core/errors.ts';
import { EXIT, type ExitCode } from './core/exit-code.ts';
import { printable } from './core/text.ts';

/** Runs one command line (without node and script) and says how it ended. Throws nothing, ends nothing. */
export async function main(argv: readonly string[], environment: Environment): Promise<ExitCode> {
  try {
    return await dispatch(argv, environment);
  } catch (error) {
    // Where it cannot be loaded, that files are lacking is all that is said.
    const safe = await masked(environment).catch(() => environment);
    return report(await explained(error), safe, isVerbose(argv));
  }
}

async function dispatch(argv: readonly string[], given: Environment): Promise<ExitCode> {
  const at = argv.findIndex((word) => !word.startsWith('-'));
  const name = at === -1 ? undefined : argv[at];
  if (name === undefined) return withoutVerb(argv, given);
  const behind = [...argv.slice(0, at), ...argv.slice(at + 1)];
  if (name === 'help')
    return help(
      behind.filter((word) => !word.startsWith('-')),
      given,
    );
  const early = argv.slice(0, at).find((word) => !isCommonFlag(word));
  if (early !== undefined) {
    throw usageError(
      `${printable(early, 40)} stands before the verb`,
      'A verb comes first, its options after it: trace attach -d 10 <pid>',
    );
  }
  const { verb, args } = verbBelow(await verbNamed(name), behind);
  if (asksForHelp(args)) return helpOf(verb, given);
  // Before anything else is loaded: with too few, that itself would fail.
  const { requireDescriptors } = await import('./platform/descriptor-limit.ts');
  requireDescriptors();
  const environment = await masked(given);
  const { parseCommandLine } = await import('./commands/command-line/command-line.ts');
  // The light part first: a wrong flag is said before anything heavy is loaded.
  const usage = await verb.usage();
  const parsed = parseCommandLine(usage, args);
  const command = await verb.command();
  if (!('no-session' in usage.options)) return command.run({ ...parsed, environment });
  const openLog = async (): Promise<SessionLog> =>
    (await import('./commands/session/log.ts')).SessionLog.open(argv, parsed.values, environment);
  // A session that is named has to be there before anything runs. Which one is open is asked when there is something to write: a start costs nothing for it.
  const named = parsed.values['session'] === undefined ? null : await openLog();
  const results: CommandResult[] = [];
  const onResult = (result: CommandResult): number => results.push(result);
  try {
    return await command.run({ ...parsed, environment: { ...environment, onResult } });
  } finally {
    if (results.length > 0 && parsed.values['no-session'] !== true)
      await (named ?? (await openLog())).write(results);
  }
}

/** `trace`, `trace --help`, `trace --version`, or a flag with nothing to apply to. */
async function withoutVerb(argv: readonly string[], environment: Environment): Promise<ExitCode> {
  if (asksForHelp(argv)) return help([], environment);
  if (argv.includes('--version') || argv.includes('-V')) {
    const { toolVersion } = await import('./commands/version.ts');
    environment.stdout.write(`trace ${toolVersion()}\n`);
    return EXIT.ok;
  }
  const { parseCommandLine } = await import('./commands/command-line/command-line.ts');
  const options: OptionTable = { ...COMMON_OPTIONS, version: { type: 'boolean', short: 'V' } };
  parseCommandLine({ name: '', options }, argv);
  const { HELP } = await import('./commands/command-line/help.ts');
  environment.stderr.write(HELP);
  return EXIT.usage;
}

async function help(names: readonly string[], environment: Environment): Promise<ExitCode> {
  const [name, ...below] = names;
  if (name !== undefined) return helpOf(verbBelow(await verbNamed(name), below).verb, environment);
  environment.stdout.write((await import('./commands/command-line/help.ts')).HELP);
  return EXIT.ok;
}

async function helpOf(verb: Verb, environment: Environment): Promise<ExitCode> {
  environment.stdout.write((await verb.usage()).help);
  return EXIT.ok;
}

async function verbNamed(name: string): Promise<Verb> {
  const verb = VERBS.find((one) => one.name === name);
  if (verb !== undefined) return verb;
  const shown = printable(name, 60);
  if (/^\d+$/.test(name)) {
    throw usageError(`'${shown}' is not a verb`, `Did you mean trace attach ${shown}?`);
  }
  const { nearest } = await import('./commands/command-line/nearest.ts');
  const names = VERBS.map((one) => one.name);
  const meant = nearest(name, [...names, 'help']);
  throw usageError(
    `unknown verb '${shown}'`,
    meant === null
      ? `Verbs: ${names.join(', ')}. See trace --help`
      : `Did you mean trace ${meant}? See trace --help`,
  );
}

/** Whether a word is a flag that any verb takes, and so may come first. */
function isCommonFlag(word: string): boolean {
  return Object.entries(COMMON_OPTIONS).some(
    ([name, option]) =>
      word === `--${name}` || ('short' in option && word === `-${String(option.short)}`),
  );
}

/** What stands behind `--` belongs to the target, not to us. */
function ownArguments(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--');
  return end === -1 ? args : args.slice(0, end);
}

function asksForHelp(args: readonly string[]): boolean {
  return ownArguments(args).some((word) => word === '--help' || word === '-h');
}

function isVerbose(argv: readonly string[]): boolean {
  return ownArguments(argv).some((word) => word === '--verbose' || word === '-v');
}

/** With an output for messages that shows no credential. A help needs none, and costs nothing. */
async function masked(environment: Environment): Promise<Environment> {
  const { maskedOutput } = await import('./commands/command-line/masked-output.ts');
  // Nothing is asked for on the way: the working folder, which not every verb needs, may be gone.
  return Object.defineProperties({} as Environment, {
    ...Object.getOwnPropertyDescriptors(environment),
    stderr: { value: maskedOutput(environment.stderr), enumerable: true },
  });
}

/** What looks like a bug and comes of a lack of open files, as that lack. */
async function explained(error: unknown): Promise<unknown> {
  if (error instanceof TraceError) return error;
  try {
    const { lackOfDescriptors } = await import('./platform/descriptor-limit.ts');
    return lackOfDescriptors(error) ?? error;
  } catch {
    return error;
  }
}

/** An expected failure as `trace: what` and its remedy; anything else as the bug it is, with its stack. */
function report(error: unknown, environment: Environment, verbose: boolean): ExitCode {
  if (!(error instanceof TraceError)) {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    environment.stderr.write(
      `trace: this is a bug in trace\n\n${stack}\n\n` +
        `Please report it with the text above, what \`trace --version\` says, and Node's ${process.version}.\n`,
    );
    return EXIT.internal;
  }
  const indent = '       ';
  const lines = [`trace: ${error.message}`];
  for (const line of error.remedy?.split('\n') ?? []) lines.push(`${indent}${line}`.trimEnd());
  if (verbose) {
    lines.push(`${indent}(${error.code})`);
    if (error.cause instanceof Error) lines.push(`${indent}caused by ${error.cause.stack ?? ''}`);
  }
  environment.stderr.write(`${lines.join('\n')}\n`);
  return error.exitCode;
}
