import { execFile } from 'node:child_process';
import {
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
import { promisify } from 'node:util';
import type { Seconds } from '../../core/types.ts';
import { addedLines, type AddedLine } from '../../session/diff-flags.ts';

/** The repository that is debugged: what it was like when the diagnosis was approved, and what was changed since. Its own files and HEAD stay as they are. */

const run = promisify(execFile);
const LIMIT: Seconds = 60;
const OUTPUT_LIMIT = 32 * 1024 * 1024;
/** Untracked files beyond this are data, not source. */
const SOURCE_LIMIT = 256 * 1024;
/** The kernel dates files by its tick, which is up to so much behind the clock. */
const TICK_MS = 20;
/** Folders that a program needs and no commit has. */
const ENVIRONMENTS = ['node_modules', '.venv', 'venv'] as const;

/** What was changed since a commit. */
export interface Change {
  readonly changed: readonly string[];
  readonly added: readonly AddedLine[];
}

/** The files as they are now, as a commit that no branch has; null outside of a repository, or in one without a commit. */
export async function snapshotOf(cwd: string): Promise<string | null> {
  try {
    const stashed = (await git(cwd, 'stash', 'create')).trim();
    return stashed === '' ? (await git(cwd, 'rev-parse', 'HEAD')).trim() : stashed;
  } catch {
    return null;
  }
}

/** What was changed in the repository's files since `commit`, and which files came since `since`. */
export async function changeSince(cwd: string, commit: string, since: Date): Promise<Change> {
  const top = await topOf(cwd);
  const diff = await git(
    top,
    'diff',
    '--no-ext-diff',
    '--no-textconv',
    '--no-color',
    '-U0',
    commit,
    '--',
  );
  const names = (await git(top, 'diff', '--name-only', '-z', commit, '--')).split('\0');
  const others = (await git(top, 'ls-files', '--others', '--exclude-standard', '-z')).split('\0');
  const fresh = others.filter((name) => name !== '' && isFresh(join(top, name), since));
  const addedFiles = fresh.flatMap((file) =>
    readFileSync(join(top, file), 'utf8')
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
  { cwd, commit, command }: { cwd: string; commit: string; command: readonly string[] },
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const top = await topOf(cwd);
  const scratch = await mkdtemp(join(tmpdir(), 'trace-worktree-'));
  const worktree = join(scratch, 'tree');
  await git(top, 'worktree', 'add', '--detach', '--quiet', worktree, commit);
  try {
    const folder = join(worktree, relative(top, realOf(cwd)));
    mkdirSync(folder, { recursive: true });
    for (const word of command) bring(word, cwd, folder);
    for (const name of ENVIRONMENTS)
      if (existsSync(join(top, name)) && !existsSync(join(worktree, name)))
        symlinkSync(join(top, name), join(worktree, name));
    return await work(folder);
  } finally {
    await git(top, 'worktree', 'remove', '--force', worktree).catch(() => '');
    await rm(scratch, { recursive: true, force: true });
    await git(top, 'worktree', 'prune').catch(() => '');
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

async function topOf(cwd: string): Promise<string> {
  return (await git(cwd, 'rev-parse', '--show-toplevel')).trim();
}

function realOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

async function git(folder: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run('git', ['-C', folder, ...args], {
    timeout: LIMIT * 1e3,
    maxBuffer: OUTPUT_LIMIT,
    // A diff is read here, and nobody is asked anything.
    env: { ...process.env, GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0', GIT_PAGER: 'cat' },
  });
  return stdout;
}
