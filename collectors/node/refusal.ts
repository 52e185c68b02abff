import { readlinkSync } from 'node:fs';
import { printable } from '../../src/core/text.ts';
import type { ProcessTarget } from '../../src/core/types.ts';
import { descriptorRoom } from '../../src/platform/descriptor-count.ts';
import { isFrozen } from '../../src/platform/freezer.ts';
import { watchedSignals } from '../../src/platform/libuv-signals.ts';
import { ProcessMemory } from '../../src/platform/memory.ts';
import { listProcesses, readStat, readStatus } from '../../src/platform/proc.ts';
import type { Runtime } from '../../src/platform/runtime.ts';
import {
  holdsSocket,
  type ListeningSocket,
  parseListening,
  readSocketTable,
} from '../../src/platform/sockets.ts';
import {
  LEAST_DESCRIPTORS,
  OPENING_SIGNAL_NUMBER,
  catchesOpeningSignal,
} from '../../src/platform/touch.ts';
import { inspectorOptions } from './inspector.ts';

/**
 * Whether a process may be asked, by a signal, to open its inspector: only where it is certain that Node itself takes the signal, that the
 * inspector will listen on loopback, and that it can be closed again. Reads only.
 */

export interface Refusal {
  readonly ok: false;
  readonly reason: string;
  readonly remedy: string | null;
}
export type Opening = { readonly ok: true; readonly port: number | null } | Refusal;

/** The oldest release that any of this was tried on. */
const OLDEST_MAJOR = 20;
/** Enough for an inspection, and for what the program opens meanwhile. */
const MORE_DESCRIPTORS = 100;
const LOOPBACK = /^(?:127\.[\d.]+|localhost|\[?::1\]?)$/;
/** Processes that are looked through for the holder of a port, newest first. */
const HOLDERS_LOOKED_AT = 2000;

/** `force`: go on where libuv's book of handlers cannot be read; never where it says that there is one. */
export function judgeOpening(
  target: ProcessTarget,
  runtime: Runtime,
  options: { readonly force: boolean },
): Opening {
  return (
    judgeRuntime(runtime) ??
    judgeNamespace(target.pid) ??
    judgeState(target.pid) ??
    judgeSignal(target.pid) ??
    judgeRoom(target.pid, options.force) ??
    judgeHandler(target.pid, options.force) ??
    judgeAddress(target.pid)
  );
}

function judgeRuntime(runtime: Runtime): Refusal | null {
  if (runtime.name === 'bun')
    return refused(
      'it runs Bun, which has no inspector that can be opened from outside: the signal that opens it in Node would end Bun',
      'Start it with bun --inspect and connect a debugger.',
    );
  if (runtime.name === 'deno')
    return refused(
      'it runs Deno, whose inspector cannot be closed again from outside once it is open',
      'Start it with deno run --inspect and connect a debugger.',
    );
  if (runtime.name !== 'node')
    return refused(`it does not run Node (${printable(runtime.name, 40)})`, null);
  const major = Number(runtime.version?.split('.')[0] ?? Number.NaN);
  return major < OLDEST_MAJOR
    ? refused(
        `it runs Node ${runtime.version ?? ''}, and this was never tried on releases before ${OLDEST_MAJOR}`,
        `Use Node ${OLDEST_MAJOR} or newer, or start it with node --inspect.`,
      )
    : null;
}

/** The inspector listens in the network namespace of the target: elsewhere nobody could close it again. */
export function judgeNamespace(pid: number): Refusal | null {
  try {
    if (readlinkSync(`/proc/${pid}/ns/net`) === readlinkSync('/proc/self/ns/net')) return null;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return refused(`its network namespace cannot be told (${code})`, null);
  }
  return refused(
    'it lives in another network namespace, where trace cannot connect',
    `Run trace inside it: nsenter -t ${pid} -n trace attach ${pid} --inspect`,
  );
}

function judgeState(pid: number): Refusal | null {
  const stat = readStat(pid);
  if (stat === null) return refused('it is gone', null);
  if (isFrozen(pid))
    return refused(
      'its control group is frozen: the signal would wait until it is thawed',
      'Thaw it: docker unpause <container>, or its cgroup.freeze (version 1: freezer.state).',
    );
  if (stat.state !== 'T' && stat.state !== 't') return null;
  const by = stat.state === 't' ? 'a debugger holds it' : 'it is stopped';
  return refused(
    `${by}: the signal would wait until it goes on`,
    `Let it go on: kill -CONT ${pid}`,
  );
}

/** Without a handler the signal ends the process. Node has none under the permission model, and none when it was told so. */
function judgeSignal(pid: number): Refusal | null {
  if (catchesOpeningSignal(pid) === true) return null;
  const { words } = inspectorOptions(pid);
  const because = words.find((word) =>
    /^--(?:disable-sigusr1|permission|experimental-permission)(?:=|$)/.test(word),
  );
  return refused(
    because === undefined
      ? 'it does not catch the signal that opens the inspector, which would end it (SIGUSR1 is not in SigCgt)'
      : `it was started with ${printable(because, 40)}, so the signal that opens the inspector would end it`,
    'Start it with node --inspect to see the functions that block.',
  );
}

/** Node ends where it gets no descriptor for the loop, the pipes and the port of its inspector. */
function judgeRoom(pid: number, force: boolean): Refusal | null {
  const room = descriptorRoom(pid);
  if (room === null)
    return force
      ? null
      : refused(
          'how many descriptors it has left cannot be read, and Node ends where it has too few',
          'If you know that it has enough: --inspect=force',
        );
  const { free, limit } = room;
  if (free >= LEAST_DESCRIPTORS) return null;
  return refused(
    `it has ${free} of its ${limit} descriptors left, and Node ends where it has too few to open its inspector (${LEAST_DESCRIPTORS} are asked for)`,
    `Allow it more: prlimit --pid ${pid} --nofile=${limit + MORE_DESCRIPTORS}:`,
  );
}

/** A handler of the application's own takes the signal as whatever it means there, and opens nothing. */
function judgeHandler(pid: number, force: boolean): Refusal | null {
  let memory: ProcessMemory;
  try {
    memory = new ProcessMemory(pid);
  } catch (error) {
    return force ? null : unreadable(error instanceof Error ? error.message : String(error));
  }
  try {
    const watched = watchedSignals(pid, memory);
    if (!watched.ok) return force ? null : unreadable(watched.reason);
    return watched.signals.has(OPENING_SIGNAL_NUMBER)
      ? refused(
          'the application handles SIGUSR1 itself, and would take it for something else',
          'Start it with node --inspect to see the functions that block.',
        )
      : null;
  } finally {
    memory.close();
  }
}

function unreadable(reason: string): Refusal {
  return refused(
    `whether the application handles SIGUSR1 itself cannot be read (${printable(reason, 120)})`,
    'If you know that it does not: --inspect=force',
  );
}

function judgeAddress(pid: number): Opening {
  const { host, port, words } = inspectorOptions(pid);
  if (host !== null && !LOOPBACK.test(host))
    return refused(
      `its inspector would listen on ${printable(host, 60)}, where others than this machine may reach it`,
      null,
    );
  const publishes = words.find((word) => word.startsWith('--inspect-publish-uid='));
  if (publishes !== undefined && !/[=,]http\b/.test(publishes))
    return refused(
      `it was started with ${printable(publishes, 60)}, so its inspector could be opened but not found`,
      null,
    );
  const holder = port === null ? null : holderOf(pid, port);
  if (holder === null) return { ok: true, port };
  return refused(
    `port ${port}, on which it would open its inspector, is taken by ${holder}`,
    'One process at a time can have that port: wait until it is free, or start this one with another --inspect-port.',
  );
}

/** Who listens on a port that the target is going to want, in its own network namespace. */
function holderOf(pid: number, port: number): string | null {
  const rows: ListeningSocket[] = [];
  for (const family of [4, 6] as const) {
    try {
      rows.push(...parseListening(readSocketTable(pid, family), family));
    } catch {
      // A kernel without IPv6; or it is gone, which the signal will find.
    }
  }
  const taken = rows.find((row) => row.port === port);
  if (taken === undefined) return null;
  const processes = listProcesses().toReversed().slice(0, HOLDERS_LOOKED_AT);
  const holder = processes.find((one) => holdsSocket(one.pid, taken.inode));
  return holder === undefined
    ? 'another process'
    : `pid ${holder.pid} (${printable(readStatus(holder.pid)?.name ?? holder.comm, 40)})`;
}

/** Of a process that did not survive being asked. */
export const ENDED_BY_SIGNAL =
  'it ended when trace sent it SIGUSR1, at which Node opens its inspector: that signal ended it, unless something else did in the same moment';

export function refused(reason: string, remedy: string | null): Refusal {
  return { ok: false, reason, remedy };
}
