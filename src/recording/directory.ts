import { accessSync, constants, existsSync, lstatSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { EXIT } from '../core/exit-code.ts';
import { TraceError } from '../core/errors.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { isTrusted, type Owner } from '../platform/ownership.ts';
import { requireStateDirectory } from '../platform/state-directory.ts';
import { createFile } from './files.ts';
import {
  type MadeFolder,
  makeFolderIn,
  openEmptyIn,
  openFolder,
  type OpenFolder,
  RECORDINGS,
} from './folder.ts';
import { withoutPath } from './write-error.ts';

export { callerOwner } from '../platform/ownership.ts';

/** Where a recording goes and whose it is. */

/** `-2`, `-3`, … is tried up to here before giving up. */
const SUFFIX_LIMIT = 1000;
const TARGET_LENGTH_LIMIT = 40;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * `.tracewright/<utc>-<verb>-<target>` under `cwd`, or under `$XDG_STATE_HOME/tracewright` (default
 * `~/.local/state`) where `cwd` cannot be written, or its `.tracewright` is a stranger's. Never one
 * that exists: `-2`, `-3`, … is added. Throws a TraceError where neither is to be had.
 */
export function defaultRecordingDirectory(
  options: RecordingNaming & { readonly cwd: string; readonly env: Environment },
): string {
  const { cwd, env } = options;
  const parent = isUsable(cwd, env) ? join(cwd, RECORDINGS) : requireStateDirectory(env);
  return firstFree(join(parent, recordingName(options)));
}

/** What the name of a recording's folder is made from. */
interface RecordingNaming {
  readonly verb: string;
  readonly target: string;
  readonly now: Seconds;
}

/** `<utc>-<verb>-<target>`. */
export function recordingName({ verb, target, now }: RecordingNaming): string {
  const utc = new Date(now * 1e3).toISOString().replace(/[-:]|\.\d+/g, '');
  const safe = target.replace(/[^\w.-]+/g, '-').slice(0, TARGET_LENGTH_LIMIT);
  return `${utc}-${verb}-${safe}`;
}

function isUsable(cwd: string, env: Environment): boolean {
  const existing = join(cwd, RECORDINGS);
  try {
    const found = lstatSync(existing, { throwIfNoEntry: false });
    // In a shared folder anybody may have made it, or a link of that name.
    if (found !== undefined && !isTrusted(found.uid, env)) return false;
    accessSync(found === undefined ? cwd : existing, constants.W_OK | constants.X_OK);
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

/** What to do when the folder is there and not empty: refuse, or take the next free name. It is never written into. */
export type IfExists = 'fail' | 'suffix';

/** The folder of a recording to be written. */
export interface MadeRecording {
  readonly folder: OpenFolder;
  /** To whom its files are given; null: to nobody. */
  readonly owner: Owner | null;
  readonly made: MadeFolder;
}

/** Makes the folder with its `.gitignore`, and holds it open. An existing empty one is used. */
export async function createRecordingDirectory(
  path: string,
  options: { readonly ifExists: IfExists; readonly owner: Owner | null },
): Promise<MadeRecording> {
  let folder: OpenFolder | null = null;
  try {
    folder = await claim(resolve(path), options);
    const owner = await folder.recipient(options.owner);
    const uid = await writeIgnore(folder, owner);
    return { folder, owner, made: { ...(await folder.identity()), uid } };
  } catch (cause) {
    await folder?.close();
    if (cause instanceof TraceError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TraceError(
      'ERR_RECORDING_NOT_WRITABLE',
      `cannot create the recording ${printable(path)}: ${withoutPath(why)}`,
      { exitCode: EXIT.usage, remedy: 'Name a folder that can be written with --output.', cause },
    );
  }
}

/** Keeps git away; whose it is, as the disk says. */
async function writeIgnore(folder: OpenFolder, owner: Owner | null): Promise<number> {
  const ignore = await createFile(join(folder.opened, '.gitignore'), owner);
  try {
    await ignore.writeFile('*\n');
    return (await ignore.stat()).uid;
  } finally {
    await ignore.close();
  }
}

async function claim(
  path: string,
  { ifExists, owner }: { readonly ifExists: IfExists; readonly owner: Owner | null },
): Promise<OpenFolder> {
  const parent = await openFolder(dirname(path), owner);
  try {
    const last = ifExists === 'suffix' ? SUFFIX_LIMIT : 2;
    for (let n = 1; n < last; n++) {
      const name = n === 1 ? basename(path) : `${basename(path)}-${n}`;
      const made = await makeFolderIn(parent, name, owner);
      if (made !== null) return made;
    }
    const empty = ifExists === 'fail' ? await openEmptyIn(parent, basename(path)) : null;
    if (empty !== null) return empty;
    throw new TraceError('ERR_RECORDING_EXISTS', `${printable(path)} is there already`, {
      exitCode: EXIT.usage,
      remedy: 'Name a new folder, or replace a recording with --force.',
    });
  } finally {
    await parent.close();
  }
}
