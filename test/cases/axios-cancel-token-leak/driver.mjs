// axios: a cancel token that lives as long as the program keeps every request that was made with it.
import { fork } from 'node:child_process';
import http from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.cwd()}/x.js`); // packages come from the current directory

function peer() {
  const server = http.createServer((request, response) => response.end('{"ok":true}'));
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

async function app(port, seconds) {
  const axios = require('axios');
  const source = axios.CancelToken.source();
  const agent = new http.Agent({ keepAlive: true });
  const used = () => {
    globalThis.gc();
    return process.memoryUsage().heapUsed;
  };
  console.log('READY', process.pid);
  for (let count = 0; count < 50; count += 1)
    await axios.get(`http://127.0.0.1:${port}/`, { httpAgent: agent, cancelToken: source.token });
  const before = used();
  const end = Date.now() + seconds * 1e3;
  let requests = 0;
  while (Date.now() < end) {
    await axios.get(`http://127.0.0.1:${port}/`, { httpAgent: agent, cancelToken: source.token });
    requests += 1;
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  const growth = used() - before;
  const isCancelled = source.token.reason !== undefined; // asked last, so that the token lives until here
  console.log(
    JSON.stringify({ bug: growth > requests * 1000, requests, heap_growth: growth, isCancelled }),
  );
  process.exit(0);
}

if (process.argv[2] === 'peer') peer();
else {
  const server = fork(process.argv[1], ['peer'], { execArgv: [] });
  server.once('message', (port) => void app(port, Number(process.argv[2] ?? 10)));
  process.on('exit', () => server.kill());
}
