import { readdirSync } from 'node:fs';
import type { Frame } from '../../../src/core/types.ts';
import { MemoryError } from '../../../src/platform/memory.ts';
import { threadCall, type ThreadCall } from '../../../src/platform/thread-call.ts';
import { PythonAttributes } from '../attributes.ts';
import { Unsound } from '../objects.ts';
import type { PythonReader } from '../reader.ts';
import { threadNames } from '../thread-names.ts';
import { PythonValues } from '../values.ts';
import { FrameContents } from './frame-contents.ts';
import { GIL_SIZE, LOCK_LAYOUTS } from './lock-layout.ts';
import { LockObjects } from './lock-objects.ts';
import { findWaited, type NamedFrame, type WaitedObject } from './waited-object.ts';

/** Threads looked at; pools of more are pools of the same. */
const THREADS = 512;
const FRAMES = 64;

/** What a thread does, before its frames are read. */
export interface ThreadState {
  readonly tid: number;
  readonly call: ThreadCall;
  /** Whether it waits for the lock that lets it run Python. */
  readonly awaitsGil: boolean;
}

/** A thread that held still while it was read. */
export interface StillThread extends ThreadState {
  readonly frames: readonly NamedFrame[];
  readonly waited: WaitedObject | null;
  /** Objects of the `with` statements that it is inside of, with the index of the frame. */
  readonly entered: readonly { readonly object: number; readonly frame: number }[];
}

/** Looks at what the threads of a Python process wait for. It is neither stopped nor changed. */
export class ThreadLook {
  readonly locks: LockObjects;
  readonly contents: FrameContents;
  readonly #reader: PythonReader;
  #tidByIdentity: ReadonlyMap<number, number> = new Map();
  #gils: readonly number[] = [];
  /** Readings given up because what was read could not be true. */
  doubts = 0;
  /** The threads of the last look. */
  tids: readonly number[] = [];

  /** Null for a version whose locks are not known. */
  static of(reader: PythonReader): ThreadLook | null {
    return LOCK_LAYOUTS[reader.minor] === undefined ? null : new ThreadLook(reader);
  }

  private constructor(reader: PythonReader) {
    const values = new PythonValues(reader.objects);
    const layout = LOCK_LAYOUTS[reader.minor];
    if (layout === undefined) throw new Unsound('type');
    this.#reader = reader;
    this.locks = new LockObjects(new PythonAttributes(values));
    this.contents = new FrameContents(values, layout);
  }

  /** What each thread is doing now; starts a new look. Empty when the process is gone. */
  begin(): readonly ThreadState[] {
    this.locks.values.forget();
    this.contents.forget();
    const seen: ThreadState[] = [];
    const before = this.tids.join(' ');
    this.tids = this.#tids();
    if (this.tids.join(' ') !== before || this.#gils.length === 0) this.#readIdentities();
    for (const tid of this.tids) {
      const call = threadCall(this.#reader.pid, tid);
      if (call === null) continue;
      const awaitsGil =
        call.kind === 'futex' &&
        this.#gils.some((gil) => call.futex >= gil && call.futex < gil + GIL_SIZE);
      seen.push({ tid, call, awaitsGil });
    }
    return seen;
  }

  /** Our id of the thread that calls itself `identity`; null when there is none. */
  threadOf(identity: number): number | null {
    return this.#tidByIdentity.get(identity) ?? null;
  }

  /** The names that the program gave its threads, by thread id; empty where `threading` is not imported. Untrusted. */
  names(): ReadonlyMap<number, string> {
    return threadNames(this.#reader);
  }

  /** Where a thread is in its code, as a text that is the same for threads in the same frames; empty for one without frames. */
  positionOf(tid: number): string {
    const list = this.#reader.framesOf(tid);
    if (list === null) return '';
    const words: string[] = [];
    for (let i = list.first; i < Math.min(list.depth, list.first + FRAMES); i++)
      words.push(`${list.code[i] ?? 0}:${list.instruction[i] ?? 0}`);
    return words.join(' ');
  }

  /** A thread with its frames and what they hold; null when it has no frames, moved meanwhile, or could not be believed. */
  still(state: ThreadState): StillThread | null {
    const frames = this.framesOf(state.tid);
    if (frames === null || frames.length === 0) return null;
    const { contents, locks } = this;
    const found = this.sound(() => ({
      waited:
        state.call.kind === 'futex' && !state.awaitsGil
          ? findWaited(frames, state.call.futex, { contents, locks })
          : null,
      entered: frames.flatMap((one, frame) =>
        contents.entered(one).map((object) => ({ object, frame })),
      ),
    }));
    if (found === null || !this.#isStill(state)) return null;
    return { ...state, frames, ...found };
  }

  /** Objects of the `with` statements that a thread is inside of now, innermost first, with where; of one that runs it may be over by now. */
  entered(tid: number): readonly { readonly object: number; readonly frame: Frame }[] {
    const frames = this.framesOf(tid) ?? [];
    return (
      this.sound(() =>
        frames.flatMap((one) =>
          this.contents.entered(one).map((object) => ({ object, frame: one.frame })),
        ),
      ) ?? []
    );
  }

  /** What a reading gives, null where it could not be believed; counts those. */
  sound<T>(reading: () => T): T | null {
    try {
      return reading();
    } catch (error) {
      if (!(error instanceof Unsound) && !(error instanceof MemoryError)) throw error;
      this.doubts++;
      return null;
    }
  }

  #isStill({ tid, call }: ThreadState): boolean {
    const now = threadCall(this.#reader.pid, tid);
    return (
      now !== null && now.kind === call.kind && now.futex === call.futex && now.cpuNs === call.cpuNs
    );
  }

  /** The frames of a thread, innermost first; of one that runs they may be over by now. Null where they could not be read. */
  framesOf(tid: number): readonly NamedFrame[] | null {
    const list = this.#reader.framesOf(tid);
    if (list === null) return null;
    return this.sound(() => {
      const frames: NamedFrame[] = [];
      for (let i = list.first; i < Math.min(list.depth, list.first + FRAMES); i++) {
        const code = list.code[i] ?? 0;
        const instruction = list.instruction[i] ?? 0;
        const frame = this.#reader.frameAt(code, instruction);
        frames.push({ address: list.address[i] ?? 0, code, instruction, frame });
      }
      return frames;
    });
  }

  #readIdentities(): void {
    const { objects } = this.#reader;
    const { thread, gil } = objects.table;
    const layout = LOCK_LAYOUTS[objects.table.minor];
    const byIdentity = new Map<number, number>();
    const gils = new Set<number>();
    this.sound(() => {
      for (const { address, interpreter, tid } of this.#reader.states()) {
        byIdentity.set(objects.memory.pointer(address + thread.threadId), tid);
        gils.add(
          gil.pointer === null
            ? objects.symbols.runtime + (layout?.gilBase ?? 0)
            : objects.memory.pointer(interpreter + gil.pointer),
        );
      }
    });
    this.#tidByIdentity = byIdentity;
    this.#gils = [...gils];
  }

  #tids(): readonly number[] {
    try {
      return readdirSync(`/proc/${this.#reader.pid}/task`).slice(0, THREADS).map(Number);
    } catch {
      return []; // it ended
    }
  }
}
