import type { LockActor, LockHolder, LockLook, LockObject } from '../../../src/core/lock-look.ts';
import type { Frame, Seconds } from '../../../src/core/types.ts';
import { isAddress } from '../objects.ts';
import { completersOf, type LoopThread, readLoops } from './future-setters.ts';
import type { StillThread, ThreadLook } from './thread-look.ts';
import type { WaitedObject } from './waited-object.ts';

/** From what the threads of a process wait for to who has it. */

/** What is kept of one actor's stack. */
const FRAMES_KEPT = 12;
const ACTORS_KEPT = 128;

/** A thread and how long it has been where it is. */
export interface Waiting {
  readonly thread: StillThread;
  readonly since: Seconds;
}

/** Threads that wait, what for, and which threads have it. `threads`: how many there are in all. */
export function lockGraph(
  look: ThreadLook,
  waiting: readonly Waiting[],
  { pid, threads }: { readonly pid: number; readonly threads: number },
): LockLook {
  const names = look.names();
  const loops = readLoops(look, waiting);
  const objects = waitedObjects(waiting);
  const described = [...objects.values()].map((object) =>
    describe(object, { look, waiting, loops }),
  );
  const holding = new Set(described.flatMap(({ holders }) => holders.map(({ actor }) => actor)));
  const actors = waiting
    .filter(({ thread }) => thread.waited !== null || holding.has(threadId(thread.tid)))
    .slice(0, ACTORS_KEPT)
    .map((one) => actorOf(one, names, loops));
  const isActor = new Set(actors.map(({ tid }) => tid));
  const others = look.tids
    .filter((tid) => !isActor.has(tid))
    .slice(0, ACTORS_KEPT)
    .map((tid) => names.get(tid) ?? threadId(tid));
  return { pid, threads, others, tasks: [], actors, objects: described };
}

/** The same for one thread through a run. */
function threadId(tid: number): string {
  return `thread ${tid}`;
}

function waitedObjects(waiting: readonly Waiting[]): ReadonlyMap<number, WaitedObject> {
  return new Map(
    waiting.flatMap(({ thread: { waited } }) =>
      waited === null ? [] : [[waited.address, waited] as const],
    ),
  );
}

function actorOf(
  { thread, since }: Waiting,
  names: ReadonlyMap<number, string>,
  loops: readonly LoopThread[],
): LockActor {
  const { tid, call, awaitsGil, waited, frames } = thread;
  const caller = waited?.caller ?? 0;
  return {
    id: threadId(tid),
    kind: 'thread',
    name: names.get(tid) ?? threadId(tid),
    tid,
    wait: waitWord(call.kind, awaitsGil),
    isTimed: call.isTimed,
    since,
    on: waited === null ? null : objectId(waited.address),
    runsLoop: loops.some((loop) => loop.tid === tid),
    frames: frames.slice(0, Math.max(FRAMES_KEPT, caller + 1)).map(({ frame }) => frame),
    caller,
  };
}

/** The word for a wait in the kernel. */
export function waitWord(kind: string, awaitsGil: boolean): string {
  return awaitsGil ? 'gil' : kind === 'futex' ? 'lock' : kind;
}

function objectId(address: number): string {
  return `0x${address.toString(16)}`;
}

interface Context {
  readonly look: ThreadLook;
  readonly waiting: readonly Waiting[];
  readonly loops: readonly LoopThread[];
}

function describe(waited: WaitedObject, context: Context): LockObject {
  const { locks } = context.look;
  const { address, kind, label } = waited;
  const state = context.look.sound(() => locks.stateOf(address, kind));
  return {
    id: objectId(address),
    kind,
    label,
    taken: state?.taken ?? null,
    value: state?.value ?? null,
    items: state?.items ?? null,
    holders: context.look.sound(() => holdersOf(waited, context)) ?? [],
  };
}

function holdersOf(waited: WaitedObject, context: Context): readonly LockHolder[] {
  const { look } = context;
  const { address, kind } = waited;
  switch (kind) {
    case 'lock': {
      const owner = look.locks.ownerOf(address);
      if (owner === null) return enteredBy(address, context);
      const tid = owner === 0 ? null : look.threadOf(owner);
      return tid === null ? [] : [{ actor: threadId(tid), how: 'owner', frame: null }];
    }
    case 'semaphore':
      return enteredBy(address, context);
    case 'thread': {
      const identity = look.locks.attributes.get(address, '_ident');
      const tid =
        identity === null || !isAddress(identity)
          ? null
          : look.threadOf(look.locks.values.int(identity));
      return tid === null ? [] : [{ actor: threadId(tid), how: 'setter', frame: null }];
    }
    case 'future':
      return completersOf(address, context).map((tid) => ({
        actor: threadId(tid),
        how: 'setter',
        frame: null,
      }));
    case 'condition':
    case 'event':
    case 'queue':
    case 'barrier':
      return []; // anybody may notify, set or put
    default:
      return kind satisfies never;
  }
}

/** Threads in the body of a `with` statement of this lock, or of a condition around it. */
function enteredBy(address: number, { look, waiting }: Context): readonly LockHolder[] {
  return waiting.flatMap(({ thread }) => {
    const inside = thread.entered.find(
      ({ object }) => object === address || look.locks.innerLock(object) === address,
    );
    if (inside === undefined || releasesInside(thread, inside)) return [];
    const frame: Frame | null = thread.frames[inside.frame]?.frame ?? null;
    return [{ actor: threadId(thread.tid), how: 'with', frame }];
  });
}

/** `with condition: condition.wait()` has given the lock back for as long as it waits. */
function releasesInside(
  { waited, frames }: StillThread,
  { object }: { readonly object: number },
): boolean {
  return (
    waited?.address === object ||
    (waited?.kind === 'condition' && /\bwait(?:_for)?$/.test(frames[0]?.frame.function ?? ''))
  );
}
