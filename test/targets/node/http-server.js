import { createServer } from 'node:http';
import { run, work } from './plan.js';

/* A plain node:http server. */

async function serveWork(url) {
  await work(url.searchParams.get('kind'), Number(url.searchParams.get('ms')));
}

async function handleRequest(request, response) {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/work') await serveWork(url);
  response.end('ok');
}

const server = createServer((request, response) => void handleRequest(request, response));
server.listen(0, '127.0.0.1', () => void run(server.address().port));
