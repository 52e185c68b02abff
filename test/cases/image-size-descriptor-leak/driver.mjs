// image-size: a path that opens and cannot be read is left open.
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

const require = createRequire(`${process.cwd()}/x.js`); // packages come from the current directory
const seconds = Number(process.argv[2] ?? 10);
const { imageSize } = require('image-size');
const uploads = fs.mkdtempSync(path.join(os.tmpdir(), 'gallery-'));
fs.mkdirSync(path.join(uploads, 'album'));
// One pixel, GIF.
fs.writeFileSync(
  path.join(uploads, 'dot.gif'),
  Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAA=', 'base64'),
);
const descriptors = () => fs.readdirSync('/proc/self/fd').length;
let asked = 0;
const server = http.createServer((request, response) => {
  try {
    response.end(JSON.stringify(imageSize(path.join(uploads, path.basename(request.url)))));
  } catch (error) {
    asked += 1;
    response.writeHead(404).end(String(error.code));
  }
});
server.listen(0, '127.0.0.1', async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  await (await fetch(`${base}/dot.gif`)).text();
  const before = descriptors();
  console.log('READY', process.pid, server.address().port);
  const end = Date.now() + seconds * 1e3;
  while (Date.now() < end) {
    for (const name of ['dot.gif', 'album']) await (await fetch(`${base}/${name}`)).text();
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  const left = descriptors() - before;
  console.log(JSON.stringify({ bug: left > asked / 2, asked, left }));
  fs.rmSync(uploads, { recursive: true });
  process.exit(0);
});
