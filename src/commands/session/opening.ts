import { resolve } from 'node:path';
import { TraceError, usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import type { Session } from '../../core/session.ts';
import { decodeList } from '../../core/session-value.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import {
  renderSessionJson,
  sessionDocument,
  type SessionRow,
} from '../../report/session/document.ts';
import { renderDone } from '../../report/session/text.ts';
import { decideSurface, type Surface } from '../../report/style.ts';
import { nextSteps } from '../../session/next-steps.ts';
import { openFiles, type SessionFile, sessionFolder, SessionStore } from '../../session/store.ts';
import {
  COMMON_OPTIONS,
  type CommandContext,
  type OptionTable,
  type OptionValues,
} from '../command-line/command.ts';
import { toolVersion } from '../version.ts';

/** What the verbs below `trace session` share: which session is meant, and how they answer. */

/** Flags of every verb that works in a session. */
export const SESSION_OPTIONS: OptionTable = {
  session: { type: 'string' },
  dir: { type: 'string' },
  json: { type: 'boolean' },
  ...COMMON_OPTIONS,
};

/** How the help of each shows them. */
export const SESSION_HELP = `      --session <slug>  which session (default: the only open one)
      --dir <folder>    where sessions are (default .planning/debug, here or in
                        the nearest folder above that has one)
      --json            one document on stdout
  -q, --quiet           nothing on stderr but errors
  -v, --verbose         errors with their code and cause
      --no-color        no colour
`;

/** A session that was found. */
export interface Opened {
  readonly store: SessionStore;
  readonly file: SessionFile;
}

/** Text of a flag; null where it was not given. */
export function textOf(values: OptionValues, name: string): string | null {
  const value = values[name];
  return typeof value === 'string' ? value : null;
}

/** Where sessions are kept. */
export function storeOf({ values, environment }: CommandContext): SessionStore {
  const asked = textOf(values, 'dir');
  const folder = asked === null ? null : resolve(environment.cwd, asked);
  return new SessionStore(sessionFolder(environment.cwd, folder), { worklogs: environment.cwd });
}

/** The session that is meant: the named one, else that of `--session`, else the only one that is open. `purpose` ends the message when there is none: `to show`. */
export function openSession(
  context: CommandContext,
  named: string | null = null,
  purpose: string = '',
): Opened {
  const store = storeOf(context);
  const slug = named ?? textOf(context.values, 'session');
  if (slug !== null) return { store, file: store.find(slug, purpose) };
  const open = openFiles(store);
  const [file, ...others] = open;
  if (file === undefined) {
    throw new TraceError('ERR_NO_SESSION', 'there is no open session', {
      exitCode: EXIT.notFound,
      remedy: "trace session start 'what is wrong' begins one.",
    });
  }
  if (others.length > 0) {
    throw usageError(
      `${open.length} sessions are open`,
      `Name one with --session: ${open
        .slice(0, 10)
        .map((one) => printable(one.slug, 60))
        .join(', ')}`,
    );
  }
  return { store, file };
}

/**
 * A session's file as it is read; null where it is damaged, which is said and keeps nobody from the
 * others.
 */
export function readOrSay(
  store: SessionStore,
  file: SessionFile,
  { environment }: CommandContext,
): SessionRow | null {
  try {
    return { session: store.read(file), path: file.path, isResolved: file.isResolved };
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    environment.stderr.write(`trace: ${error.message}\n`);
    return null;
  }
}

/** Whether somebody is there to answer, and wants to be asked. */
export function isAtTerminal({ environment, values }: CommandContext): boolean {
  const isQuiet = values['quiet'] === true || values['json'] === true;
  return environment.stdin.isTTY && environment.stdout.isTTY && !isQuiet;
}

/** What an output can show. */
export function surfaceOf({ environment, values }: CommandContext): Surface {
  const { stdout, env } = environment;
  const { isTTY, columns } = stdout;
  return decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
}

/** Prints the session that is meant, as `render` has it or as a document with `rest` in it. */
export function show(
  context: CommandContext,
  { store, file }: Opened,
  {
    verb,
    render,
    rest = {},
  }: {
    readonly verb: string;
    readonly render: (row: SessionRow) => string;
    readonly rest?: Readonly<Record<string, unknown>>;
  },
): SessionRow {
  const row = { session: store.read(file), path: file.path, isResolved: file.isResolved };
  context.environment.stdout.write(
    context.values['json'] === true
      ? renderSessionJson(verb, toolVersion(), { ...rest, session: sessionDocument(row) })
      : render(row),
  );
  return row;
}

/** Says what was done in a session, and what comes next; or the session as it is now, for scripts. */
export function answer(
  context: CommandContext,
  verb: string,
  opened: Opened,
  done: readonly string[],
): ExitCode {
  show(context, opened, {
    verb,
    rest: { done },
    render: ({ session }) =>
      renderDone(done, { surface: surfaceOf(context), next: nextSteps(session) }),
  });
  return EXIT.ok;
}

/**
 * The command that attempts run, as a person reads it; whole, since it may come with a checkout.
 */
export function commandText({ reproduction }: Session): string {
  const command = decodeList(reproduction['command'] ?? '');
  return command.length === 0 ? 'none' : printable(command.map(quoteForShell).join(' '), 4000);
}

/** Why nothing is run for an approval that the file alone tells of. */
export function approveAgain(session: Session): readonly string[] {
  return [
    `look at what would be run: ${commandText(session)}`,
    'if you want that, approve it yourself: trace session approve',
  ];
}

/** A gate that does not open: what is missing. */
export function gateError(message: string, missing: readonly string[]): TraceError {
  return new TraceError('ERR_GATE', message, {
    exitCode: EXIT.finding,
    remedy: missing.map((one) => `- ${one}`).join('\n'),
  });
}
