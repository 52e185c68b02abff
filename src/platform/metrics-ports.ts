import { readdirSync, readlinkSync } from 'node:fs';
import { readCommandLine } from './proc.ts';
import type { Role, ServerFamily } from './roles.ts';
import { listenersAround, type ListeningSocket, listeningSockets } from './sockets.ts';

/** Where a process may publish its numbers: which of its own listening ports to ask, what for, and why not the others. */

/** A page to ask for. */
export interface PageCandidate {
  readonly pid: number;
  /** As reports write it: `vLLM API server`; null for a process that was asked about in spite of being unknown. */
  readonly role: string | null;
  readonly url: string;
  /** What makes the server publish it, where it is not there. */
  readonly remedy: string | null;
}

/** What could be asked, and why nothing could. */
export interface PageSearch {
  readonly candidates: readonly PageCandidate[];
  /** In words; null where there is a candidate, or nothing that has such a page. */
  readonly obstacle: string | null;
}

/** How servers publish their page. */
interface PageHabit {
  /** Roles of the processes that answer HTTP: the others' ports belong to protocols that a question could disturb. */
  readonly roles: RegExp;
  /** Where it listens unless told otherwise. */
  readonly ports: readonly number[];
  readonly path: string;
  readonly remedy: string | null;
}

const SERVING = /API server|^server$/;
const HABITS: Readonly<Partial<Record<ServerFamily, PageHabit>>> = {
  vLLM: { roles: SERVING, ports: [8000], path: '/metrics', remedy: null },
  SGLang: {
    roles: /API server|router/,
    ports: [30_000, 29_000],
    path: '/metrics',
    remedy: 'SGLang publishes it with --enable-metrics.',
  },
  Dynamo: { roles: /frontend/, ports: [8000, 8080], path: '/metrics', remedy: null },
  // Its /metrics hands out the engine's statistics once: whoever else reads them would miss what we took.
  'TensorRT-LLM': {
    roles: SERVING,
    ports: [8000],
    path: '/prometheus/metrics',
    remedy: 'trtllm-serve publishes it where return_perf_metrics is set.',
  },
  TGI: { roles: /router|launcher/, ports: [3000, 80], path: '/metrics', remedy: null },
  'llama.cpp': {
    roles: SERVING,
    ports: [8080],
    path: '/metrics',
    remedy: 'llama-server publishes it with --metrics.',
  },
  Triton: { roles: SERVING, ports: [8002], path: '/metrics', remedy: null },
};
const ANYONE: PageHabit = { roles: /./, ports: [], path: '/metrics', remedy: null };

/** Ports asked of one process; a server has its own, and perhaps one for its numbers. */
const PORTS_ASKED = 8;

/** A process that may publish a page. */
export interface PageOwner {
  readonly pid: number;
  readonly role: Role | null;
}

/** Pages that these processes may have, the likeliest first. `any`: also of programs that are not known. Sends nothing. */
export function findPages(owners: readonly PageOwner[], { any }: { any: boolean }): PageSearch {
  const candidates: PageCandidate[] = [];
  const obstacles: string[] = [];
  for (const { pid, role } of owners) {
    const habit = habitOf(role, any);
    if (habit === null) continue;
    const found = portsOf(pid, habit);
    if (typeof found === 'string') obstacles.push(found);
    else {
      candidates.push(
        ...found.map((host) => ({
          pid,
          role: role === null ? null : `${role.family ?? ''} ${role.name}`.trim(),
          url: `http://${host}${habit.path}`,
          remedy: habit.remedy,
        })),
      );
    }
  }
  return { candidates, obstacle: candidates.length > 0 ? null : (obstacles[0] ?? null) };
}

/** Whether a process of this role is one that has a page. */
export function publishesPage(role: Role | null): boolean {
  return habitOf(role, false) !== null;
}

function habitOf(role: Role | null, any: boolean): PageHabit | null {
  const habit = role?.family == null ? undefined : HABITS[role.family];
  if (habit !== undefined && habit.roles.test(role?.name ?? '')) return habit;
  return any ? ANYONE : null;
}

/** `host:port` of its sockets; in words why they cannot be asked. A single one that it was told to use, or usually has, goes alone. */
function portsOf(pid: number, habit: PageHabit): readonly string[] | string {
  const { ports: usual } = habit;
  const namespace = networkOf(pid);
  const isOurs = namespace !== null && namespace === networkOf(process.pid);
  let sockets: readonly ListeningSocket[];
  try {
    sockets = listeningSockets(pid);
  } catch {
    sockets = [];
  }
  if (sockets.length === 0 && !readsDescriptors(pid)) return portsByName(pid, habit);
  if (sockets.length === 0) return `pid ${pid} listens on no TCP port yet`;
  if (!isOurs) {
    const ports = [...new Set(sockets.map(({ port }) => port))].slice(0, PORTS_ASKED).join(', ');
    return (
      `pid ${pid} listens on ${ports} in another network namespace, which cannot be reached from here: ` +
      'run trace in it, or give --metrics-url an address that can'
    );
  }
  const told = portToldOf(pid);
  const preferred = [...(told === null ? [] : [told]), ...usual].find((port) =>
    sockets.some((one) => one.port === port),
  );
  return hostsOf(
    preferred === undefined ? sockets : sockets.filter(({ port }) => port === preferred),
  );
}

/** One port on both families is one page. */
function hostsOf(sockets: readonly ListeningSocket[]): readonly string[] {
  const byPort = new Map(sockets.toReversed().map((one) => [one.port, one]));
  return [...byPort.values()]
    .toReversed()
    .slice(0, PORTS_ASKED)
    .map(({ host, family, port }) => `${family === 6 ? `[${host}]` : host}:${port}`);
}

/**
 * Without the right to see which sockets are its own: the port that its command line names, or else the usual ones, where somebody listens on them in
 * our network namespace and it shares that: then both see the same socket, by its inode.
 */
function portsByName(pid: number, { ports: usual }: PageHabit): readonly string[] | string {
  const told = portToldOf(pid);
  const names = told === null ? usual : [told];
  let shared: readonly ListeningSocket[] = [];
  try {
    const ours = new Set(listenersAround(process.pid).map(({ inode }) => inode));
    shared = listenersAround(pid).filter(({ inode }) => ours.has(inode));
  } catch {
    // Gone, or hidden: there is nothing to ask.
  }
  const likely = shared.filter(({ port }) => names.includes(port));
  if (likely.length > 0) return hostsOf(likely);
  return (
    `which ports are those of pid ${pid} may not be read, and nobody listens on ${names.join(' or ')}` +
    ': give --metrics-url'
  );
}

/** Where the links of its descriptors may not be read, it seems to have none. */
function readsDescriptors(pid: number): boolean {
  try {
    const [first] = readdirSync(`/proc/${pid}/fd`);
    if (first === undefined) return false;
    readlinkSync(`/proc/${pid}/fd/${first}`);
    return true;
  } catch {
    return false;
  }
}

function networkOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return null;
  }
}

/** `--port 8000`, `--http-port=8000`, `--metrics-port 8002`; null where its command line names none. */
function portToldOf(pid: number): number | null {
  const text = readCommandLine(pid).join('\n');
  for (const option of ['metrics[-_]port', 'http[-_]port', 'port']) {
    const [, port] = new RegExp(`(?:^|\\n)--${option}[=\\n](\\d{1,5})(?:\\n|$)`).exec(text) ?? [];
    if (port !== undefined) return Number(port);
  }
  return null;
}
