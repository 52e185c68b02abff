import { type Check, passed } from '../../core/check.ts';
import {
  capabilityNames,
  holdsCapability,
  lackingCapabilities,
} from '../../platform/capabilities.ts';
import { type AccessFacts, INITIAL_USER_NAMESPACE } from '../../platform/permission-facts.ts';
import {
  hidePidRemedies,
  ownInvocation,
  remediesFor,
  remedyText,
  SECCOMP_REMEDIES,
} from '../../platform/permission-remedies.ts';
import { userName } from '../../platform/target-refusal.ts';

/** What trace may do here, judged from facts alone. */

/** What the rights of trace itself are judged by. */
export interface RightsFacts {
  readonly access: Pick<AccessFacts, 'own' | 'yamaScope' | 'hidePid' | 'inContainer'>;
  /** The `Seccomp` line of our status: 0 none, 1 strict, 2 filter. */
  readonly seccomp: number;
}

export function rightsChecks(facts: RightsFacts, args: readonly string[]): readonly Check[] {
  const { access } = facts;
  const command = ownInvocation(args);
  return [
    userCheck(access.own),
    capabilityCheck(access, command),
    yamaCheck(access, command),
    hidePidCheck(access, command),
    seccompCheck(facts),
  ];
}

function userCheck({ uids }: RightsFacts['access']['own']): Check {
  const uid = uids[1] ?? -1;
  const name = userName(uid);
  const who = `uid ${uid}${name === null ? '' : ` (${name})`}`;
  return passed('user', uids[0] === uid ? who : `${who}, started by uid ${uids[0]}`);
}

/** Held where it counts: in the user namespace that the machine booted with, or one that cannot be told. */
function isCapable({ own }: RightsFacts['access']): boolean {
  return (
    holdsCapability(own.effectiveCapabilities, 'SYS_PTRACE') &&
    (own.userNamespace === null || own.userNamespace === INITIAL_USER_NAMESPACE)
  );
}

function capabilityCheck(access: RightsFacts['access'], command: readonly string[]): Check {
  const { own } = access;
  const effective = `effective: ${capabilityList(own.effectiveCapabilities)}`;
  if (isCapable(access)) return passed('capabilities', `CAP_SYS_PTRACE is held; ${effective}`);
  const held = holdsCapability(own.effectiveCapabilities, 'SYS_PTRACE');
  return {
    name: 'capabilities',
    status: 'limited',
    detail: held
      ? `CAP_SYS_PTRACE is held, but in a user namespace (rootless container): it counts only for processes in it; ${effective}`
      : `CAP_SYS_PTRACE is not held: only processes of the same user can be looked into, as far as Yama lets; ${effective}`,
    remedy: remedyFor(held ? 'user-namespace' : 'other-user', access, command),
  };
}

/** Names, or what is missing where that is shorter. */
function capabilityList(mask: bigint): string {
  const names = capabilityNames(mask);
  const lacking = lackingCapabilities(mask);
  if (names.length === 0) return 'none';
  if (lacking.length === 0) return 'all';
  return names.length <= lacking.length ? names.join(', ') : `all but ${lacking.join(', ')}`;
}

const YAMA_NAMES: Readonly<Record<number, string>> = {
  0: 'no restriction',
  1: 'only descendants may be traced',
  2: 'only with CAP_SYS_PTRACE',
  3: 'nobody may trace until the next reboot',
};

function yamaCheck(access: RightsFacts['access'], command: readonly string[]): Check {
  const { yamaScope: scope } = access;
  if (scope === null) return passed('yama', 'this kernel has no Yama: no restriction by it');
  const detail = `kernel.yama.ptrace_scope = ${scope} (${YAMA_NAMES[scope] ?? 'unknown'})`;
  if (scope === 3)
    return {
      name: 'yama',
      status: 'missing',
      detail,
      remedy: remedyFor('yama-none', access, command),
    };
  if (scope === 0) return passed('yama', detail);
  if (isCapable(access)) return passed('yama', `${detail}, which CAP_SYS_PTRACE overrides`);
  const rule = scope === 1 ? 'yama-descendants' : 'yama-admin';
  return { name: 'yama', status: 'limited', detail, remedy: remedyFor(rule, access, command) };
}

function hidePidCheck(access: RightsFacts['access'], command: readonly string[]): Check {
  const { hidePid, own } = access;
  if (hidePid === null) return passed('hidepid', '/proc shows the processes of all users');
  const detail = `/proc is mounted with hidepid=${hidePid}`;
  if (isCapable(access)) return passed('hidepid', `${detail}, which CAP_SYS_PTRACE overrides`);
  return {
    name: 'hidepid',
    status: 'limited',
    detail: `${detail}: processes of other users do not show`,
    remedy: remedyText(hidePidRemedies(own.uids[1] === 0, command)),
  };
}

function seccompCheck({ seccomp, access }: RightsFacts): Check {
  if (seccomp === 0) return passed('seccomp', 'trace runs under no filter');
  return {
    name: 'seccomp',
    status: 'limited',
    detail:
      'trace runs under a seccomp filter, as containers set one; reading /proc is not usually in it, ' +
      'but what it denies looks like a missing permission',
    remedy: access.inContainer
      ? remedyText(SECCOMP_REMEDIES)
      : 'run trace outside the sandbox (systemd: SystemCallFilter=) that started it',
  };
}

type Rule = Parameters<typeof remediesFor>[0];

/** The same remedies that attach gives, a line each with what they cost. */
function remedyFor(rule: Rule, access: RightsFacts['access'], command: readonly string[]): string {
  return remedyText(remediesFor(rule, access, command));
}
