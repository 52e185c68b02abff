import type { ParseArgsConfig } from 'node:util';
import type { ExitCode } from '../../core/exit-code.ts';

/** Where text goes; `process.stdout` and a test's array both fit. */
export interface TextOutput {
  readonly isTTY: boolean;
  /** Columns of the terminal; undefined when it is not one. */
  readonly columns: number | undefined;
  write(text: string): void;
}

/** Where text comes from: a pipe, a file, or a person. */
export interface TextInput {
  readonly isTTY: boolean;
  /** Everything to its end; what is beyond `limit` characters is not read. */
  text(limit: number): Promise<string>;
  /** Line by line, as a person types them. Whoever opens it closes it. */
  lines(): LineInput;
}

export interface LineInput {
  /** Without its end; null when there are no more. */
  next(): Promise<string | null>;
  close(): void;
}

/**
 * The signals that end a run. SIGHUP (terminal closed) ends it as SIGTERM does, and then trace
 * itself.
 */
export type StopSignal = 'SIGINT' | 'SIGTERM';

/** What a verb found out, in a line. */
export interface CommandResult {
  readonly summary: string;
  /** The recording or the reproduction that has it all; null where nothing was kept. */
  readonly link: string | null;
}

/** Everything a command may know of the process it runs in, so that tests can give it another one. */
export interface Environment {
  readonly stdin: TextInput;
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Is told what a verb found out, for the debugging session that is open. */
  readonly onResult?: (result: CommandResult) => void;
  /**
   * Calls `stop` at the first SIGINT, SIGTERM or SIGHUP. The second one does nothing by itself,
   * until the returned function was called: a report that is being made is not lost to it. The
   * third has its default action again.
   */
  onStop(stop: (signal: StopSignal) => void): () => void;
}

/** What `util.parseArgs` takes as `options`. */
export type OptionTable = NonNullable<ParseArgsConfig['options']>;
/** What `util.parseArgs` gave for an {@link OptionTable}. */
export type OptionValues = Readonly<
  Record<string, string | boolean | (string | boolean)[] | undefined>
>;

/** What a shell can offer for a word: the processes worth watching, folders, files, commands, one of some words, or nothing (any text). */
export type Completes = 'process' | 'folder' | 'file' | 'command' | 'text' | readonly string[];

/** A verb as its help shows it: light enough to load for `--help` alone. */
export interface Usage {
  readonly name: string;
  /** One line for the list of verbs. */
  readonly summary: string;
  /** The whole help text, ending with a line feed. */
  readonly help: string;
  readonly options: OptionTable;
  /** Flags that are understood, and neither shown by the help nor offered by a shell: other programs' names for ours. */
  readonly foreign?: OptionTable;
  /** Flags whose value may be left out (`--inspect`, `--inspect=force`), with what they mean then; a value needs the `=`. */
  readonly bare?: Readonly<Record<string, string>>;
  /** What stands behind `--` is a command with its own arguments; `optional` where an argument may stand in its place. */
  readonly takesCommand?: true | 'optional';
  /** How a shell completes the argument, and the values of flags; a flag that is not named takes any text. */
  readonly completes: {
    readonly argument: Completes;
    readonly values: Readonly<Record<string, Completes>>;
  };
}

/** What a command is run with: its parsed command line and its surroundings. */
export interface CommandContext {
  readonly values: OptionValues;
  readonly positionals: readonly string[];
  /** What stands behind `--`, for a verb that takes a command; else empty. */
  readonly command: readonly string[];
  readonly environment: Environment;
}

/** A verb that can run. Expected failures are thrown as `TraceError`; it never ends the process itself. */
export interface Command extends Usage {
  run(context: CommandContext): Promise<ExitCode>;
}

/** Flags every verb takes; allowed before the verb as well. */
export const COMMON_OPTIONS: OptionTable = {
  help: { type: 'boolean', short: 'h' },
  quiet: { type: 'boolean', short: 'q' },
  verbose: { type: 'boolean', short: 'v' },
  'no-color': { type: 'boolean' },
};

/** Flags of the verbs whose results are written into a debugging session: docs/session.md. */
export const LOGGED_OPTIONS: OptionTable = {
  session: { type: 'string' },
  'no-session': { type: 'boolean' },
};

/** How a help shows them; `column` is where its descriptions begin, at most 29. */
export function loggedHelp(column: number): string {
  const [own, below] = [column - 6, ' '.repeat(column)];
  return `      ${'--session <slug>'.padEnd(own)}the debugging session that the result is written
${below}into (default: the only open one)
      ${'--no-session'.padEnd(own)}into none
`;
}
