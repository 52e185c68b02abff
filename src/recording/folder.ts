import { constants } from 'node:fs';
import { access, type FileHandle, mkdir, open, readdir, readlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorCode } from '../core/errors.ts';
import { O_PATH } from '../platform/outside-file.ts';
import { couldWrite, type Owner } from '../platform/ownership.ts';

/**
 * Folders that are made and then held open. Each step starts from a folder that is open and not
 * from a path, in which somebody else may exchange a name for a link (docs/decisions/0014).
 */

/** Recordings hold stacks and command lines: nobody but their owner reads them. */
const FOLDER_MODE = 0o700;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY;
/** Enough to make things in a folder, also in one that may not be listed. */
const PLACE = O_PATH | constants.O_DIRECTORY;
/** As many as the kernel follows in one path. */
const LINKS_LIMIT = 40;
/**
 * The folder of recordings in a working folder. Nobody chooses this name, and no program of root's
 * goes by it.
 */
export const RECORDINGS = '.tracewright';

/**
 * What a folder was when it was made, by which it is known again, and whose the files in it are.
 */
export interface MadeFolder {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly uid: number;
}

/** A folder that is held open. */
export class OpenFolder {
  readonly path: string;
  readonly #handle: FileHandle;

  constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /** The folder itself as a path, whatever lies at its name by now; of no use once it is closed. */
  get opened(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  /**
   * To whom what is made in it is given: the owner, where they could have made it themselves; else
   * null.
   */
  async recipient(owner: Owner | null): Promise<Owner | null> {
    return owner !== null && couldWrite(await this.#handle.stat(), owner) ? owner : null;
  }

  /** By what it is known again. */
  async identity(): Promise<Pick<MadeFolder, 'dev' | 'ino'>> {
    const { dev, ino } = await this.#handle.stat({ bigint: true });
    return { dev, ino };
  }

  async isEmpty(): Promise<boolean> {
    return (await readdir(this.opened)).length === 0;
  }

  /** Gives it away, if it is still as it was made: nothing else of ours was put in its place. */
  async giveTo({ uid, gid }: Owner): Promise<void> {
    const { uid: maker } = await this.#handle.stat();
    if (maker === process.geteuid?.() && (await this.isEmpty())) await this.#handle.chown(uid, gid);
  }

  /** Safe to call twice. */
  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** A folder that we made, for reading. Throws where another one lies at its path, or none. */
export async function openMade(path: string, { dev, ino }: MadeFolder): Promise<OpenFolder> {
  const folder = new OpenFolder(path, await open(path, FOLDER));
  const found = await folder.identity();
  if (found.dev === dev && found.ino === ino) return folder;
  await folder.close();
  throw new Error('another folder lies at its path');
}

/** The folder at `path`, made with those above it where it is missing. Throws the errno error. */
export async function openFolder(path: string, owner: Owner | null): Promise<OpenFolder> {
  const whole = resolve(path);
  try {
    return await enterFolder(whole, owner);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || dirname(whole) === whole) throw error;
  }
  const parent = await openFolder(dirname(whole), owner);
  try {
    const made = await makeFolderIn(parent, basename(whole), owner);
    // Somebody else made it meanwhile: another trace, or whoever wants us to take theirs for ours.
    return made ?? (await enterFolder(whole, owner));
  } finally {
    await parent.close();
  }
}

/**
 * The folder at `path`, which is there. With an owner no link is followed that they could have put
 * in the way, so that nothing is made or removed elsewhere for them. Throws the errno error.
 */
export async function enterFolder(path: string, owner: Owner | null): Promise<OpenFolder> {
  const whole = resolve(path);
  return new OpenFolder(whole, await (owner === null ? open(whole, PLACE) : walk(whole, owner)));
}

async function walk(path: string, owner: Owner): Promise<FileHandle> {
  const names = namesOf(path);
  let place = await open('/', PLACE);
  try {
    for (let links = 0; names.length > 0;) {
      const at = `/proc/self/fd/${place.fd}/${names.shift() ?? ''}`;
      const next = await open(at, O_PATH | constants.O_NOFOLLOW);
      const found = await next.stat();
      if (found.isDirectory()) {
        await place.close();
        place = next;
        continue;
      }
      await next.close();
      if (!found.isSymbolicLink()) throw failure('ENOTDIR', `${path}: not a folder`);
      const isTheirs = found.uid !== 0 || couldWrite(await place.stat(), owner);
      if (isTheirs || ++links > LINKS_LIMIT)
        throw failure('ELOOP', `${path}: a symbolic link of uid ${found.uid} is not followed`);
      const target = await readlink(at);
      names.unshift(...namesOf(target));
      if (!target.startsWith('/')) continue;
      await place.close();
      place = await open('/', PLACE);
    }
    return place;
  } catch (error) {
    await place.close();
    throw error;
  }
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/**
 * A new folder, given to the owner where they could have made it; null where something has that
 * name.
 */
export async function makeFolderIn(
  parent: OpenFolder,
  name: string,
  owner: Owner | null,
): Promise<OpenFolder | null> {
  const at = `${parent.opened}/${name}`;
  try {
    await mkdir(at, { mode: FOLDER_MODE });
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return null;
    throw error;
  }
  const handle = await open(at, FOLDER | constants.O_NOFOLLOW);
  const made = new OpenFolder(join(parent.path, name), handle);
  try {
    const recipient = name === RECORDINGS ? owner : await parent.recipient(owner);
    if (recipient !== null) await made.giveTo(recipient);
    return made;
  } catch (error) {
    await made.close();
    throw error;
  }
}

/**
 * A folder in another one that may be written and holds nothing; null where something else is
 * there. Throws the errno error.
 */
export async function openEmptyIn(parent: OpenFolder, name: string): Promise<OpenFolder | null> {
  const at = `${parent.opened}/${name}`;
  let handle: FileHandle;
  try {
    handle = await open(at, FOLDER | constants.O_NOFOLLOW);
  } catch (error) {
    // A file, or a link, whatever it leads to.
    if (['ENOTDIR', 'ELOOP'].includes(errorCode(error))) return null;
    throw error;
  }
  const folder = new OpenFolder(join(parent.path, name), handle);
  try {
    await access(folder.opened, constants.W_OK);
    if (await folder.isEmpty()) return folder;
  } catch (error) {
    await folder.close();
    throw error;
  }
  await folder.close();
  return null;
}
