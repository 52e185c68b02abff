import type { ThreadsLook, ThreadView, ThreadWaitKind } from '../../../src/core/threads.ts';
import { threadCall, type ThreadCall } from '../../../src/platform/thread-call.ts';
import type { PythonReader } from '../reader.ts';
import { threadNames } from '../thread-names.ts';
import type { ThreadState } from '../thread-states.ts';
import { lockGraph } from './lock-graph.ts';
import { ThreadLook } from './thread-look.ts';

/** What each thread of a process waits for, and who has it: one look. */

/** Threads whose locks are looked into; pools of more are pools of the same. */
const DEEP = 512;

/** A thread's view, with the descriptor of its I/O in place of the peer: naming that is for whoever knows sockets. */
export type SeenThread = Omit<ThreadView, 'peer'> & { readonly fd: number | null };

/** Threads that have Python code; `kernelName` names those that the program does not. */
export function listThreads(
  reader: PythonReader,
  kernelName: (tid: number) => string,
): Omit<ThreadsLook, 'threads'> & { readonly threads: readonly SeenThread[] } {
  const states = reader.states();
  const names = threadNames(reader);
  const nameOf = (tid: number): string => names.get(tid) ?? kernelName(tid);
  const holder = reader.gilHolder(states)?.tid ?? null;
  const locks = lockWaits(reader, states.length);
  const byThread = new Map<number, ThreadState>();
  // The main thread's state is the last of the list.
  for (const state of states.toReversed())
    if (!byThread.has(state.tid)) byThread.set(state.tid, state);
  const threads = [...byThread.values()].flatMap((state): SeenThread[] => {
    const { tid } = state;
    const frames = reader.sampledState(state);
    if (frames === 'gone') return [];
    const found = callOf(reader, state);
    if (found === null) return [];
    const { call, wait: seen } = found;
    // Looks at threads come one after the other: who had it at the first may wait for it at this one. Both at once is never true.
    const wait = seen === 'gil' && tid === holder ? 'running' : seen;
    const lock = wait === 'lock' ? (locks?.get(tid) ?? null) : null;
    const ofGil = wait === 'gil' && holder !== null && holder !== tid ? [nameOf(holder)] : [];
    return [
      {
        tid,
        name: nameOf(tid),
        wait,
        hasGil: tid === holder,
        on: lock === null ? null : { label: lock.label, kind: lock.kind },
        holders: lock === null ? ofGil : lock.holders.map(nameOf),
        fd: wait === 'io' ? call.fd : null,
        frames: frames ?? [],
      },
    ];
  });
  return { threads, knowsLocks: locks !== null };
}

/** A thread that waits for the GIL wakes up every 5 ms: what it seems to do may be over by the time its part in that is read. */
const TRIES = 4;

/** What a thread is in, the same before and after it was read whether it waits for the GIL; null where it is gone. */
function callOf(
  reader: PythonReader,
  state: ThreadState,
): { readonly call: ThreadCall; readonly wait: ThreadWaitKind } | null {
  let call = threadCall(reader.pid, state.tid);
  for (let tries = 1; call !== null; tries++) {
    if (call.kind !== 'futex') return { call, wait: call.kind };
    if (awaitsGil(reader, state)) return { call, wait: 'gil' };
    const after = threadCall(reader.pid, state.tid);
    if (after === null) return null;
    // It has not run in between, so all of it is of one moment.
    const isSame = after.kind === 'futex' && after.cpuNs === call.cpuNs;
    if (isSame || tries >= TRIES) return { call: after, wait: waitOf(after) };
    call = after;
  }
  return null;
}

function waitOf({ kind }: ThreadCall): ThreadWaitKind {
  return kind === 'futex' ? 'lock' : kind;
}

function awaitsGil(reader: PythonReader, state: ThreadState): boolean {
  const lock = reader.lockOf(state);
  const isWaiting = (lock?.wait() ?? 0) !== 0;
  lock?.close();
  return isWaiting;
}

interface LockWait {
  readonly label: string;
  readonly kind: string;
  readonly holders: readonly number[];
}

/** By thread; null for a version whose locks are not known. */
function lockWaits(reader: PythonReader, threads: number): ReadonlyMap<number, LockWait> | null {
  const look = ThreadLook.of(reader);
  if (look === null) return null;
  // Who runs may be inside of a lock's body as well: it is told from one that holds still only.
  const waiting = look
    .begin()
    .slice(0, DEEP)
    .flatMap((state) => {
      const thread = look.still(state);
      return thread === null ? [] : [{ thread, since: 0 }];
    });
  const graph = lockGraph(look, waiting, { pid: reader.pid, threads });
  const tidOf = new Map(graph.actors.map(({ id, tid }) => [id, tid]));
  const waits = new Map<number, LockWait>();
  for (const { tid, on } of graph.actors) {
    const object = graph.objects.find(({ id }) => id === on);
    if (object === undefined) continue;
    const holders = object.holders.flatMap(({ actor }) => tidOf.get(actor) ?? []);
    waits.set(tid, { label: object.label, kind: object.kind, holders });
  }
  return waits;
}
