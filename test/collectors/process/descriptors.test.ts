import { closeSync, mkdtempSync, openSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DescriptorSweep, kindOf } from '../../../collectors/process/descriptor-sweep.ts';
import { parseTcpTables, unixSockets } from '../../../collectors/process/tcp-table.ts';
import { TopLevels } from '../../../collectors/process/top-levels.ts';

const HEADER = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid';
const row = (local: string, remote: string, state: string, inode: number) =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0`;

describe('the TCP table', () => {
  it('gives state and peer by inode, the port only of a service that was called', () => {
    const sockets = parseTcpTables([
      [
        HEADER,
        row('0100007F:1F90', '00000000:0000', '0A', 1),
        row('0A00000A:1F90', '0900000A:D431', '01', 2),
        row('0A00000A:C001', '0900000A:0050', '08', 3),
        row('0100007F:C002', '0100007F:1F90', '01', 4),
        row('0100007F:1F90', '0100007F:C002', '01', 7),
        row('0100007F:C006', '0100007F:C007', '08', 8),
        row('0A00000A:C003', '0900000A:0050', '06', 0),
      ].join('\n'),
      [
        HEADER,
        row(
          `0000000000000000FFFF00000A00000A:C004`,
          `0000000000000000FFFF00000900000A:0050`,
          '01',
          5,
        ),
        row(
          `B80D0120000000000000000001000000:C005`,
          `B80D0120000000000000000002000000:0050`,
          '08',
          6,
        ),
      ].join('\n'),
    ]);
    expect(Object.fromEntries(sockets)).toEqual({
      1: { state: 'listen', peer: '' },
      2: { state: 'established', peer: '10.0.0.9' },
      3: { state: 'close_wait', peer: '10.0.0.9:80' },
      4: { state: 'established', peer: '127.0.0.1:8080' },
      7: { state: 'established', peer: 'loopback' },
      8: { state: 'close_wait', peer: 'loopback' },
      5: { state: 'established', peer: '10.0.0.9:80' },
      6: { state: 'close_wait', peer: '[2001:db8::2]:80' },
    });
  });

  it.each(['', HEADER, `${HEADER}\nnonsense`, `${HEADER}\n 0: a b c d e f g h i`])(
    'leaves out what makes no sense: %j',
    (text) => {
      expect(parseTcpTables([text]).size).toBe(0);
    },
  );
});

describe('kinds of descriptors', () => {
  it.each([
    ['/var/log/secret.log', 'file'],
    ['/dev/null', 'file'],
    ['/tmp/x (deleted)', 'file'],
    ['socket:[123]', 'socket'],
    ['pipe:[123]', 'pipe'],
    ['anon_inode:[eventpoll]', 'anon_inode:[eventpoll]'],
    ['anon_inode:inotify', 'anon_inode:inotify'],
    ['mnt:[4026531841]', 'mnt'],
    ['net:\u001b[31m', 'net:\\x1b[31m'],
  ])('%j is %j: no path is kept', (link, kind) => {
    expect(kindOf(link)).toBe(kind);
  });
});

describe('top levels', () => {
  it('keep a series for what was named once, and sum the rest', () => {
    const levels = new TopLevels(2);
    expect([
      ...levels.update(
        new Map([
          ['a', 1],
          ['b', 5],
          ['c', 3],
        ]),
      ),
    ]).toEqual([
      ['b', 5],
      ['c', 3],
      ['other', 1],
    ]);
    expect([...levels.update(new Map([['d', 9]]))]).toEqual([
      ['b', 0],
      ['c', 0],
      ['other', 9],
    ]);
    expect(levels.update(new Map()).get('other')).toBe(0);
  });
});

describe('a sweep of our own descriptors', () => {
  /** Goes on as the collector does, with the count it would have read. */
  const sweepAll = (sweep: DescriptorSweep, count: number) => {
    for (let step = 0; step < 50; step++) {
      const reading = sweep.step(count);
      if (reading !== null) return { reading, step };
    }
    throw new Error('no sweep came to its end');
  };

  it('tells files from sockets, and takes many descriptors in several readings', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tracewright-sweep-'));
    const files = Array.from({ length: 1200 }, () => openSync(join(folder, 'file'), 'a'));
    onTestFinished(() => {
      for (const fd of files) closeSync(fd);
      rmSync(folder, { recursive: true });
    });
    const { reading, step } = sweepAll(new DescriptorSweep(process.pid), 1200);
    expect(step).toBeGreaterThanOrEqual(2);
    expect(reading.kinds.get('file')).toBeGreaterThanOrEqual(1200);
    expect(reading.kinds.get('anon_inode:[eventpoll]')).toBeGreaterThanOrEqual(1);
  });

  it('knows a connection that the peer has closed and we have not', async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    const sockets = await Promise.all(
      Array.from(
        { length: 3 },
        () =>
          new Promise<Socket>((resolve) => {
            const socket = connect({ port: address.port, host: '127.0.0.1', allowHalfOpen: true });
            socket.resume().once('end', () => resolve(socket));
          }),
      ),
    );
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { reading } = sweepAll(new DescriptorSweep(process.pid), 10);
    const peer = `127.0.0.1:${address.port}`;
    expect(reading.sockets).toContainEqual({ state: 'close_wait', peer, count: 3 });
    expect(reading.sockets).toContainEqual({ state: 'listen', peer: '', count: 1 });
  });

  it('knows sockets of this machine from others', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tracewright-sweep-'));
    const inodes = (): number[] =>
      readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
          return [Number(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1])];
        } catch {
          return []; // that of the listing
        }
      });
    const before = new Set(inodes());
    const opened = (): number[] => inodes().filter((inode) => inode > 0 && !before.has(inode));
    const local = createServer();
    await new Promise<void>((resolve) => local.listen(join(folder, 'socket'), resolve));
    const [unix = 0] = opened();
    before.add(unix);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const [tcp = 0] = opened();
    onTestFinished(() => {
      server.close();
      local.close();
      rmSync(folder, { recursive: true });
    });
    expect(unix * tcp).toBeGreaterThan(0);
    const known = unixSockets(process.pid);
    expect([known.has(unix), known.has(tcp)]).toEqual([true, false]);
  });

  it('is not repeated while the number of descriptors stays as it is', () => {
    const sweep = new DescriptorSweep(process.pid);
    sweepAll(sweep, 100);
    expect(sweep.step(100)).toBeNull();
    expect(sweep.step(101)).toBeNull();
  });

  it('is given up for a process that is gone', () => {
    expect(new DescriptorSweep(2 ** 30).step(5)).toBeNull();
  });
});
