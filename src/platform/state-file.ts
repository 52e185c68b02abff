import { lstatSync } from 'node:fs';
import { errorCode } from '../core/errors.ts';
import type { Bytes } from '../core/types.ts';
import { readOutsideSync, UnreadFile } from './outside-file.ts';
import { isWritableByOthers } from './ownership.ts';

/**
 * Files that trace wrote for itself and acts on later. Whoever could put one there could have root
 * act for them, so what is not this user's alone is not read.
 */

/**
 * What became of reading one; `refused`: something lies there that trace did not write for itself.
 */
export type StateFile =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Reads a file of the state folder, at most `limit` bytes of it. */
export function readStateFile(path: string, limit: Bytes): StateFile {
  try {
    const content = readOutsideSync(path, limit, { follow: false, judge: notOurs });
    return { kind: 'read', text: content.toString('utf8') };
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' };
    const reason = error instanceof UnreadFile ? code : `it cannot be read (${code})`;
    return { kind: 'refused', reason };
  }
}

/**
 * Why what lies in a folder is not to be believed; null where the folder is this user's alone, or
 * not there.
 */
export function refusedFolder(path: string): string | null {
  try {
    const found = lstatSync(path);
    return found.isDirectory() ? notOurs(found) : 'it is not a folder';
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? null : `it cannot be looked at (${code})`;
  }
}

function notOurs(found: { readonly uid: number; readonly mode: number }): string | null {
  if (found.uid !== process.geteuid?.()) return `it belongs to uid ${found.uid}`;
  return isWritableByOthers(found) ? 'others may write to it' : null;
}
