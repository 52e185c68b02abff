// Fastify with a cache that fills to its bound.
import { isLoad, require, run } from './common.mjs';

if (!(await isLoad((count) => `/items/${count}`))) {
  const { LRUCache } = require('lru-cache');
  const app = require('fastify').default();
  const cache = new LRUCache({ max: 1000 });
  app.get('/items/:key', async ({ params: { key } }) => {
    if (!cache.has(key)) cache.set(key, { key, text: 'x'.repeat(500) });
    return cache.get(key);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  run(app.server.address().port);
}
