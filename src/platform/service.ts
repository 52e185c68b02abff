import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { listProcesses, readCommandLine, readProc, readStat, readStatus } from './proc.ts';
import { hasEnded, isKernelThread, type ProcStat } from './proc-parse.ts';
import { listeningSockets } from './sockets.ts';
import { findMatches, ownFamily } from './target-match.ts';

/** What makes a process recognisable when it comes again under another pid: who it was to the machine, not only what it called itself. */

/** One service, as its process showed it. All text is untrusted. */
export interface Service {
  /** Pattern of `--match`; null where it was named by its pid. */
  readonly pattern: string | null;
  readonly uid: number | null;
  readonly parent: number;
  /** Each command line it was seen with: programs that set their title begin with another. */
  readonly commandLines: ReadonlySet<string>;
  /** Name of the program file; null where it may not be read. */
  readonly program: string | null;
  readonly workingDirectory: string | null;
  /** Path of its control group where that is a unit of systemd's; null elsewhere. */
  readonly unit: string | null;
  /** TCP ports it listened on. */
  readonly ports: ReadonlySet<number>;
}

/** What a process shows of itself now, added to what is known of it. Reads the links of its descriptors: not in a hot loop. */
export function describeService(
  pid: number,
  known: Pick<Service, 'pattern'> & Partial<Service>,
): Service {
  const commandLine = commandLineOf(pid);
  return {
    pattern: known.pattern,
    uid: readStatus(pid)?.uids[1] ?? known.uid ?? null,
    parent: readStat(pid)?.parent ?? known.parent ?? 0,
    // A process on its way out has none any more.
    commandLines: new Set([
      ...(known.commandLines ?? []),
      ...(commandLine === '' ? [] : [commandLine]),
    ]),
    program: programOf(pid) ?? known.program ?? null,
    workingDirectory: linkOf(pid, 'cwd') ?? known.workingDirectory ?? null,
    unit: unitOf(pid) ?? known.unit ?? null,
    ports: new Set([...(known.ports ?? []), ...portsOf(pid)]),
  };
}

/** What came in the place of a service that ended. */
export type Successor =
  | { readonly kind: 'none' }
  | { readonly kind: 'one'; readonly stat: ProcStat }
  /** Processes that could be it, and none that surely is. */
  | { readonly kind: 'several'; readonly pids: readonly number[] };

/**
 * The process that a service came back as, among those that began at or after `since` (clock ticks since boot, when the old one was last
 * seen alive). It is of the same user, and either what `--match` names, or has the same command line, program and directory, or the same
 * program on the same port, or is the first process of the same unit. Of a parent and its children the parent is meant, unless the old one
 * was such a child itself.
 */
export function findSuccessor(service: Service, since: number): Successor {
  const family = ownFamily();
  const all = service.pattern === null ? listProcesses() : findMatches(service.pattern);
  const candidates = all.filter(
    (stat) =>
      stat.startTicks >= since &&
      !family.has(stat.pid) &&
      !hasEnded(stat) &&
      !isKernelThread(stat) &&
      resembles(service, stat),
  );
  const [only, ...others] = narrow(service, candidates);
  if (only === undefined) return { kind: 'none' };
  if (others.length === 0) return { kind: 'one', stat: only };
  return { kind: 'several', pids: [only, ...others].map(({ pid }) => pid) };
}

function resembles(service: Service, { pid, parent }: ProcStat): boolean {
  if (service.uid !== null && readStatus(pid)?.uids[1] !== service.uid) return false;
  if (service.pattern !== null) return true;
  const isProgram = service.program === null || programOf(pid) === service.program;
  if (!isProgram) return false;
  const unit = unitOf(pid);
  if (service.unit !== null && unit === service.unit && unitOf(parent) !== unit) return true;
  if (service.commandLines.has(commandLineOf(pid))) {
    const directory = linkOf(pid, 'cwd');
    const isHere =
      directory === null ||
      service.workingDirectory === null ||
      directory === service.workingDirectory;
    // Started by hand while the unit is down, it is somebody's second try and not the service.
    return isHere && (service.unit === null || unit === service.unit);
  }
  return service.ports.size > 0 && portsOf(pid).some((port) => service.ports.has(port));
}

/** Of several the one that surely is meant, else all of them. */
function narrow(service: Service, candidates: readonly ProcStat[]): readonly ProcStat[] {
  // A worker is followed by the worker that its master starts in its place.
  const siblings =
    service.parent > 1 ? candidates.filter(({ parent }) => parent === service.parent) : [];
  if (siblings.length > 0) return siblings;
  const pids = new Set(candidates.map(({ pid }) => pid));
  const topmost = candidates.filter(({ parent }) => !pids.has(parent));
  if (topmost.length < 2) return topmost;
  const listening = topmost.filter(({ pid }) =>
    portsOf(pid).some((port) => service.ports.has(port)),
  );
  return listening.length === 1 ? listening : topmost;
}

function commandLineOf(pid: number): string {
  return readCommandLine(pid).join('\0');
}

/** By name: an update puts the same program elsewhere, or deletes the file that runs. */
function programOf(pid: number): string | null {
  const path = linkOf(pid, 'exe');
  return path === null ? null : basename(path.replace(/ \(deleted\)$/, ''));
}

function linkOf(pid: number, name: 'exe' | 'cwd'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return null;
  }
}

/** `/system.slice/app.service`, also with groups of its own below; a login's session and its manager are no service. */
function unitOf(pid: number): string | null {
  return unitIn(readProc(`/proc/${pid}/cgroup`) ?? '');
}

/** The unit that the text of `/proc/<pid>/cgroup` names. */
export function unitIn(text: string): string | null {
  const path = /^\d+:[^:]*:(\/.*\.service(?:\/.*)?)$/m.exec(text)?.[1] ?? '';
  const unit = /^.*\/(?!user@)[^/]+\.service(?=\/|$)/.exec(path)?.[0];
  return unit === undefined || path.slice(unit.length).includes('.scope') ? null : unit;
}

function portsOf(pid: number): readonly number[] {
  try {
    return listeningSockets(pid).map(({ port }) => port);
  } catch {
    return [];
  }
}
