import { printable } from '../core/text.ts';
import { readStat } from './proc.ts';
import type { AccessFacts } from './permission-facts.ts';
import type { AccessRule } from './permission-rules.ts';
import { ownProgram } from './standalone.ts';
import { userName } from './target-refusal.ts';
import { maskCredentials } from './target-title.ts';

/** What a person is told when a process may not be read: whose it is, which rule forbids it, and commands that change that. */

export interface Remedy {
  readonly command: string;
  /** What it costs or how long it lasts. */
  readonly note: string;
}

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
      const suspects =
        modules.length === 0
          ? 'a security module or a sandbox?'
          : `active security modules: ${printable(modules.join(', '), 80)}`;
      return `denied though no known rule forbids it (${suspects})`;
    }
  }
}

/** What makes the process readable, the least change first. Never empty. */
export function remediesFor(
  rule: AccessRule | null,
  facts: Pick<AccessFacts, 'own' | 'inContainer'>,
  commandLine: readonly string[],
): readonly Remedy[] {
  if (rule === 'yama-none')
    return [{ command: 'sudo reboot', note: 'scope 3 cannot be lowered while the machine runs' }];
  if (rule === 'user-namespace')
    return [{ command: shellQuote(commandLine), note: 'outside the container, on the host' }];
  if (rule === null)
    return [{ command: 'sudo dmesg | tail', note: 'shows which module denied it, if it logs' }];
  const remedies: Remedy[] = [];
  const isRoot = facts.own.uids[1] === 0;
  if (!isRoot)
    remedies.push({ command: `sudo ${shellQuote(commandLine)}`, note: 'this time only' });
  if (rule === 'yama-descendants')
    remedies.push({
      command: 'sudo sysctl kernel.yama.ptrace_scope=0',
      note: 'until reboot; weakens hardening',
    });
  if (facts.inContainer)
    remedies.push(
      { command: 'docker run --cap-add=SYS_PTRACE …', note: 'Docker, Podman; not --privileged' },
      {
        command: 'kubectl debug POD -it --image=IMAGE --target=CONTAINER --profile=sysadmin',
        note: 'Kubernetes; or securityContext.capabilities.add: [SYS_PTRACE]',
      },
    );
  if (isRoot && !facts.inContainer)
    remedies.push({
      command: shellQuote(commandLine),
      note: 'from a root shell whose bounding set holds CAP_SYS_PTRACE (capsh --print shows it)',
    });
  return remedies;
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

/** What is worth knowing even when nothing is denied: the target is stopped, or somebody debugs it. */
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
  return lines;
}

/**
 * The command that runs trace again on this target, with the flags that were typed. Should they hold a credential or a control character,
 * which a remedy must not repeat, then without.
 */
export function ownCommandLine(
  pid: number,
  typed: readonly string[] = process.argv.slice(2),
): readonly string[] {
  const isAttach = typed.find((word) => !word.startsWith('-')) === 'attach';
  const isFit = maskCredentials(typed).every(
    (word, at) => word === typed[at] && printable(word, word.length) === word,
  );
  return ownInvocation(isAttach && isFit ? typed : ['attach', String(pid)]);
}

/** trace with these arguments as root can start it, too: with absolute paths, since root's PATH may lack Node. */
export function ownInvocation(args: readonly string[]): readonly string[] {
  return [...ownProgram(), ...args];
}

/** Words as a POSIX shell takes them. */
export function shellQuote(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

function person(uid: number | undefined): string {
  const name = uid === undefined ? null : userName(uid);
  return name === null ? `uid ${uid ?? '?'}` : `${name} (uid ${uid})`;
}
