// The handshake of a WebSocket, some with a long run of spaces in the protocols.
import { createServer } from 'node:http';
import { connect } from 'node:net';
import WebSocket from 'ws';

export async function serve() {
  const server = createServer({ maxHeaderSize: 2 ** 17 });
  const sockets = new WebSocket.Server({ server });
  sockets.on('connection', (socket) => socket.on('error', () => {}));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  return server.address().port;
}

export function upgrade(port, spaces) {
  const head = [
    'GET / HTTP/1.1',
    'host: x',
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    `sec-websocket-protocol: a${' '.repeat(spaces)}b`,
  ].join('\r\n');
  return new Promise((done, fail) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\n\r\n`));
    socket.on('error', fail);
    socket.once('data', (data) => {
      socket.destroy();
      done(data.toString('latin1').split('\r\n')[0]);
    });
  });
}
