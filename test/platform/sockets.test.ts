import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { holdersOf, listeningSockets, parseListening } from '../../src/platform/sockets.ts';

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

describe('listening sockets of a process', () => {
  it('finds the ports this process listens on, with the address to connect to', async () => {
    const bound = await listen('127.0.0.2');
    const everywhere = await listen('0.0.0.0');
    const own = listeningSockets(process.pid);
    expect(own.find(({ port }) => port === bound)?.host).toBe('127.0.0.2');
    expect(own.find(({ port }) => port === everywhere)?.host).toBe('127.0.0.1');
  });

  it("leaves out other processes' ports", async () => {
    const port = await listen('127.0.0.1');
    // The parent shares the network namespace, and so the socket table, but not the descriptor.
    expect(listeningSockets(process.ppid).some((socket) => socket.port === port)).toBe(false);
  });

  it('throws ENOENT for a process that is not there', () => {
    expect(() => listeningSockets(2 ** 22 + 1)).toThrow(/ENOENT/);
  });
});

// Rows as Linux 6.18 prints them.
const HEADER =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
const row = (local: string, state: string, inode: number): string =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000000000000000 100 0 0 10 0`;

describe('the socket table', () => {
  it('reads addresses as little-endian words', () => {
    const table = [HEADER, row('0100007F:240D', '0A', 77), row('0202000A:1F90', '0A', 78)].join(
      '\n',
    );
    expect(parseListening(table, 4)).toEqual([
      { host: '127.0.0.1', family: 4, port: 9229, inode: 77 },
      { host: '10.0.2.2', family: 4, port: 8080, inode: 78 },
    ]);
  });

  it('reads IPv6 addresses, and loopback for a socket bound to all', () => {
    const loopback = `${'0'.repeat(24)}01000000:240D`;
    const any = `${'0'.repeat(32)}:240E`;
    const table = [HEADER, row(loopback, '0A', 1), row(any, '0A', 2)].join('\n');
    expect(parseListening(table, 6)).toEqual([
      { host: '0:0:0:0:0:0:0:1', family: 6, port: 9229, inode: 1 },
      { host: '::1', family: 6, port: 9230, inode: 2 },
    ]);
  });

  it('leaves out connections, and rows that make no sense', () => {
    const table = [
      HEADER,
      row('0100007F:240D', '01', 1),
      row('0100007F:0000', '0A', 2),
      row('7F:240D', '0A', 3),
      row('ZZZZZZZZ:240D', '0A', 4),
      'garbage',
      '',
    ].join('\n');
    expect(parseListening(table, 4)).toEqual([]);
  });
});

describe('who holds the calling end of a connection', () => {
  it('is told by address and port, over IPv4 and IPv4 in IPv6, and only where they fit', async () => {
    const port = await listen('127.0.0.1');
    const calling = connect(port, '127.0.0.1');
    await once(calling, 'connect');
    const caller = { address: '127.0.0.1', port: calling.localPort ?? 0 };
    expect(holdersOf([process.pid], [caller])).toEqual(new Map([[caller.port, process.pid]]));
    expect(holdersOf([process.pid], [{ ...caller, address: '10.0.0.9' }])).toEqual(new Map());
    expect(holdersOf([process.ppid, 2 ** 22 + 1], [caller])).toEqual(new Map());
    expect(holdersOf([process.pid], [])).toEqual(new Map());
    calling.destroy();
  });
});
