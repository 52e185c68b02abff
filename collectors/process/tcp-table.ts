import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';

/** The TCP sockets of a process's network namespace, by inode: what `/proc/<pid>/net/tcp` and `tcp6` say. */

/** One row of the table. */
export interface TcpSocket {
  /** As OpenTelemetry spells it: `close_wait`. */
  readonly state: string;
  /** Who is on the other side: an address, with its port where we called it; `loopback` for a caller on this machine; empty for a socket that listens. */
  readonly peer: string;
}

/** include/net/tcp_states.h, in the spelling of `network.connection.state`. */
const STATES: readonly string[] = [
  'other',
  'established',
  'syn_sent',
  'syn_received',
  'fin_wait_1',
  'fin_wait_2',
  'time_wait',
  'closed',
  'close_wait',
  'last_ack',
  'listen',
  'closing',
  'syn_received',
];
const LISTEN = 'listen';
/** As the kernel prints it. */
const TIME_WAIT = '06 ';
/** 28,000 rows of 150 bytes; a machine with more would cost more than 30 ms a reading. */
const LARGEST_TABLE = 4 * 2 ** 20;
/** The kernel fills one page a call at most (seq_file). One buffer for all: large ones made anew set off garbage collections. */
const chunk: Buffer = Buffer.allocUnsafe(4096);

type TcpTable = ReadonlyMap<number, TcpSocket> | null;

/**
 * Tables read in this turn of our own loop, by network namespace: the processes that are read in one go share one. One reading takes 3 to
 * 5 ms, however few sockets there are.
 */
const shared = new Map<string, TcpTable>();

/** Null when a table cannot be read or is too large to be read time and again. */
export function readTcpSockets(pid: number): TcpTable {
  const namespace = namespaceOf(pid);
  if (namespace === null) return readTables(pid);
  let table = shared.get(namespace);
  if (table === undefined) {
    table = readTables(pid);
    shared.set(namespace, table);
    setImmediate(() => shared.clear());
  }
  return table;
}

/** The inodes of the sockets of a process's network namespace that connect processes of one machine; empty when they cannot be read. */
export function unixSockets(pid: number): ReadonlySet<number> {
  const inodes = new Set<number>();
  // `0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/name`
  const read = readRows(`/proc/${pid}/net/unix`, (line) => {
    const inode = Number(line.trim().split(/\s+/, 7)[6]);
    if (inode > 0) inodes.add(inode);
  });
  return read === 'read' ? inodes : new Set();
}

/** Null where that may not be asked. */
function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return null;
  }
}

function readTables(pid: number): TcpTable {
  const rows: Row[] = [];
  for (const name of ['tcp', 'tcp6']) {
    const read = readRows(`/proc/${pid}/net/${name}`, (line) => rows.push(...parseRow(line)));
    // A kernel without IPv6 has no tcp6.
    if (read === null && name === 'tcp6') continue;
    if (read !== 'read') return null;
  }
  return socketsOf(rows);
}

/**
 * Hands over the rows below a table's heading, one by one: as one text of more than 128 KiB, once a second, they would lie in V8's space for large
 * objects until it is full (20 MiB in a minute and a half). Null when it cannot be read; what was too large is not whole.
 */
function readRows(path: string, take: (row: string) => void): 'read' | 'too large' | null {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return null;
  }
  try {
    let rest = '';
    let isHeading = true;
    for (let size = 0; size <= LARGEST_TABLE;) {
      const length = readSync(fd, chunk, 0, chunk.length, null);
      const lines = (rest + chunk.toString('latin1', 0, length)).split('\n');
      if (length > 0) rest = lines.pop() ?? '';
      for (const line of lines) {
        if (!isHeading) take(line);
        isHeading = false;
      }
      if (length === 0) return 'read';
      size += length;
    }
    return 'too large';
  } catch {
    return null;
  } finally {
    closeSync(fd);
  }
}

interface Row {
  readonly inode: number;
  readonly state: string;
  readonly localPort: string;
  readonly remote: string;
}

/** Rows as Linux prints them; those that make no sense are left out. */
export function parseTcpTables(tables: readonly string[]): ReadonlyMap<number, TcpSocket> {
  return socketsOf(tables.flatMap((table) => table.split('\n').slice(1).flatMap(parseRow)));
}

function socketsOf(rows: readonly Row[]): ReadonlyMap<number, TcpSocket> {
  const served = new Set(
    rows.filter(({ state }) => state === LISTEN).map(({ localPort }) => localPort),
  );
  return new Map(
    rows.map(({ inode, state, localPort, remote }) => [
      inode,
      { state, peer: state === LISTEN ? '' : peerName(remote, localPort, served) },
    ]),
  );
}

function parseRow(line: string): readonly Row[] {
  if (isTimeWait(line)) return [];
  const columns = line.trim().split(/\s+/, 10);
  const inode = Number(columns[9]);
  const state = STATES[Number.parseInt(columns[3] ?? '', 16)];
  const localPort = (columns[1] ?? '').split(':')[1];
  const remote = columns[2] ?? '';
  // A socket without inode belongs to nobody any more (TIME_WAIT).
  if (!(inode > 0) || state === undefined || localPort === undefined) return [];
  return [{ inode, state, localPort, remote }];
}

/**
 * `   7: 0100007F:1F90 0100007F:A3C4 06 …`. A server that closes each connection has thousands of these for a minute, which nobody owns: telling
 * them by the place of the state costs a tenth of taking the line apart.
 */
function isTimeWait(line: string): boolean {
  const local = line.indexOf(': ') + 2;
  const remote = line.indexOf(' ', local) + 1;
  const state = line.indexOf(' ', remote) + 1;
  return local > 1 && remote > 0 && line.startsWith(TIME_WAIT, state);
}

/** The port of a caller means nothing and is left out. On loopback, where both ends may be, a port that somebody listens on was called. */
function peerName(remote: string, localPort: string, served: ReadonlySet<string>): string {
  const [hex = '', port = ''] = remote.split(':');
  const address = parseAddress(hex);
  if (address === null) return '';
  const isLoopback = address === '::1' || address.startsWith('127.');
  if (isLoopback && (served.has(localPort) || !served.has(port))) return 'loopback';
  if (served.has(localPort)) return address;
  const number = Number.parseInt(port, 16);
  return address.includes(':') ? `[${address}]:${number}` : `${address}:${number}`;
}

/** Addresses are printed as 32-bit words in the machine's byte order, little endian wherever trace runs. */
function parseAddress(hex: string): string | null {
  if ((hex.length !== 8 && hex.length !== 32) || !/^[0-9A-F]+$/i.test(hex)) return null;
  const bytes = Buffer.from(hex, 'hex').swap32();
  if (bytes.length === 4) return bytes.join('.');
  // IPv4 through an IPv6 socket (RFC 4291, 2.5.5.2).
  if (bytes.subarray(0, 12).toString('hex') === '00000000000000000000ffff') {
    return bytes.subarray(12).join('.');
  }
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16));
  return groups.join(':').replace(/(?:^|:)0(?::0)+(?::|$)/, '::');
}
