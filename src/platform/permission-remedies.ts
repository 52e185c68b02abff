import { maskArguments } from '../core/secrets/mask.ts';
import { printable } from '../core/text.ts';
import { type AccessFacts, hidePid, hidePidGroup } from './permission-facts.ts';
import type { AccessRule } from './permission-rules.ts';
import { ownProgram } from './standalone.ts';

/** Commands that make readable what may not be read, to be pasted as they stand. */

export interface Remedy {
  readonly command: string;
  /** What it costs or how long it lasts. */
  readonly note: string;
}

/** What makes the process readable, the least change first. Never empty. */
export function remediesFor(
  rule: AccessRule | null,
  facts: Pick<AccessFacts, 'own' | 'inContainer'> & Partial<Pick<AccessFacts, 'seccomp'>>,
  commandLine: readonly string[],
): readonly Remedy[] {
  if (rule === 'yama-none')
    return [{ command: 'sudo reboot', note: 'scope 3 cannot be lowered while the machine runs' }];
  if (rule === 'user-namespace')
    return [{ command: shellQuote(commandLine), note: 'outside the container, on the host' }];
  if (rule === null)
    return [
      { command: 'sudo dmesg | tail', note: 'shows which module denied it, if it logs' },
      ...(facts.inContainer && (facts.seccomp ?? 0) !== 0 ? SECCOMP_REMEDIES : []),
    ];
  const remedies: Remedy[] = [];
  const isRoot = facts.own.uids[1] === 0;
  if (!isRoot)
    remedies.push({ command: `sudo ${shellQuote(commandLine)}`, note: 'this time only' });
  if (rule === 'yama-descendants')
    remedies.push({
      command: 'sudo sysctl kernel.yama.ptrace_scope=0',
      note: 'until reboot; weakens hardening',
    });
  if (facts.inContainer) remedies.push(...CONTAINER_REMEDIES);
  if (isRoot && !facts.inContainer)
    remedies.push({
      command: shellQuote(commandLine),
      note: 'from a root shell whose bounding set holds CAP_SYS_PTRACE (capsh --print shows it)',
    });
  return remedies;
}

/** A container beside that of the target, in its pid namespace; the names in capitals are the reader's to fill in (docs/containers.md). */
export const CONTAINER_REMEDIES: readonly Remedy[] = [
  {
    command: 'docker run --cap-add=SYS_PTRACE --pid=container:NAME --rm -it IMAGE trace attach PID',
    note: 'Docker, Podman; not --privileged',
  },
  {
    command:
      'kubectl debug POD -it --image=IMAGE --target=CONTAINER --profile=sysadmin -- trace attach PID',
    note: 'Kubernetes; or securityContext.capabilities.add: [SYS_PTRACE]',
  },
];

/** To find out, not to keep. */
export const SECCOMP_REMEDIES: readonly Remedy[] = [
  {
    command: 'docker run --security-opt seccomp=unconfined …',
    note: 'Docker, Podman: only to see whether it is the cause',
  },
  { command: 'securityContext.seccompProfile.type: Unconfined', note: 'Kubernetes' },
];

/** What makes processes show that a /proc with hidepid hides, the least change first. */
export function hidePidRemedies(
  isRoot: boolean,
  commandLine: readonly string[],
): readonly Remedy[] {
  const group = hidePidGroup();
  return [
    ...(isRoot ? [] : [{ command: `sudo ${shellQuote(commandLine)}`, note: 'this time only' }]),
    ...(isRoot || group === null
      ? []
      : [
          {
            command: `sudo usermod -aG "$(getent group ${group} | cut -d: -f1)" "$USER"`,
            note: `the mount exempts group ${group}; log in anew`,
          },
        ]),
    {
      command: 'sudo mount -o remount,hidepid=0 /proc',
      note: 'until reboot; shows everybody everything again',
    },
  ];
}

/** That a list may be short because of hidepid; null where nothing is hidden from us. */
export function hiddenProcesses(): string | null {
  const option = hidePid();
  return option === null || process.geteuid?.() === 0
    ? null
    : `/proc is mounted with hidepid=${printable(option, 20)}: processes of other users do not show; try sudo.`;
}

/** One line each, as a shell would take it. */
export function remedyText(remedies: readonly Remedy[]): string {
  return remedies.map(({ command, note }) => `${command}  # ${note}`).join('\n');
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
  const isFit = maskArguments(typed).every(
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
