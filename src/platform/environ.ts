import { closeSync, openSync, readSync } from 'node:fs';
import type { Bytes } from '../core/types.ts';

/**
 * One variable of the environment that a process began with. A process may declare any stretch of
 * its memory to be its environment, of any length (`PR_SET_MM_MAP`): it is read piece by piece, no
 * further than the variable or than an environment can be, and nothing of it is kept.
 */

/** The kernel takes no more at `exec`, arguments included: three quarters of 8 MiB (fs/exec.c). */
const ENVIRONMENT_LIMIT: Bytes = 6 * 2 ** 20;
/** Nor a longer string: `MAX_ARG_STRLEN`, 32 pages (include/uapi/linux/binfmts.h). */
const VALUE_LIMIT: Bytes = 128 * 1024;
const PIECE: Bytes = 64 * 1024;
/**
 * No environment has so much of it: memory that was never written to, a page of which takes 0.2 ms.
 */
const NOTHING: Buffer = Buffer.alloc(PIECE);

/**
 * The value of one variable, cut at `limit` bytes; null where it is not set, or may not be read.
 * The bytes that were looked through are wiped before this returns. Untrusted.
 */
export function environmentVariable(
  pid: number,
  name: string,
  limit: Bytes = VALUE_LIMIT,
): string | null {
  const wanted = Buffer.from(`${name}=`);
  const piece = Buffer.alloc(wanted.length + limit + PIECE);
  let fd: number | null = null;
  try {
    fd = openSync(`/proc/${pid}/environ`, 'r');
    return search(fd, piece, { wanted, limit });
  } catch {
    return null; // another user's, or gone
  } finally {
    if (fd !== null) closeSync(fd);
    piece.fill(0);
  }
}

interface Wanted {
  /** `NAME=` */
  readonly wanted: Buffer;
  readonly limit: Bytes;
}

function search(fd: number, piece: Buffer, { wanted, limit }: Wanted): string | null {
  const valueIn = (from: number, to: number): string =>
    piece.toString('utf8', from + wanted.length, Math.min(to, from + wanted.length + limit));
  const isWanted = (from: number, to: number): boolean =>
    to - from >= wanted.length && piece.subarray(from, from + wanted.length).equals(wanted);
  /** Bytes of the present entry that stand at the start of the piece. */
  let kept = 0;
  /** Whether what is read next belongs to an entry that is known to be another's. */
  let isOther = false;
  for (let done = 0; done < ENVIRONMENT_LIMIT;) {
    const got = readSync(fd, piece, kept, PIECE, null);
    const end = kept + got;
    done += got;
    let from = 0;
    for (;;) {
      const to = piece.subarray(0, end).indexOf(0, from);
      if (to < 0) break;
      if (!isOther && isWanted(from, to)) return valueIn(from, to);
      isOther = false;
      from = to + 1;
    }
    if (piece.subarray(kept, end).equals(NOTHING)) return null;
    // The last entry of a block that a program wrote over may lack its end.
    if (got === 0) return !isOther && isWanted(from, end) ? valueIn(from, end) : null;
    if (!isOther && isWanted(from, end) && end - from >= wanted.length + limit)
      return valueIn(from, end);
    const begun = Math.min(end - from, wanted.length);
    isOther ||= !piece.subarray(from, from + begun).equals(wanted.subarray(0, begun));
    kept = isOther ? 0 : end - from;
    piece.copyWithin(0, from, from + kept);
  }
  return null;
}
