import { appendFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorCode } from '../../core/errors.ts';
import type { Session } from '../../core/session.ts';
import { printable } from '../../core/text.ts';
import type { CommandContext } from '../command-line/command.ts';
import { makeFolder } from '../../platform/make-folder.ts';

/** What a session taught, for the project's collection; offered where it was not asked for. */

const OFFERED = 'docs/retrospectives.md';
const LIMIT = 500;

/** Appends an entry, or says how one is. A collection that cannot be written does not undo the resolution. */
export function retrospect(
  path: string | null,
  { session, context }: { readonly session: Session; readonly context: CommandContext },
): void {
  const { stderr, cwd } = context.environment;
  if (path === null) {
    if (context.values['quiet'] !== true)
      stderr.write(`trace: --retrospective ${OFFERED} appends what was learnt\n`);
    return;
  }
  const file = resolve(cwd, path);
  try {
    makeFolder(dirname(file));
    appendFileSync(file, entryOf(session));
  } catch (error) {
    stderr.write(`trace: nothing was appended to ${printable(path)}: ${errorCode(error)}\n`);
  }
}

function entryOf(session: Session): string {
  const { resolution, eliminated, attempts } = session;
  const one = (text = ''): string => printable(text.replaceAll(/\s+/g, ' '), LIMIT);
  const failed = attempts.filter(({ outcome }) => outcome === 'failed');
  const lines = [
    '',
    `## ${session.slug} (${session.updated.slice(0, 10)})`,
    '',
    `- What was wrong: ${one(session.symptoms['actual'] ?? session.trigger)}`,
    `- Root cause: ${one(resolution['root_cause'])}`,
    `- Fix: ${one(resolution['fix'])}`,
    `- Verified: ${one(resolution['verification'])}`,
    ...eliminated.map(
      (entry) => `- Ruled out: ${one(entry['hypothesis'])}, by ${one(entry['evidence'])}`,
    ),
    ...failed.map(({ change, after }) => `- Did not help: ${one(change)} (${one(after)})`),
    '',
  ];
  return lines.join('\n');
}
