import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { errorCode } from '../core/errors.ts';

/**
 * Makes a folder and those above it that are missing; returns the first that was made, undefined where all were there. In place of
 * `mkdir(…, { recursive: true })`, which never ends in Node 20 where a folder is there and refuses a new one with ENOENT, as those of /proc do.
 * Throws what the system says: ENOENT, EACCES, ENOTDIR, EEXIST (a file), EROFS.
 */
export function makeFolder(path: string, mode?: number): string | undefined {
  const whole = resolve(path);
  const parent = dirname(whole);
  try {
    return makeOne(whole, mode);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || parent === whole) throw error;
  }
  const first = makeFolder(parent, mode);
  // The parent is there now: a second ENOENT is the file system's last word.
  const own = makeOne(whole, mode);
  return first ?? own;
}

/** Undefined where it is there, be it since a moment ago. */
function makeOne(path: string, mode: number | undefined): string | undefined {
  try {
    mkdirSync(path, mode);
    return path;
  } catch (error) {
    if (errorCode(error) === 'EEXIST' && statSync(path).isDirectory()) return undefined;
    throw error;
  }
}
