/** Holds its event loop for 120 ms of CPU time, again and again. */
import { createServer } from 'node:http';

function holdLoop() {
  const from = process.cpuUsage();
  while (process.cpuUsage(from).user + process.cpuUsage(from).system < 120_000);
}

const server = createServer((_, response) => response.end('ok'));
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`READY ${process.pid} ${server.address().port}\n`);
  setInterval(holdLoop, 420);
});
