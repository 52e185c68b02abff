import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { linkSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode, TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import type { Session } from '../core/session.ts';
import { decodeList } from '../core/session-value.ts';
import { printable } from '../core/text.ts';
import type { Bytes } from '../core/types.ts';
import { makeFolder } from '../platform/make-folder.ts';
import { readOutsideSync } from '../platform/outside-file.ts';
import { requireStateDirectory, stateDirectory } from '../platform/state-directory.ts';
import { diagnosisHash } from './gates.ts';

/**
 * What this user approved, kept outside of the session's file: that one comes with a checkout, and
 * says of itself what its author likes. The record is of a file by its path, of the diagnosis, and
 * of the command that attempts run; it is signed with a key that this user alone reads.
 */

const FORM = 'tracewright session approval 1';
const FOLDER = 'approvals';
const KEY_FILE = 'key';
const KEY_SIZE: Bytes = 32;
/** Of a record: 64 digits. */
const RECORD_SIZE: Bytes = 64;

/** Which session's file, and whose environment. */
export interface ApprovalPlace {
  readonly path: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Whether this user approved the session as it stands now, with the command that it names. */
export function isApprovedHere(session: Session, place: ApprovalPlace): boolean {
  const folder = folderOf(place);
  if (folder === null) return false;
  const key = readOwn(join(folder, KEY_FILE), KEY_SIZE);
  const record = readOwn(recordPath(folder, place), RECORD_SIZE);
  if (key?.length !== KEY_SIZE || record?.length !== RECORD_SIZE) return false;
  return timingSafeEqual(record, Buffer.from(signed(session, place, key)));
}

/** Keeps that this user approves it. Throws a TraceError where that cannot be kept. */
export function keepApproval(session: Session, place: ApprovalPlace): void {
  const folder = join(requireStateDirectory(place.env), FOLDER);
  const partial = join(folder, `${randomBytes(6).toString('hex')}.tmp`);
  try {
    makeFolder(folder, 0o700);
    const text = signed(session, place, ownKey(folder));
    writeFileSync(partial, text, { flag: 'wx', mode: 0o600 });
    renameSync(partial, recordPath(folder, place));
  } catch (error) {
    remove(partial);
    if (error instanceof TraceError) throw error;
    throw unkept(folder, errorCode(error), error);
  }
}

/** Forgets it. What cannot be removed is no longer of what the file says. */
export function forgetApproval(place: ApprovalPlace): void {
  const folder = folderOf(place);
  if (folder !== null) remove(recordPath(folder, place));
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Where there is no such folder, or it is somebody else's: nothing in it counts.
  }
}

/** All that an attempt goes by. */
function signed(session: Session, { path }: ApprovalPlace, key: Buffer): string {
  const { diagnosis, reproduction } = session;
  const about = [
    FORM,
    realpathSync(path),
    diagnosisHash(diagnosis),
    ...['approved_by', 'approved_at', 'approved_commit'].map((name) => diagnosis[name] ?? ''),
    decodeList(reproduction['command'] ?? ''),
    reproduction['runs'] ?? '',
  ];
  return createHmac('sha256', key).update(JSON.stringify(about)).digest('hex');
}

/** Null for a user without a home: then nothing is approved. */
function folderOf({ env }: ApprovalPlace): string | null {
  const state = stateDirectory(env);
  return state === null ? null : join(state, FOLDER);
}

function recordPath(folder: string, { path }: ApprovalPlace): string {
  const name = createHash('sha256').update(realpathSync(path)).digest('hex').slice(0, 32);
  return join(folder, name);
}

/** The key, made where there is none. */
function ownKey(folder: string): Buffer {
  const path = join(folder, KEY_FILE);
  const partial = join(folder, `${randomBytes(6).toString('hex')}.tmp`);
  if (readOwn(path, KEY_SIZE) === null) {
    writeFileSync(partial, randomBytes(KEY_SIZE), { flag: 'wx', mode: 0o600 });
    try {
      // Whole, or not there; another process may have been first.
      linkSync(partial, path);
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') renameSync(partial, path);
    } finally {
      rmSync(partial, { force: true });
    }
  }
  const key = readOwn(path, KEY_SIZE);
  if (key?.length === KEY_SIZE) return key;
  throw unkept(folder, `${KEY_FILE} is damaged, or not this user's alone`);
}

/** A small file that is this user's alone; null for any other. */
function readOwn(path: string, size: Bytes): Buffer | null {
  try {
    return readOutsideSync(path, size, { follow: false, judge: notPrivate });
  } catch {
    return null;
  }
}

function notPrivate({ uid, mode }: { readonly uid: number; readonly mode: number }): string | null {
  const isPrivate = uid === process.geteuid?.() && (mode & 0o077) === 0;
  return isPrivate ? null : "it is not this user's alone";
}

function unkept(folder: string, why: string, cause?: unknown): TraceError {
  return new TraceError(
    'ERR_APPROVAL_KEPT',
    `the approval cannot be kept in ${printable(folder)}: ${printable(why)}`,
    {
      exitCode: EXIT.usage,
      remedy: 'Nothing was approved. Make that folder yours alone, or set XDG_STATE_HOME.',
      cause,
    },
  );
}
