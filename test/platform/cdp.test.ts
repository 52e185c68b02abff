import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import { CdpConnection } from '../../src/platform/cdp.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A WebSocket server of the test's own that answers each message as told. */
async function inspector(answer: (socket: WebSocket, message: string) => void): Promise<string> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  closers.push(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  server.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => answer(socket, data.toString()));
  });
  await once(server, 'listening');
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/x`;
}

async function tcp(server: Server): Promise<string> {
  closers.push(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/x`;
}

const idOf = (message: string): number => (JSON.parse(message) as { id: number }).id;

describe('a connection to an inspector', () => {
  it('matches answers to commands by id, whatever their order', async () => {
    const held: string[] = [];
    const url = await inspector((socket, message) => {
      held.push(message);
      if (held.length < 2) return;
      for (const one of held.toReversed())
        socket.send(JSON.stringify({ id: idOf(one), result: { echo: one } }));
    });
    const connection = await CdpConnection.connect(url);
    const [first, second] = await Promise.all([
      connection.send('Profiler.enable'),
      connection.send('Profiler.setSamplingInterval', { interval: 5000 }),
    ]);
    expect(first).toEqual({ echo: '{"id":1,"method":"Profiler.enable","params":{}}' });
    expect(second).toEqual({
      echo: '{"id":2,"method":"Profiler.setSamplingInterval","params":{"interval":5000}}',
    });
    await connection.close();
  });

  it('hands events to their listener', async () => {
    const url = await inspector((socket) =>
      socket.send('{"method":"NodeRuntime.waitingForDisconnect","params":{"a":1}}'),
    );
    const connection = await CdpConnection.connect(url);
    const event = new Promise((resolve) => {
      connection.on('NodeRuntime.waitingForDisconnect', resolve);
    });
    connection.send('Profiler.enable').catch(() => {});
    expect(await event).toEqual({ a: 1 });
    await connection.close();
  });

  it("gives the target's refusal as an error", async () => {
    const url = await inspector((socket, message) =>
      socket.send(JSON.stringify({ id: idOf(message), error: { code: -32000, message: 'no' } })),
    );
    const connection = await CdpConnection.connect(url);
    await expect(connection.send('Profiler.start')).rejects.toMatchObject({
      reason: 'refused',
      message: 'no',
    });
    expect(connection.isOpen).toBe(true);
    await connection.close();
  });

  it('gives up on a command that is not answered in time, and stays usable', async () => {
    const url = await inspector((socket, message) => {
      if (!message.includes('Profiler.stop')) socket.send(`{"id":${idOf(message)},"result":{}}`);
    });
    const connection = await CdpConnection.connect(url);
    await expect(connection.send('Profiler.stop', {}, 0.05)).rejects.toMatchObject({
      reason: 'timeout',
    });
    expect(await connection.send('Profiler.enable')).toEqual({});
    await connection.close();
  });

  it.each([
    ['text that is not JSON', (socket: WebSocket) => socket.send('<html>')],
    ['JSON that is not a message', (socket: WebSocket) => socket.send('7')],
    ['binary data', (socket: WebSocket) => socket.send(Buffer.from([1, 2, 3]))],
    ['a message over the limit', (socket: WebSocket) => socket.send('x'.repeat(5000))],
  ])('ends at %s', async (_what, misbehave) => {
    const url = await inspector(misbehave);
    const connection = await CdpConnection.connect(url, { messageLimit: 4096 });
    await expect(connection.send('Profiler.stop')).rejects.toMatchObject({ reason: 'malformed' });
    expect((await connection.closed).reason).toBe('malformed');
    await expect(connection.send('Profiler.enable')).rejects.toMatchObject({ reason: 'malformed' });
  });

  it.each([
    ['brackets within brackets', `${'['.repeat(200_000)}${']'.repeat(200_000)}`],
    ['more objects than any answer has', `[${'{},'.repeat(1_000_000)}0]`],
  ])('ends at an answer of %s, which is dear to parse', async (_what, result) => {
    const url = await inspector((socket, message) =>
      socket.send(`{"id":${idOf(message)},"result":${result}}`),
    );
    const connection = await CdpConnection.connect(url);
    await expect(connection.send('Profiler.stop')).rejects.toMatchObject({
      reason: 'malformed',
      message: 'the inspector sent what is too deep or too wide',
    });
    expect(connection.isOpen).toBe(false);
  });

  it('rejects what is under way when the target goes away', async () => {
    const url = await inspector((socket) => socket.terminate());
    const connection = await CdpConnection.connect(url);
    await expect(connection.send('Profiler.stop')).rejects.toMatchObject({ reason: 'closed' });
    expect(connection.isOpen).toBe(false);
  });

  it('rejects what is under way when it is closed, and closes twice', async () => {
    const url = await inspector(() => {});
    const connection = await CdpConnection.connect(url);
    const command = connection.send('Profiler.stop');
    await Promise.all([
      expect(command).rejects.toMatchObject({ reason: 'closed' }),
      connection.close(),
      connection.close(),
    ]);
  });

  it('says so when nothing listens, when nobody answers, and when it is not a WebSocket', async () => {
    const silent = await tcp(createServer());
    await expect(CdpConnection.connect(silent, { timeout: 0.1 })).rejects.toMatchObject({
      reason: 'unreachable',
    });
    const web = await tcp(
      createServer((socket) => socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n')),
    );
    await expect(CdpConnection.connect(web)).rejects.toMatchObject({ reason: 'unreachable' });
    await expect(CdpConnection.connect('ws://127.0.0.1:1/x')).rejects.toMatchObject({
      reason: 'unreachable',
    });
  });
});
