import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { renderSessionJson, sessionDocument } from '../../report/session/document.ts';
import { renderSessionList } from '../../report/session/text.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { readOrSay, SESSION_OPTIONS, storeOf, surfaceOf } from './opening.ts';

const help = `trace session list - the sessions that are open

Usage:
  trace session list [options]

A number, slug and status each, what is being tested and what comes next. GSD's
files in the same folder are listed, too.

Options:
      --all             also those that are resolved or abandoned
      --dir <folder>    where sessions are (default .planning/debug, here or in
                        the nearest folder above that has one)
      --json            one document on stdout
  -q, --quiet           nothing on stderr but errors
  -v, --verbose         errors with their code and cause
      --no-color        no colour

Exit codes:
  0    listed, also when there is none
  2    wrong usage
  70   a bug in trace

Examples:
  trace session list
  trace session list --all --json | jq '.sessions[].slug'

More: docs/session.md
`;

const { session: _, ...options } = SESSION_OPTIONS;

/** `trace session list` as its help shows it. */
export const sessionListUsage: Usage = {
  name: 'session list',
  summary: 'The sessions that are open',
  help,
  options: { ...options, all: { type: 'boolean' } },
  completes: { argument: [], values: { dir: 'folder' } },
};

/** `trace session list`: by status, never by what a name says. */
export const sessionListCommand: Command = { ...sessionListUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const all = context.values['all'] === true;
  const store = storeOf(context);
  const rows = store
    .files({ resolved: all })
    .flatMap((file) => readOrSay(store, file, context) ?? [])
    .filter(
      ({ session }) => all || (session.status !== 'resolved' && session.status !== 'abandoned'),
    );
  context.environment.stdout.write(
    context.values['json'] === true
      ? renderSessionJson('list', toolVersion(), {
          folder: store.folder,
          sessions: rows.map(sessionDocument),
        })
      : renderSessionList(rows, { surface: surfaceOf(context), folder: store.folder }),
  );
  return EXIT.ok;
}
