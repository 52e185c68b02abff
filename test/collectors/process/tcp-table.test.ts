import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { readTcpSockets } from '../../../collectors/process/tcp-table.ts';

/** Rows of 150 bytes, two a connection: several of the pages in which the kernel hands a table over. */
const CONNECTIONS = 60;

it('has every socket of a table of several pages, wherever a page ends', async () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const callers = Array.from({ length: CONNECTIONS }, () => connect(port, '127.0.0.1'));
  onTestFinished(() => {
    for (const socket of [...callers, ...accepted]) socket.destroy();
    server.close();
  });
  await Promise.all(callers.map((caller) => once(caller, 'connect')));
  const table = readTcpSockets(process.pid) ?? expect.fail('no table');
  const states = [...callers, { _handle: Reflect.get(server, '_handle') as unknown }].map(
    (socket) => {
      const { fd } = Reflect.get(socket, '_handle') as { readonly fd: number };
      const inode = Number(/\d+/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[0]);
      return table.get(inode)?.state;
    },
  );
  expect(states).toEqual([...callers.map(() => 'established'), 'listen']);
});
