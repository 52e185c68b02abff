import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { type GitOptions, runGit } from '../../platform/git.ts';
import { addedLines, type AddedLine } from '../../session/diff-flags.ts';

/** The repository that is debugged: what it was like when the diagnosis was approved, and what was changed since. Its own files and HEAD stay as they are. */

const LIMIT: Seconds = 60;
/** Untracked files beyond this are data, not source. */
const SOURCE_LIMIT = 256 * 1024;
/** The kernel dates files by its tick, which is up to so much behind the clock. */
const TICK_MS = 20;
/** Folders that a program needs and no commit has. */
const ENVIRONMENTS = ['node_modules', '.venv', 'venv'] as const;

/** Whose commit a snapshot is; where nobody is named, git would refuse. */
const AUTHOR = {
  GIT_AUTHOR_NAME: 'trace',
  GIT_AUTHOR_EMAIL: 'trace@localhost',
  GIT_COMMITTER_NAME: 'trace',
  GIT_COMMITTER_EMAIL: 'trace@localhost',
} as const;

/** Where a session is worked in. */
interface Place {
  readonly cwd: string;
  readonly env: GitOptions['env'];
}

/** What was changed since a commit. */
export interface Change {
  readonly changed: readonly string[];
  readonly added: readonly AddedLine[];
}

/**
 * The files as they are now, as a commit that no branch has; null outside of a repository, or in
 * one without a commit. Not by `git stash create`, which looks into submodules.
 */
export async function snapshotOf(place: Place): Promise<string | null> {
  const scratch = await mkdtemp(join(tmpdir(), 'trace-index-'));
  try {
    const head = (await git(place, ['rev-parse', 'HEAD'])).trim();
    const top = { ...place, cwd: await topOf(place) };
    const index = (await git(top, ['rev-parse', '--git-path', 'index'])).trim();
    const set = { GIT_INDEX_FILE: join(scratch, 'index') };
    copyFileSync(resolve(top.cwd, index), set.GIT_INDEX_FILE);
    const changed = await git(top, ['diff-files', '--name-only', '-z'], { set });
    const update = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin'];
    await git(top, update, { set, stdin: changed });
    const tree = (await git(top, ['write-tree'], { set })).trim();
    if (tree === (await git(top, ['rev-parse', 'HEAD^{tree}'])).trim()) return head;
    const made = ['commit-tree', tree, '-p', head, '-m', 'Files when a fix was approved'];
    return (await git(top, made, { set: AUTHOR })).trim();
  } catch {
    return null;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** What was changed in the repository's files since `commit`, and which files came since `since`. */
export async function changeSince(place: Place, commit: string, since: Date): Promise<Change> {
  const top = { ...place, cwd: await topOf(place) };
  const diff = await git(top, ['diff', '-U0', commit, '--']);
  const names = (await git(top, ['diff', '--name-only', '-z', commit, '--'])).split('\0');
  const listed = await git(top, ['ls-files', '--others', '--exclude-standard', '-z']);
  const fresh = listed
    .split('\0')
    .filter((name) => name !== '' && isFresh(join(top.cwd, name), since));
  const addedFiles = fresh.flatMap((file) =>
    readFileSync(join(top.cwd, file), 'utf8')
      .split('\n')
      .map((text, i) => ({ file, line: i + 1, text })),
  );
  return {
    changed: [...names.filter((name) => name !== ''), ...fresh],
    added: [...addedLines(diff), ...addedFiles],
  };
}

/**
 * Does `work` in a worktree of `commit`, in the folder that corresponds to `cwd`, and removes it. What a command names by path and no commit has (a
 * script that was just written) is copied there, and what it needs to run (`node_modules`) is linked.
 */
export async function inWorktree<T>(
  { cwd, env, commit, command }: Place & { commit: string; command: readonly string[] },
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const top = await topOf({ cwd, env });
  const scratch = await mkdtemp(join(tmpdir(), 'trace-worktree-'));
  const worktree = join(scratch, 'tree');
  const main = { cwd: top, env };
  const add = ['worktree', 'add', '--no-checkout', '--detach', '--quiet', worktree, commit];
  await git(main, add);
  try {
    // By a run of its own: what its configuration includes there is known only where it is.
    await git({ cwd: worktree, env }, ['reset', '--hard', '--quiet']);
    const folder = join(worktree, relative(top, realOf(cwd)));
    mkdirSync(folder, { recursive: true });
    for (const word of command) bring(word, cwd, folder);
    for (const name of ENVIRONMENTS)
      if (existsSync(join(top, name)) && !existsSync(join(worktree, name)))
        symlinkSync(join(top, name), join(worktree, name));
    return await work(folder);
  } finally {
    await git(main, ['worktree', 'remove', '--force', worktree]).catch(() => '');
    await rm(scratch, { recursive: true, force: true });
    await git(main, ['worktree', 'prune']).catch(() => '');
  }
}

/** A file or folder that a word of a command names, below the folder it is run in. */
function bring(word: string, from: string, to: string): void {
  const name = relative(from, resolve(from, word));
  if (
    word === '' ||
    word.startsWith('-') ||
    name === '' ||
    name.startsWith('..') ||
    isAbsolute(name)
  )
    return;
  const path = join(from, name);
  if (!existsSync(path) || existsSync(join(to, name))) return;
  mkdirSync(dirname(join(to, name)), { recursive: true });
  cpSync(path, join(to, name), { recursive: true });
}

function isFresh(path: string, since: Date): boolean {
  try {
    const stat = statSync(path);
    return stat.isFile() && stat.size <= SOURCE_LIMIT && stat.mtimeMs >= since.getTime() - TICK_MS;
  } catch {
    return false;
  }
}

async function topOf(place: Place): Promise<string> {
  return (await git(place, ['rev-parse', '--show-toplevel'])).trim();
}

function realOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** What git prints. Rejects with what it says where it does not end well. */
async function git(
  { cwd, env }: Place,
  args: readonly string[],
  more: Pick<GitOptions, 'set' | 'stdin'> = {},
): Promise<string> {
  const run = await runGit(args, { folder: cwd, env, limit: LIMIT, ...more });
  if (run.ended === 'exit' && run.code === 0) return run.stdout;
  const why =
    run.ended === 'exit'
      ? run.stderr.trim()
      : run.ended === 'timeout'
        ? `no answer within ${formatSeconds(LIMIT)}`
        : run.reason;
  throw new TraceError('ERR_GIT_FAILED', `git ${args[0] ?? ''} failed: ${printable(why, 300)}`, {
    exitCode: EXIT.usage,
    remedy: 'See whether git status answers in this folder.',
  });
}
