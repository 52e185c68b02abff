// p-timeout: each call leaves its listener on the signal that ends the program's work.
import { getEventListeners, setMaxListeners } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/x.js`); // packages come from the current directory
const seconds = Number(process.argv[2] ?? 10);
const { default: pTimeout } = await import(pathToFileURL(require.resolve('p-timeout')).href);

// One controller for the life of the process, as services have it.
const shutdown = new AbortController();
setMaxListeners(0, shutdown.signal);
let calls = 0;
const server = http.createServer(async (request, response) => {
  const body = { rows: Array.from({ length: 20 }, (_, index) => ({ index, calls })) };
  const found = await pTimeout(Promise.resolve(body), {
    milliseconds: 1000,
    signal: shutdown.signal,
  });
  calls += 1;
  response.end(JSON.stringify(found));
});
server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const get = () =>
    new Promise((resolve) => {
      http
        .get({ port, agent, host: '127.0.0.1' }, (answer) => answer.resume().on('end', resolve))
        .on('error', resolve);
    });
  console.log('READY', process.pid, port);
  const end = Date.now() + seconds * 1e3;
  while (Date.now() < end) {
    await Promise.all([get(), get(), get(), get()]);
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  const listeners = getEventListeners(shutdown.signal, 'abort').length;
  console.log(JSON.stringify({ bug: listeners > calls / 2, calls, listeners }));
  process.exit(0);
});
