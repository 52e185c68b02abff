import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listen } from '../proxy/upstream.ts';
import { startCli } from './cli.ts';

it('a parser that NODE_OPTIONS makes lenient does not pass on a length beside chunks', async () => {
  const seen: string[] = [];
  const upstream = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end();
  });
  const target = `http://127.0.0.1:${await listen(upstream)}`;
  const folder = mkdtempSync(join(tmpdir(), 'trace-lenient-'));
  const path = join(folder, 'socket');
  const run = startCli(['proxy', '--target', target, '--unix', path, '-o', join(folder, 'kept')], {
    cwd: folder,
    env: { HOME: folder, NODE_OPTIONS: '--insecure-http-parser' },
  });
  try {
    await run.said('passes to');
    const answer = await new Promise<string>((done, fail) => {
      const socket = connect(path);
      let text = '';
      socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
      socket.on('error', fail).on('close', () => done(text));
      const lines = ['Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', ''];
      socket.write(['POST /a HTTP/1.1', 'Host: x', ...lines].join('\r\n'));
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen).toEqual([]);
  } finally {
    run.child.kill('SIGINT');
    await run.ended;
    upstream.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
