import { isUtf8 } from 'node:buffer';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';

/** What makes a file no session any more: a full disk, a tool that cut it off, another's bytes. */

/** Why the bytes of a file are no session; null where they can be read as one. */
export function damageOf(bytes: Buffer): string | null {
  if (!isUtf8(bytes) || bytes.includes(0)) return 'it is not text in UTF-8';
  const text = bytes.toString('utf8');
  if (text.trim() === '') return 'it is empty';
  const [first = '', ...others] = text.split('\n');
  const isOpen = /^\ufeff?---\s*$/.test(first) && !others.some((line) => /^---\s*$/.test(line));
  return isOpen ? 'its frontmatter has no end' : null;
}

/** A session that cannot be read, and is not written. */
export function damaged(path: string, why: string): TraceError {
  return new TraceError('ERR_SESSION_DAMAGED', `${printable(path)} is no session: ${why}`, {
    exitCode: EXIT.notFound,
    remedy: 'Mend it in an editor, take it from a backup, or move it elsewhere. It is unchanged.',
  });
}
