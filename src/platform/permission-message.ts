import { printable } from '../core/text.ts';
import { readStat } from './proc.ts';
import { isFrozen } from './freezer.ts';
import type { AccessFacts } from './permission-facts.ts';
import type { Remedy } from './permission-remedies.ts';
import type { AccessRule } from './permission-rules.ts';
import { userName } from './target-refusal.ts';

/** What a person is told when a process may not be read: whose it is, which rule forbids it, and commands that change that. */

/** The rule in a sentence, with the values found. */
export function causeOf(rule: AccessRule | null, facts: AccessFacts): string {
  const { own, target } = facts;
  const withoutCapability = 'CAP_SYS_PTRACE is not held';
  switch (rule) {
    case 'other-user':
      return own.uids[3] === target.uids[1]
        ? `its user or group ids differ from each other or from ours (a setuid program?) and ${withoutCapability}`
        : `it belongs to ${person(target.uids[1])}, trace runs as ${person(own.uids[3])} and ${withoutCapability}`;
    case 'user-namespace':
      return 'CAP_SYS_PTRACE is held, but in a user namespace (rootless container) that the process is not in';
    case 'not-dumpable':
      return `it is marked not dumpable (file capabilities, a setuid start, or prctl(PR_SET_DUMPABLE)) and ${withoutCapability}`;
    case 'more-capabilities':
      return `it holds capabilities that trace does not hold, and ${withoutCapability}`;
    case 'yama-descendants':
      return `kernel.yama.ptrace_scope = 1 (only descendants may be traced) and ${withoutCapability}`;
    case 'yama-admin':
      return `kernel.yama.ptrace_scope = 2 (only with CAP_SYS_PTRACE) and ${withoutCapability}`;
    case 'yama-none':
      return 'kernel.yama.ptrace_scope = 3: nobody may look into a process until the next reboot';
    case null: {
      const modules = facts.securityModules.filter((name) => name !== 'capability');
      const suspects = [
        ...(facts.seccomp === 0 ? [] : ['trace runs under a seccomp filter']),
        ...(modules.length === 0
          ? []
          : [`active security modules: ${printable(modules.join(', '), 80)}`]),
      ];
      return `denied though no known rule forbids it (${suspects.join('; ') || 'a security module or a sandbox?'})`;
    }
  }
}

/** What is lost and what is left, as lines for stderr. */
export function accessMessage(
  facts: AccessFacts,
  denial: { code: string; cause: string; remedies: readonly Remedy[]; lost: string; left: string },
): readonly string[] {
  const { target } = facts;
  const width = Math.max(...denial.remedies.map(({ command }) => command.length));
  return [
    `cannot read memory of pid ${target.pid} (${printable(target.comm, 16)}, uid ${target.uids[1]}): ${denial.code}`,
    `  cause       ${denial.cause}`,
    `  not seen    ${denial.lost}`,
    `  still seen  ${denial.left}`,
    '  to see everything, one of:',
    ...denial.remedies.map(({ command, note }) => `    ${command.padEnd(width)}  # ${note}`),
  ];
}

/**
 * What is worth knowing even when nothing is denied: the target does not run, or somebody debugs
 * it.
 */
export function conditionsOf({ target }: AccessFacts): readonly string[] {
  const lines: string[] = [];
  if (target.tracer !== 0) {
    const name = printable(readStat(target.tracer)?.comm ?? 'unknown', 16);
    lines.push(
      `pid ${target.pid} is already traced by ${target.tracer} (${name}): stops made there show as blocks`,
    );
  }
  if (target.state === 'T' || target.state === 't')
    lines.push(`pid ${target.pid} is stopped; nothing happens in it until SIGCONT`);
  if (isFrozen(target.pid))
    lines.push(
      `pid ${target.pid} is frozen with its control group (docker pause); nothing happens in it until that is thawed`,
    );
  return lines;
}

function person(uid: number | undefined): string {
  const name = uid === undefined ? null : userName(uid);
  return name === null ? `uid ${uid ?? '?'}` : `${name} (uid ${uid})`;
}
