import type { Frame } from './types.ts';

/** What the threads of a Python process do at one moment. */

/** `running`: on a core, or ready for one. `poll`: for any of several descriptors, as event loops do. */
export type ThreadWaitKind =
  | 'running'
  | 'gil'
  | 'lock'
  | 'sleep'
  | 'poll'
  | 'io'
  | 'child'
  | 'other';

export interface ThreadView {
  readonly tid: number;
  /** As the program calls it, else as the kernel does. Untrusted. */
  readonly name: string;
  readonly wait: ThreadWaitKind;
  readonly hasGil: boolean;
  /** What it waits for, as the program calls it: `self._lock`, and what that is: `lock`, `queue`, … Null where that was not found. Untrusted. */
  readonly on: { readonly label: string; readonly kind: string } | null;
  /** Names of the threads that have it, or that alone can complete it. */
  readonly holders: readonly string[];
  /** Of I/O on one descriptor: the other side of a socket, or the file. Untrusted. */
  readonly peer: string | null;
  /** Innermost first; empty where it runs no Python code, or did not hold still. */
  readonly frames: readonly Frame[];
}

export interface ThreadsLook {
  /** The main thread first. */
  readonly threads: readonly ThreadView[];
  /** Whether it can be told which lock a thread waits for, and who has it. */
  readonly knowsLocks: boolean;
}
