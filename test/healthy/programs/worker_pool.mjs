// Work that takes long is done in a pool of threads, and the loop stays free.
import http from 'node:http';
import { join } from 'node:path';
import { isLoad, require, run } from './common.mjs';

if (!(await isLoad((count) => `/${count}`))) {
  const { Piscina } = require('piscina');
  const filename = join(import.meta.dirname, 'worker_pool_work.cjs');
  const pool = new Piscina({ filename, minThreads: 1, maxThreads: 1 });
  const server = http.createServer((request, response) => {
    const seed = Number(request.url.slice(1)) || 1;
    void pool.run({ seed }).then((value) => response.end(String(value)));
  });
  server.listen(0, '127.0.0.1', () => run(server.address().port));
}
