/** Holds its event loop 120 ms at a time. */
import { createServer } from 'node:http';

function holdLoop() {
  const end = performance.now() + 120;
  while (performance.now() < end);
}

const server = createServer((_, response) => response.end('ok'));
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`READY ${process.pid} ${server.address().port}\n`);
  setInterval(holdLoop, 420);
});
