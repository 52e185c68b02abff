/** Whose files may be believed, and to whom those are given that root makes for somebody else. */

type Environment = Readonly<Record<string, string | undefined>>;

/** A user and group id. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Owner and permission bits of a file, as `stat` gives them. */
interface Rights extends Owner {
  readonly mode: number;
}

const OTHERS_MAY_WRITE = 0o002;
const GROUP_MAY_WRITE = 0o020;
const OWNER_MAY_WRITE = 0o200;

/**
 * Whose the files should be: under sudo the caller's, not root's; null when no change is needed.
 */
export function callerOwner(env: Environment): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const [uid, gid] = [env['SUDO_UID'], env['SUDO_GID']].map(Number);
  if (uid === undefined || gid === undefined) return null;
  return Number.isInteger(uid) && Number.isInteger(gid) && uid > 0 ? { uid, gid } : null;
}

/** Whether a user's file may decide what we do: our own, root's, and under sudo the caller's. */
export function isTrusted(uid: number, env: Environment): boolean {
  return uid === 0 || uid === process.geteuid?.() || uid === callerOwner(env)?.uid;
}

/**
 * Whether somebody may make files in a folder, by its mode and their first group; others are not
 * known.
 */
export function couldWrite({ uid, gid, mode }: Rights, owner: Owner): boolean {
  if (uid === owner.uid) return (mode & OWNER_MAY_WRITE) !== 0;
  if (gid === owner.gid) return (mode & GROUP_MAY_WRITE) !== 0;
  return (mode & OTHERS_MAY_WRITE) !== 0;
}

/** Whether anybody but its owner may change it. */
export function isWritableByOthers({ mode }: Pick<Rights, 'mode'>): boolean {
  return (mode & (GROUP_MAY_WRITE | OTHERS_MAY_WRITE)) !== 0;
}
