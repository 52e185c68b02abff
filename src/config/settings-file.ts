import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { errorCode, type TraceError, usageError } from '../core/errors.ts';
import { printable } from '../core/text.ts';
import { readOutsideSync, UnreadFile } from '../platform/outside-file.ts';
import { isTrusted } from '../platform/ownership.ts';

/**
 * A file of settings: whose it is, and where what it says may lead. Settings choose where root
 * writes, and the current folder may be anybody's: a checkout, a shared folder such as /tmp.
 */

type Environment = Readonly<Record<string, string | undefined>>;

/** A configuration is a few lines; anything larger is the wrong file. */
const FILE_LIMIT = 64 * 1024;
const ANYBODY_MAY_WRITE = 0o002;

/**
 * The text; null where there is none for us. Throws a usage error where it is not ours to believe.
 */
export function readSettings(file: string, env: Environment): string | null {
  const judge = (found: Stats): string | null => distrust(found, env);
  try {
    const content = readOutsideSync(file, FILE_LIMIT, { judge });
    // Only now: where there is no file, its folder may be whose it is.
    for (const path of [file, dirname(file)]) {
      const why = judge(lstatSync(path)) ?? judge(statSync(path));
      if (why !== null) throw notBelieved(path, why);
    }
    return content.toString('utf8');
  } catch (error) {
    const code = errorCode(error);
    // A file that we may not read was not written for us: under sudo -u and setpriv HOME is
    // somebody else's.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') return null;
    if (error instanceof UnreadFile) throw notBelieved(file, code);
    // A link in a circle, a disk that fails.
    if (error instanceof Error && 'errno' in error)
      throw notBelieved(file, `it cannot be read (${code})`);
    throw error;
  }
}

/** Why a file, a folder or a link is not to be believed, by its owner; null where it is. */
function distrust(found: Stats, env: Environment): string | null {
  if (!isTrusted(found.uid, env)) return `it belongs to uid ${found.uid}`;
  // The mode of a link says nothing, and who may add to a folder cannot make a file of ours.
  const isOpen = found.isFile() && (found.mode & ANYBODY_MAY_WRITE) !== 0;
  return isOpen && process.geteuid?.() === 0 ? 'anybody may write to it' : null;
}

function notBelieved(path: string, why: string): TraceError {
  return usageError(
    `the settings of ${printable(path)} are not taken: ${why}`,
    'Run trace as the user whose it is, from another folder, or make it a file of your own.',
  );
}

/** Whether what lies at a path, or would, is outside a folder because of a link on the way. */
export function leadsOutside(path: string, folder: string): boolean {
  try {
    const root = realpathSync(folder);
    for (let at = path; ; at = dirname(at)) {
      const found = lstatSync(at, { throwIfNoEntry: false });
      if (found === undefined && at !== dirname(at)) continue;
      const way = relative(root, realpathSync(at));
      return way === '..' || way.startsWith('../');
    }
  } catch {
    return true; // A link to nothing, or in a circle.
  }
}
