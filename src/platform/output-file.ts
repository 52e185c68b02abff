import { constants, lstatSync, openSync } from 'node:fs';
import { errorCode } from '../core/errors.ts';

/**
 * Files that are named on the command line to be written. Root may stand in a folder of somebody
 * else's, and under sudo stands in the caller's: a link of theirs at that name would have root
 * write over any file.
 */

const OUTPUT = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
const ANYBODY_BY_UMASK = 0o666;

/**
 * A descriptor to write to, of a file that is new or emptied, a pipe or a terminal; to be closed.
 * Throws the errno error, and for root one whose code says that the name is a link of another user.
 */
export function openOutputSync(path: string, mode: number = ANYBODY_BY_UMASK): number {
  if (process.geteuid?.() !== 0) return openSync(path, OUTPUT, mode);
  try {
    return openSync(path, OUTPUT | constants.O_NOFOLLOW, mode);
  } catch (error) {
    if (errorCode(error) !== 'ELOOP') throw error;
  }
  // Such as /dev/stdout.
  const { uid } = lstatSync(path);
  if (uid === 0) return openSync(path, OUTPUT, mode);
  const code = `it is a symbolic link that belongs to uid ${uid}`;
  throw Object.assign(new Error(`${path}: ${code}`), { code });
}
