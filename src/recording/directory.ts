import { accessSync, constants, existsSync } from 'node:fs';
import { access, lchown, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { EXIT } from '../core/exit-code.ts';
import { TraceError } from '../core/errors.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { stateDirectory } from '../platform/state-directory.ts';
import { makeFolder } from '../platform/make-folder.ts';

/** Where a recording goes and whose it is. */

/** Recordings hold stacks and command lines: nobody but their owner reads them. */
const DIRECTORY_MODE = 0o700;
export const FILE_MODE = 0o600;
/** `-2`, `-3`, … is tried up to here before giving up. */
const SUFFIX_LIMIT = 1000;
const TARGET_LENGTH_LIMIT = 40;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * `.tracewright/<utc>-<verb>-<target>` under `cwd`, or under `$XDG_STATE_HOME/tracewright` (default
 * `~/.local/state`) where `cwd` cannot be written. Never one that exists: `-2`, `-3`, … is added.
 */
export function defaultRecordingDirectory(options: {
  readonly verb: string;
  readonly target: string;
  readonly now: Seconds;
  readonly cwd: string;
  readonly env: Environment;
}): string {
  const { verb, target, now, cwd, env } = options;
  const utc = new Date(now * 1e3).toISOString().replace(/[-:]|\.\d+/g, '');
  const safe = target.replace(/[^\w.-]+/g, '-').slice(0, TARGET_LENGTH_LIMIT);
  const parent = isWritable(cwd) ? join(cwd, '.tracewright') : stateDirectory(env);
  return firstFree(join(parent, `${utc}-${verb}-${safe}`));
}

function isWritable(cwd: string): boolean {
  const existing = join(cwd, '.tracewright');
  try {
    accessSync(existsSync(existing) ? existing : cwd, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function firstFree(path: string): string {
  if (!existsSync(path)) return path;
  for (let n = 2; n < SUFFIX_LIMIT; n++) if (!existsSync(`${path}-${n}`)) return `${path}-${n}`;
  return path;
}

/** A user and group id. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Whose the files should be: under sudo the caller's, not root's; null when no change is needed. */
export function callerOwner(env: Environment): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const [uid, gid] = [env['SUDO_UID'], env['SUDO_GID']].map(Number);
  if (uid === undefined || gid === undefined) return null;
  return Number.isInteger(uid) && Number.isInteger(gid) && uid > 0 ? { uid, gid } : null;
}

/** Gives a file that this program has just created to its owner. */
export async function giveTo(path: string, owner: Owner | null): Promise<void> {
  // Never through a symbolic link: root would give away what it points to.
  if (owner !== null) await lchown(path, owner.uid, owner.gid);
}

/** What to do when the folder is there and not empty: refuse, or take the next free name. It is never written into. */
export type IfExists = 'fail' | 'suffix';

/** Creates the folder of a recording with its `.gitignore` and gives its path. An existing empty folder is used. */
export async function createRecordingDirectory(
  path: string,
  options: { readonly ifExists: IfExists; readonly owner: Owner | null },
): Promise<string> {
  try {
    const wanted = resolve(path);
    const firstCreated = makeFolder(dirname(wanted), DIRECTORY_MODE);
    const directory = await claim(wanted, options.ifExists);
    const ignore = join(directory, '.gitignore');
    await writeFile(ignore, '*\n', { mode: FILE_MODE, flag: 'wx' });
    const created = [ignore, ...upTo(directory, firstCreated ?? directory)];
    for (const item of created) await giveTo(item, options.owner);
    return directory;
  } catch (cause) {
    if (cause instanceof TraceError) throw cause;
    throw new TraceError(
      'ERR_RECORDING_NOT_WRITABLE',
      `cannot create the recording ${printable(path)}: ${cause instanceof Error ? cause.message : String(cause)}`,
      { exitCode: EXIT.usage, remedy: 'Name a folder that can be written with --output.', cause },
    );
  }
}

async function claim(path: string, ifExists: IfExists): Promise<string> {
  if (ifExists === 'suffix') return claimWithSuffix(path);
  if (await makeDirectory(path)) return path;
  await access(path, constants.W_OK);
  const isEmpty = (await stat(path)).isDirectory() && (await readdir(path)).length === 0;
  if (!isEmpty) throw existsError(path);
  return path;
}

async function claimWithSuffix(path: string): Promise<string> {
  for (let n = 1; n < SUFFIX_LIMIT; n++) {
    const candidate = n === 1 ? path : `${path}-${n}`;
    if (await makeDirectory(candidate)) return candidate;
  }
  throw existsError(path);
}

/** False when something is there already. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: DIRECTORY_MODE });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

function existsError(path: string): TraceError {
  return new TraceError('ERR_RECORDING_EXISTS', `${printable(path)} is there already`, {
    exitCode: EXIT.usage,
    remedy: 'Name a new folder, or replace a recording with --force.',
  });
}

/** `directory` and its parents as far as `top`. */
function upTo(directory: string, top: string): string[] {
  const paths = [directory];
  let current = directory;
  while (current !== top && basename(current) !== '') {
    current = dirname(current);
    paths.push(current);
  }
  return paths;
}
