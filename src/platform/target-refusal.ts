import { lstatSync, readFileSync } from 'node:fs';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import type { ElfHeader } from './elf.ts';
import { ELF_MACHINE } from './elf.ts';
import { pidsKnownInsideAs } from './inner-pid.ts';
import { readStat } from './proc.ts';
import { hidePid, isNestedPidNamespace } from './permission-facts.ts';
import {
  hiddenProcesses,
  hidePidRemedies,
  ownCommandLine,
  remedyText,
} from './permission-remedies.ts';

/** Why a process cannot be attached to: one error each, so that scripts can tell them apart by `code`. */

/** Every container has a pid 1, and most a 7. */
const LISTED = 5;

export function goneError(pid: number): TraceError {
  if (hidePid() !== null && isThere(pid)) return hiddenError(pid);
  const reasons: string[] = [];
  const hidden = hiddenProcesses();
  if (hidden !== null) reasons.push(hidden);
  if (isNestedPidNamespace())
    reasons.push('trace runs in a container and sees only the pids in it, by their inner numbers.');
  const inside = pidsKnownInsideAs(pid).slice(0, LISTED);
  if (inside.length > 0)
    reasons.push(
      `Within a container ${inside.length === 1 ? 'one process has' : 'several have'} that pid; here: trace attach ${inside.join(', or ')}`,
    );
  reasons.push('Run `trace attach` to list what can be attached to.');
  return new TraceError('ERR_TARGET_NOT_FOUND', `no process has pid ${pid}`, {
    exitCode: EXIT.notFound,
    remedy: reasons.join('\n'),
  });
}

/** Asked by stat(2), which hidepid=1 lets pass, and not by access(2). */
function isThere(pid: number): boolean {
  return lstatSync(`/proc/${pid}`, { throwIfNoEntry: false }) !== undefined;
}

/** `hidepid=1`: it is seen to be there, and nothing more. */
function hiddenError(pid: number): TraceError {
  const remedies = hidePidRemedies(process.geteuid?.() === 0, ownCommandLine(pid));
  return new TraceError(
    'ERR_TARGET_HIDDEN',
    `pid ${pid} is hidden: /proc is mounted with hidepid=${printable(hidePid() ?? '', 20)}, and it belongs to another user`,
    { exitCode: EXIT.notFound, remedy: remedyText(remedies) },
  );
}

export function zombieError(pid: number, parent: number): TraceError {
  const name = printable(readStat(parent)?.comm ?? 'gone', 16);
  return new TraceError(
    'ERR_TARGET_ZOMBIE',
    `pid ${pid} has already ended: it is a zombie that its parent ${parent} (${name}) has not waited for`,
    {
      exitCode: EXIT.notFound,
      remedy: `Attach to the process that replaced it, or look at why ${parent} does not reap its children.`,
    },
  );
}

export function threadError(tid: number, pid: number): TraceError {
  return new TraceError('ERR_TARGET_IS_THREAD', `${tid} is a thread of process ${pid}`, {
    exitCode: EXIT.notFound,
    remedy: `Attach to the process: trace attach ${pid}`,
  });
}

export function kernelThreadError(pid: number, comm: string): TraceError {
  return new TraceError(
    'ERR_TARGET_KERNEL_THREAD',
    `pid ${pid} (${printable(comm, 16)}) is a thread of the kernel: it has no program to look into`,
    { exitCode: EXIT.unsupported, remedy: 'For kernel work use perf or bpftrace.' },
  );
}

export function ownProcessError(pid: number): TraceError {
  return new TraceError('ERR_TARGET_IS_TRACE', `pid ${pid} is trace itself`, {
    exitCode: EXIT.usage,
    remedy: 'Name another process; `trace attach` lists them.',
  });
}

/** What this build of Node, and so trace, runs on. */
const OWN_MACHINE: Readonly<Record<string, number>> = {
  x64: ELF_MACHINE.x86_64,
  arm64: ELF_MACHINE.aarch64,
};

/** Null when structures of a program with this header can be read from here: 64-bit, of our own architecture. */
export function architectureError(pid: number, header: ElfHeader): TraceError | null {
  const own = OWN_MACHINE[process.arch];
  if (header.bits === 64 && (own === undefined || header.machine === own)) return null;
  const name =
    Object.entries(ELF_MACHINE).find(([, machine]) => machine === header.machine)?.[0] ??
    `ELF machine ${header.machine}`;
  return new TraceError(
    'ERR_TARGET_ARCHITECTURE',
    `pid ${pid} runs a ${header.bits}-bit ${name} program; trace reads 64-bit ${process.arch} ones here`,
    {
      exitCode: EXIT.unsupported,
      remedy: 'Run the 64-bit native build of the program, or trace on a machine of that kind.',
    },
  );
}

/** Names users go by here, from /etc/passwd; a directory service is not asked. */
export function userName(uid: number): string | null {
  try {
    for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const [name, , id] = line.split(':');
      if (id === String(uid) && name !== undefined) return printable(name, 32);
    }
  } catch {
    // No such file in minimal containers.
  }
  return null;
}
