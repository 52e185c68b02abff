import { type AccessFacts, INITIAL_USER_NAMESPACE } from './permission-facts.ts';

/**
 * The kernel's own decision (__ptrace_may_access in kernel/ptrace.c, cap_ptrace_access_check, yama_ptrace_access_check), in its
 * order, from facts alone: so the cause is known, not guessed from an errno that is the same for all of them.
 */

/** `read` opens `maps`, `exe`, `io` and `fd`; `attach` opens `mem` and reads `syscall`. */
export type AccessMode = 'read' | 'attach';

export type AccessRule =
  | 'other-user'
  | 'user-namespace'
  | 'not-dumpable'
  | 'more-capabilities'
  | 'yama-descendants'
  | 'yama-admin'
  | 'yama-none';

/** CAP_SYS_PTRACE, include/uapi/linux/capability.h. */
const SYS_PTRACE = 1n << 19n;

/** The first rule that forbids the access; null when none that is known does. */
export function forbiddingRule(facts: AccessFacts, mode: AccessMode): AccessRule | null {
  const { own, target } = facts;
  const holdsCapability = (own.effectiveCapabilities & SYS_PTRACE) !== 0n;
  const isCapable = holdsCapability && governs(facts);
  if (mode === 'attach' && facts.yamaScope === 3) return 'yama-none';
  if (isCapable) return null;
  if (!isSameUser(facts)) return holdsCapability ? 'user-namespace' : 'other-user';
  if (target.dumpable === false) return 'not-dumpable';
  if ((target.permittedCapabilities & ~own.effectiveCapabilities) !== 0n)
    return 'more-capabilities';
  if (mode === 'read') return null;
  if (facts.yamaScope === 1 && !facts.isDescendant) return 'yama-descendants';
  return facts.yamaScope === 2 ? 'yama-admin' : null;
}

/** A capability counts only over processes of one's own user namespace and those nested in it. */
function governs({ own, target }: AccessFacts): boolean {
  return (
    own.userNamespace === null ||
    own.userNamespace === INITIAL_USER_NAMESPACE ||
    // Unreadable for the very reason that is being decided: a capability that reached there would have read it.
    own.userNamespace === target.userNamespace
  );
}

/** The file-system ids of the reader against the real, effective and saved ones of the target. */
function isSameUser({ own, target }: AccessFacts): boolean {
  const same = (mine: number | undefined, theirs: readonly number[]): boolean =>
    theirs.slice(0, 3).every((id) => id === mine);
  return same(own.uids[3], target.uids) && same(own.gids[3], target.gids);
}
