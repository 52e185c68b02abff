import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ended, runCli } from './cli.ts';

/*
 * `trace load` under a low limit of open files, against a server that takes every connection and
 * answers none.
 */

const taken = new Set<Socket>();
let server: Server;
let url = '';

beforeAll(async () => {
  server = createServer((socket) => {
    taken.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => taken.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1/chat/completions`;
});
afterAll(() => {
  for (const socket of taken) socket.destroy();
  server.close();
});

function load(files: number, ...flags: readonly string[]): Promise<Ended> {
  const command = ['sh', '-c', `ulimit -n ${files} && exec "$0" "$@"`, process.execPath];
  return runCli(['load', url, '-m', 'x', '--no-recording', ...flags], { command });
}

describe('with 200 open files', () => {
  it('a closed loop of 1,000 is refused before anything is sent', async () => {
    const { code, stdout, stderr } = await load(200, '-c', '1000', '-d', '1s');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^trace: 1000 connections at once take 1\d{3} open files.* have 200\n/);
    expect(stderr).toContain('ulimit -n');
  });

  it('a rate that needs more is client limited, and says nothing of the server', async () => {
    const flags = ['-r', '400', '-d', '1s', '--drain', '0.2s', '--json'];
    const { code, stdout, stderr } = await load(200, ...flags);
    expect(stderr).not.toContain('bug in trace');
    expect(code).toBe(6);
    const { load: result, findings } = JSON.parse(stdout) as {
      load: { requests: { errors: Record<string, number> }; client: { reasons: unknown[] } };
      findings: { code: string; mechanism: string | null }[];
    };
    expect(result.requests.errors['client']).toBeGreaterThan(0);
    expect(result.requests.errors).not.toHaveProperty('unreachable');
    expect(result.client.reasons).toContainEqual(expect.objectContaining({ cause: 'descriptors' }));
    const own = findings.find((finding) => finding.code === 'TRC301');
    expect(own?.mechanism).toContain('descriptors');
    expect(findings.map((finding) => finding.code)).not.toContain('TRC303');
  });
});
