import { TraceError, usageError } from '../../../core/errors.ts';
import { EXIT } from '../../../core/exit-code.ts';
import type { Bytes, Seconds } from '../../../core/types.ts';

/** A report that was fetched, and what both trackers have in common. */

/** Text is untrusted. */
export interface ImportedReport {
  readonly title: string;
  readonly body: string;
  /** Where a person reads it. */
  readonly url: string;
  readonly author: string | null;
  readonly comments: readonly ImportedComment[];
  /** Why comments are missing; null where all are here. */
  readonly missing: string | null;
}

export interface ImportedComment {
  readonly author: string | null;
  /** As the tracker writes it. */
  readonly at: string | null;
  readonly body: string;
}

/** Every question of its own, and all together. */
export const REQUEST_LIMIT: Seconds = 15;
export const TOTAL_LIMIT: Seconds = 45;
/** A hundred comments of 64 KB, escaped. */
export const ANSWER_LIMIT: Bytes = 32 * 2 ** 20;
/** Threads with more are read by people. */
const COMMENT_PAGES = 10;
/** Characters of a body: GitHub takes 65,536, a pasted log through the API may be larger. */
const BODY_LIMIT = 2 ** 20;

/** What could not be fetched, with what to do (exit 3). */
export function notFetched(code: string, message: string, remedy: string): TraceError {
  return new TraceError(code, message, { exitCode: EXIT.notFound, remedy });
}

/** Comments page by page, as each says where the next one is; of {@link COMMENT_PAGES} at most. */
export async function* commentPages<At>(
  first: At,
  read: (at: At) => Promise<CommentPage<At>>,
): AsyncGenerator<CommentPage<At>, void> {
  let at: At | null = first;
  for (let i = 0; i < COMMENT_PAGES && at !== null; i++) {
    const page: CommentPage<At> = await read(at);
    yield page;
    at = page.next;
  }
}

/** A page of comments, and where the next one is; null behind the last. */
export interface CommentPage<At> {
  readonly comments: readonly ImportedComment[];
  readonly next: At | null;
}

/** The entries of an answer's list; none where it is no list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A header takes none but these characters; what is wrong with a credential is said without showing it. */
export function checkCredential(name: string, value: string): void {
  if (!/^[\u0021-\u007e]+$/.test(value))
    throw usageError(
      `${name} holds characters that no token has`,
      `Set ${name} again, without quotes and line ends.`,
    );
}

/** A member of an object that came from outside; undefined where it is none. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/** A text member of bounded length; null for anything else. */
export function textMember(value: unknown, name: string): string | null {
  const text = member(value, name);
  return typeof text === 'string' ? text.slice(0, BODY_LIMIT) : null;
}

/** `14:05:33 UTC, in 12 min`. */
export function againAt(at: Date): string {
  const minutes = Math.max(1, Math.ceil((at.getTime() - Date.now()) / 60e3));
  return `at ${at.toISOString().slice(11, 19)} UTC, in ${minutes} min`;
}
