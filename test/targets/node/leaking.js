import { openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';

/*
 * A program that loses something, for the tests of growth: `leaking.js file|socket|thread|memory|buffers <a second>`. What is opened is kept (file),
 * ended by the other side alone (socket), started and left waiting (thread), kept as a buffer by a timer that is never cleared (buffers: 64 KiB), or remembered (memory: 64 KiB each, of what a connection of its
 * own sends, in waves of 20 s).
 */

const [, , what, rate] = process.argv;
const held = [];
const PERIOD_S = 20;
const CHUNK = 64 * 1024;

const listener = createServer((socket) =>
  what === 'memory' ? remember(socket) : socket.destroy(),
);
await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
const { port } = listener.address();
let own = null;

function remember(socket) {
  socket.on('data', (chunk) => held.push(Uint8Array.from(chunk)));
}

function keepBuffer() {
  const buffer = Buffer.alloc(CHUNK, 1);
  setInterval(() => buffer.fill(2, 0, 1), 5000);
}

const LOSE = {
  file: () => held.push(openSync('/dev/null', 'r')),
  socket: () => held.push(connect({ port, host: '127.0.0.1', allowHalfOpen: true })),
  thread: () => held.push(new Worker('setInterval(() => {}, 1e6)', { eval: true })),
  buffers: keepBuffer,
  memory: () => (own ??= connect({ port, host: '127.0.0.1' })).write(Buffer.alloc(CHUNK, 1)),
};

/** How many should be lost by now. */
function due(seconds) {
  if (what !== 'memory') return seconds * rate;
  const wave = (2 * Math.PI) / PERIOD_S;
  return rate * (seconds - Math.sin(wave * seconds) / wave);
}

process.stdout.write('up\n');
const begin = performance.now();
let lost = 0;
setInterval(() => {
  for (; lost < due((performance.now() - begin) / 1e3); lost++) LOSE[what]();
}, 10);
