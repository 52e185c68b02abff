// Uploads that break off in the middle of a file.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import multer from 'multer';

export async function serve() {
  const dest = mkdtempSync(join(tmpdir(), 'uploads-'));
  process.on('exit', () => rmSync(dest, { recursive: true, force: true }));
  process.on('uncaughtException', () => {});
  const upload = multer({ dest }).single('f');
  const closed = [];
  const server = createServer((request, response) => {
    request.on('close', () => closed.shift()?.());
    upload(request, response, () => response.destroy());
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  return { port: server.address().port, closed };
}

const BODY = [
  'POST /upload HTTP/1.1',
  'host: x',
  'content-length: 100000',
  'content-type: multipart/form-data; boundary=B',
  '',
  '--B',
  'content-disposition: form-data; name="f"; filename="a.bin"',
  'content-type: application/octet-stream',
  '',
  'x'.repeat(5000),
].join('\r\n');

export async function abort({ port, closed }) {
  const isClosed = new Promise((done) => closed.push(done));
  const socket = connect(port, '127.0.0.1', () => {
    socket.write(BODY, () => setTimeout(() => socket.destroy(), 20));
  });
  await isClosed;
  await new Promise((done) => setTimeout(done, 20));
}
