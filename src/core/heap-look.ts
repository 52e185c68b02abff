import type { Bytes, Ratio, Seconds } from './types.ts';

/** One look at the objects of a process, whatever its runtime: what there is, how large, and who holds the largest. */

/** Objects of one type. */
export interface HeapTypeCount {
  /** With its module where that is known: `app.Blob`. Untrusted. */
  readonly type: string;
  readonly count: number;
  readonly bytes: Bytes;
  /** Of functions, coroutines, generators and frames: what most of the newest are of. */
  readonly code?: HeapCode | null;
}

/** Code that stands behind objects, and its share of those that were asked. Untrusted. */
export interface HeapCode {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly share: Ratio;
}

/** How a container is held. */
export type OwnerKind = 'global' | 'class' | 'instance' | 'closure' | 'local' | 'default';

/** The way from a module, a class, a closure or a running function to an object. Untrusted. */
export interface HeapPath {
  /** `app.cache._store` */
  readonly path: string;
  readonly owner: OwnerKind;
  readonly module: string | null;
  /** Of the module, or of the running function. */
  readonly file: string | null;
  readonly line: number | null;
  /** The attribute of a class through which it is held, where an instance of the program's own classes has it. */
  readonly holder?: HeapHolder | null;
}

/** `aiohttp.cookiejar.CookieJar._cookies`, and the file of the class's module. Untrusted. */
export interface HeapHolder {
  readonly name: string;
  readonly file: string | null;
}

/** A container that holds much, or one large value. */
export interface HeapContainer {
  /** The same in two looks at the same process for the same object: nothing else. */
  readonly id: string;
  readonly type: string;
  /** Things in it; of a single value, its bytes. */
  readonly entries: number;
  /** With what is in it, as far as a sample of its entries says. */
  readonly bytes: Bytes;
  /** What it holds mostly, null for a single value. */
  readonly content: string | null;
  readonly at: HeapPath | null;
}

export interface HeapLook {
  /** On the run's clock, or the wall clock. */
  readonly at: Seconds;
  readonly duration: Seconds;
  readonly objects: number;
  readonly bytes: Bytes;
  /** Resident set of the process at that moment, null when it cannot be read. */
  readonly resident: Bytes | null;
  /** Every type, the largest first. */
  readonly types: readonly HeapTypeCount[];
  /** The largest first. */
  readonly containers: readonly HeapContainer[];
  /** Containers with more entries are all among them. */
  readonly leastEntries: number;
  /** Readings that were given up, repeated or not believed. */
  readonly broken: number;
  readonly repaired: number;
  /** Whether only what is reachable was looked at, and objects were not counted: `types` is empty. */
  readonly onlyReachable?: boolean;
  /** Why the look is less than whole, null when it is whole. */
  readonly lacking: string | null;
}
