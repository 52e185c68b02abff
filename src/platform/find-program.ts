import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/** Where programs come from: the one look-up for all that trace starts by a bare name. */

type Variables = Readonly<Record<string, string | undefined>>;

/** Where there is no PATH; as shells have it, without the folders of administrators. */
const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

/** The first program of that name on PATH, as the shell would find it; null when there is none. */
export function findProgram(name: string, path: string | undefined): string | null {
  for (const folder of programFolders(path)) {
    const file = join(folder, name);
    if (isProgram(file)) return file;
  }
  return null;
}

/** What a word starts: a path as it is, a bare name by PATH; null when there is none. */
export function programFor(word: string, env: Variables): string | null {
  return word.includes('/') ? word : findProgram(word, env['PATH'] ?? USUAL_PATH);
}

/** Why a word started nothing. */
export function notOnPath(word: string): string {
  return `there is no ${word} in the absolute folders of PATH`;
}

/** Variables for a program that starts others by their names: it finds them where we would. */
export function withAbsolutePath(env: Variables): Record<string, string | undefined> {
  const folders = programFolders(env['PATH']);
  // An empty PATH is the current folder.
  return { ...env, PATH: folders.length === 0 ? USUAL_PATH : folders.join(delimiter) };
}

/**
 * The folders of PATH. Relative entries, and empty ones, which are the current folder, are left
 * out: what they name depends on where trace was started, and it may run as root.
 */
export function programFolders(path: string | undefined): readonly string[] {
  return (path ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
}

/** A file that may be executed. */
export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
