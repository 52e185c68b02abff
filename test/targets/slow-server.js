import { createServer } from 'node:http';

/* What the blocking HTTP clients of the targets call: GET /<ms> answers after that many milliseconds. Ends with its standard input. */

const LIMIT_MS = 5_000;

const server = createServer((request, response) => {
  setTimeout(() => response.end('ok'), Math.min(LIMIT_MS, Number(request.url.slice(1)) || 0));
});
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`READY ${process.pid} ${server.address().port}\n`),
);
process.stdin.resume().on('end', () => process.exit(0));
