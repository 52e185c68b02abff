import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { runGit } from '../../platform/git.ts';
import type { SessionStore } from '../../session/store.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { storeOf } from './opening.ts';
import { readPlanning } from './planning-config.ts';

/** `commit_docs` in `.planning/config.json`: what a verb changed of sessions' files is committed, those files alone. */

const LIMIT: Seconds = 30;

/** The verb, which commits what it changed where the project asks for that. Trouble with git is said and takes nothing from the verb. */
export function committing(command: Command): Command {
  return {
    ...command,
    async run(context) {
      const store = storeOf(context);
      if (!readPlanning(store.folder).commitsDocs) return command.run(context);
      const before = filesOf(store);
      try {
        return await command.run(context);
      } finally {
        await commit(changed(before, filesOf(store)), command.name, context);
      }
    },
  };
}

/** When each session's file was written, by path. */
function filesOf(store: SessionStore): ReadonlyMap<string, bigint> {
  const written = store.files({ resolved: true }).flatMap(({ path }) => {
    try {
      return [[path, statSync(path, { bigint: true }).mtimeNs] as const];
    } catch {
      return [];
    }
  });
  return new Map(written);
}

/** Written, new or gone. */
function changed(
  before: ReadonlyMap<string, bigint>,
  after: ReadonlyMap<string, bigint>,
): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
}

async function commit(
  paths: readonly string[],
  verb: string,
  { environment }: CommandContext,
): Promise<void> {
  const [first] = paths;
  if (first === undefined) return;
  const { cwd, env, stderr } = environment;
  const message = `debug(${basename(first, '.md')}): ${verb}`;
  for (const args of [
    ['add', '--all', '--', ...paths],
    ['commit', '--quiet', '--only', '-m', message, '--', ...paths],
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- what is committed was added before
    const run = await runGit(args, { folder: cwd, env, limit: LIMIT });
    if (run.ended === 'exit' && run.code === 0) continue;
    const why =
      run.ended === 'exit'
        ? (run.stderr.trim() || run.stdout.trim()).split('\n').join(' ')
        : run.ended === 'timeout'
          ? `no answer within ${formatSeconds(LIMIT)}`
          : run.reason;
    const shown = printable(why, 300);
    stderr.write(`trace: the session was not committed (commit_docs): ${shown}\n`);
    return;
  }
}
