// A route with two parameters in one segment.
import { createServer } from 'node:http';
import express from 'express';

export async function serve() {
  const app = express();
  app.get('/flights/:from-:to', (request, response) => response.json(request.params));
  const server = createServer({ maxHeaderSize: 2 ** 18 }, app);
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}

export async function flight(base, dashes) {
  const name = dashes === 0 ? 'LAX-SFO' : `${'-'.repeat(dashes)}/x`;
  return (await fetch(`${base}/flights/${name}`)).status;
}
