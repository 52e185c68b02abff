import { readdirSync, readlinkSync } from 'node:fs';
import type { Seconds } from '../../src/core/types.ts';
import { printable } from '../../src/core/text.ts';
import { readTcpSockets, unixSockets } from './tcp-table.ts';
import { OTHER, TopLevels } from './top-levels.ts';

/**
 * What the descriptors of a process are: each link read once a sweep, a bounded number at a time, sockets looked up in the table of the
 * process's own network namespace. A sweep is made when the number of descriptors has changed, and now and then.
 */

/** Sockets of one TCP state with one peer. */
export interface SocketLevel {
  /** `other` for what is not TCP. */
  readonly state: string;
  /** Empty where there is none. */
  readonly peer: string;
  readonly count: number;
}

/** What a completed sweep found. */
export interface DescriptorReading {
  readonly kinds: ReadonlyMap<string, number>;
  /** Null when the socket table could not be read. */
  readonly sockets: readonly SocketLevel[] | null;
}

/** Links read at one reading: 4 to 9 µs each, so at most 4 ms; 8,000 descriptors take 16 readings. */
const LINKS_AT_ONCE = 500;
/** A number of descriptors that changed by less tells of no growth worth looking into. */
const CHANGE = 0.02;
/** Without a change, descriptors may still have been replaced by others; a run of a minute needs eight readings of each kind to see one grow. */
const LONGEST_PAUSE: Seconds = 5;
/** What a sweep took, times this, is the least time to the next, up to the longest pause: a sweep of 3 ms is made every 3 s at most. */
const PAUSE_FACTOR = 1000;
/** anon_inode has about 20 names; a driver may invent more. */
const KINDS_LIMIT = 16;
const PEERS_AT_ONCE = 8;
const SOCKET_SERIES_LIMIT = 32;

export class DescriptorSweep {
  readonly #pid: number;
  readonly #kindLevels = new TopLevels(KINDS_LIMIT);
  readonly #socketLevels = new TopLevels(SOCKET_SERIES_LIMIT);
  #pending: string[] = [];
  #kinds = new Map<string, number>();
  #inodes: number[] = [];
  /** Of the sockets of the last sweep those that are of this machine: an event loop wakes itself up by a pair of them. */
  #local: ReadonlySet<number> = new Set();
  #countBefore: number | null = null;
  /** On the clock of `performance.now()`, in seconds. */
  #notBefore: Seconds = 0;
  #due: Seconds = 0;
  #spent: Seconds = 0;

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** Goes on with a sweep, or begins one if it is time; what it found, once it is complete. `count` descriptors are open now. */
  step(count: number | null): DescriptorReading | null {
    const began = performance.now() / 1e3;
    if (this.#pending.length === 0 && !this.#begin(count, began)) return null;
    for (const name of this.#pending.splice(0, LINKS_AT_ONCE)) this.#look(name);
    const isComplete = this.#pending.length === 0;
    // None could be read: another user's process.
    const reading = isComplete && this.#kinds.size > 0 ? this.#finish() : null;
    const ended = performance.now() / 1e3;
    this.#spent += ended - began;
    if (isComplete) {
      this.#notBefore = ended + Math.min(LONGEST_PAUSE, this.#spent * PAUSE_FACTOR);
      // At the same moments for all processes, which then share one reading of the table of sockets.
      this.#due = (Math.floor(ended / LONGEST_PAUSE) + 1) * LONGEST_PAUSE;
    }
    return reading;
  }

  #begin(count: number | null, now: Seconds): boolean {
    if (count === null || now < this.#notBefore) return false;
    const before = this.#countBefore;
    const hasChanged = before === null || Math.abs(count - before) > before * CHANGE;
    if (!hasChanged && now < this.#due) return false;
    try {
      this.#pending = readdirSync(`/proc/${this.#pid}/fd`);
    } catch {
      this.#notBefore = now + LONGEST_PAUSE;
      return false;
    }
    this.#countBefore = count;
    this.#kinds = new Map();
    this.#inodes = [];
    this.#spent = 0;
    return true;
  }

  #look(name: string): void {
    let link: string;
    try {
      link = readlinkSync(`/proc/${this.#pid}/fd/${name}`);
    } catch {
      return; // closed since the folder was listed
    }
    const kind = kindOf(link);
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
    if (kind === 'socket') this.#inodes.push(Number(link.slice('socket:['.length, -1)));
  }

  /** What a socket is it stays, so each is asked for once: the table of TCP takes the kernel 5 to 20 ms, however few there are. */
  #hasOthersThanLocal(): boolean {
    const isUnknown = (inode: number): boolean => !this.#local.has(inode);
    if (this.#inodes.some(isUnknown)) {
      const local = unixSockets(this.#pid);
      this.#local = new Set(this.#inodes.filter((inode) => local.has(inode)));
    }
    return this.#inodes.some(isUnknown);
  }

  #finish(): DescriptorReading {
    const kinds = this.#kindLevels.update(this.#kinds);
    // Once there were sockets, that there are none any more is to be said too.
    if (!kinds.has('socket')) return { kinds, sockets: [] };
    const table = this.#hasOthersThanLocal() ? readTcpSockets(this.#pid) : new Map<number, never>();
    if (table === null) return { kinds, sockets: null };
    const found = this.#inodes.map((inode) => table.get(inode) ?? { state: OTHER, peer: '' });
    const peers = new Map<string, number>();
    for (const { peer } of found) peers.set(peer, (peers.get(peer) ?? 0) + 1);
    const largest = [...peers].filter(([peer]) => peer !== '').sort((a, b) => b[1] - a[1]);
    const named = new Set(['', ...largest.slice(0, PEERS_AT_ONCE).map(([peer]) => peer)]);
    const counts = new Map<string, number>();
    for (const { state, peer } of found) {
      const key = `${state} ${named.has(peer) ? peer : OTHER}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const sockets = [...this.#socketLevels.update(counts)].map(([key, count]) => {
      const [state = OTHER, peer = ''] = key.split(' ');
      return { state, peer, count };
    });
    return { kinds, sockets };
  }
}

/** `socket:[7]` → `socket`, `pipe:[7]` → `pipe`, a path → `file`, `anon_inode:[eventpoll]` as it stands. Names of paths are not kept. */
export function kindOf(link: string): string {
  if (link.startsWith('/')) return 'file';
  if (/^(?:socket|pipe):\[\d+\]$/.test(link)) return link.slice(0, link.indexOf(':'));
  return printable(link.replace(/:\[\d+\]$/, ''), 40);
}
