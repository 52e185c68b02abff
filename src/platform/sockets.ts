import { opendirSync, readlinkSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import type { Bytes } from '../core/types.ts';
import { readRegular } from './regular-file.ts';

/**
 * The TCP ports a process listens on: its own descriptors matched by inode with the socket table of its own network namespace
 * (`/proc/<pid>/net`, so a process in a container shows its own ports).
 */

/** A TCP socket in state LISTEN that the process holds. */
export interface ListeningSocket {
  /** Where to connect from within the same network namespace: the bound address, or loopback when bound to all of them. */
  readonly host: string;
  readonly family: 4 | 6;
  readonly port: number;
  readonly inode: number;
}

/** State column of `/proc/net/tcp` (include/net/tcp_states.h). */
const LISTEN = '0A';
const ESTABLISHED = '01';
const SOCKET_LINK = /^socket:\[(\d+)\]$/;
/** 430,000 sockets of a network namespace. */
const TABLE_LIMIT: Bytes = 64 * 2 ** 20;
/**
 * The least numbers of a process, a second of them: what listens is opened before what connects.
 */
const DESCRIPTORS_LIMIT = 2 ** 17;

/**
 * Every TCP port this process listens on, in the order of the ports. Reads the links of all its descriptors (4 to 9 µs each): once in a
 * while, not in a loop. Throws the errno error when the process is gone or belongs to somebody else.
 */
export function listeningSockets(pid: number): readonly ListeningSocket[] {
  const listening = new Map(listenersAround(pid).map((socket) => [socket.inode, socket]));
  if (listening.size === 0) return [];
  const own: ListeningSocket[] = [];
  for (const inode of socketInodes(pid)) {
    const socket = listening.get(inode);
    if (socket !== undefined) own.push(socket);
    listening.delete(inode);
    if (listening.size === 0) break;
  }
  return own.toSorted((a, b) => a.port - b.port || a.family - b.family);
}

/** Every listening socket of the process's network namespace, whoever holds it. Throws the errno error when the process is gone. */
export function listenersAround(pid: number): readonly ListeningSocket[] {
  const sockets: ListeningSocket[] = [];
  for (const family of [4, 6] as const) {
    let table: string;
    try {
      table = readSocketTable(pid, family);
    } catch (error) {
      if (family === 6 && isMissing(error)) continue; // a kernel without IPv6
      throw error;
    }
    sockets.push(...parseListening(table, family));
  }
  return sockets;
}

/**
 * The TCP sockets of the process's network namespace, as the kernel prints them. Throws the errno
 * error, EFBIG where there are too many.
 */
export function readSocketTable(pid: number, family: 4 | 6): string {
  const path = `/proc/${pid}/net/${family === 4 ? 'tcp' : 'tcp6'}`;
  return readRegular(path, TABLE_LIMIT).toString('latin1');
}

/** The listening rows of `/proc/net/tcp` or `tcp6` as Linux prints them; rows that make no sense are left out. */
export function parseListening(table: string, family: 4 | 6): readonly ListeningSocket[] {
  const sockets: ListeningSocket[] = [];
  for (const line of table.split('\n').slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (columns[3] !== LISTEN) continue;
    const [address = '', portText = ''] = (columns[1] ?? '').split(':');
    const host = parseAddress(address, family);
    const port = Number.parseInt(portText, 16);
    const inode = Number(columns[9]);
    if (host === null || !(port > 0 && port < 65_536) || !Number.isSafeInteger(inode)) continue;
    sockets.push({ host, family, port, inode });
  }
  return sockets;
}

/** Whether a process holds the socket of this inode; false where its descriptors may not be read. */
export function holdsSocket(pid: number, inode: number): boolean {
  try {
    for (const own of socketInodes(pid)) if (own === inode) return true;
  } catch {
    // Gone, or another user's.
  }
  return false;
}

/** How many connections to a port of the process's own network namespace stand, seen from the listening side; null when it cannot be read. */
export function establishedOn(pid: number, port: number): number | null {
  let count = 0;
  for (const family of [4, 6] as const) {
    let table: string;
    try {
      table = readSocketTable(pid, family);
    } catch (error) {
      if (family === 6 && isMissing(error)) continue;
      return null;
    }
    for (const line of table.split('\n').slice(1)) {
      const columns = line.trim().split(/\s+/);
      const local = Number.parseInt((columns[1] ?? '').split(':')[1] ?? '', 16);
      if (columns[3] === ESTABLISHED && local === port) count++;
    }
  }
  return count;
}

/** The calling end of a TCP connection as the other end sees it. */
export interface Caller {
  /** IPv4 or IPv6 as RFC 5952 has it; of an IPv4 address mapped into IPv6 the IPv4 one. */
  readonly address: string;
  readonly port: number;
}

/**
 * Which of these processes holds the calling end of each connection, by port; one that none of them holds (it came over a proxy or an address
 * translation, or the process may not be read) is left out. Reads the links of all descriptors where a row matches.
 */
export function holdersOf(
  pids: readonly number[],
  callers: readonly Caller[],
): ReadonlyMap<number, number> {
  const held = new Map<number, number>();
  if (callers.length === 0) return held;
  for (const pid of pids) {
    const wanted = new Map<number, number>();
    for (const family of [4, 6] as const) {
      for (const row of connectionsAround(pid, family)) {
        const isCalled = callers.some(
          ({ address, port }) => port === row.port && address === row.address,
        );
        if (isCalled) wanted.set(row.inode, row.port);
      }
    }
    if (wanted.size === 0) continue;
    try {
      for (const inode of socketInodes(pid)) {
        const port = wanted.get(inode);
        if (port !== undefined) held.set(port, pid);
      }
    } catch {
      // Gone, or another user's.
    }
  }
  return held;
}

/** Standing connections of the process's network namespace by their own end. */
function connectionsAround(
  pid: number,
  family: 4 | 6,
): readonly (Caller & { readonly inode: number })[] {
  let table: string;
  try {
    table = readSocketTable(pid, family);
  } catch {
    return []; // a kernel without IPv6, or a process that is gone
  }
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const columns = line.trim().split(/\s+/);
      const [hex = '', portText = ''] = (columns[1] ?? '').split(':');
      const inode = Number(columns[9]);
      if (columns[3] !== ESTABLISHED || !(inode > 0)) return [];
      const isMapped = hex.startsWith('0000000000000000FFFF0000');
      const address = isMapped ? parseAddress(hex.slice(24), 4) : parseAddress(hex, family);
      return address === null
        ? []
        : [{ address: canonical(address), port: Number.parseInt(portText, 16), inode }];
    });
}

/** Two ways to write one IPv6 address are made one. */
function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;
}

/** Addresses are printed as 32-bit words in the machine's byte order, which is little endian wherever trace runs. */
function parseAddress(hex: string, family: 4 | 6): string | null {
  if (hex.length !== (family === 4 ? 8 : 32) || !/^[0-9A-F]+$/i.test(hex)) return null;
  const bytes = Buffer.from(hex, 'hex');
  bytes.swap32();
  const any = bytes.every((byte) => byte === 0);
  if (family === 4) return any ? '127.0.0.1' : bytes.join('.');
  if (any) return '::1';
  const groups: string[] = [];
  for (let at = 0; at < 16; at += 2) groups.push(bytes.readUInt16BE(at).toString(16));
  return groups.join(':');
}

function* socketInodes(pid: number): Iterable<number> {
  const path = `/proc/${pid}/fd`;
  const folder = opendirSync(path, { bufferSize: 256 });
  try {
    for (let count = 0; count < DESCRIPTORS_LIMIT; count++) {
      const entry = folder.readSync();
      if (entry === null) return;
      const inode = socketInode(`${path}/${entry.name}`);
      if (inode !== null) yield inode;
    }
  } finally {
    folder.closeSync();
  }
}

/** Of the socket that a descriptor is; null where it is none, or was closed since it was listed. */
function socketInode(path: string): number | null {
  try {
    const match = SOCKET_LINK.exec(readlinkSync(path));
    return match === null ? null : Number(match[1]);
  } catch {
    return null;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
