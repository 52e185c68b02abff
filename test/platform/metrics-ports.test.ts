import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { findPages } from '../../src/platform/metrics-ports.ts';
import type { Role } from '../../src/platform/roles.ts';

const open: Server[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.close();
    await once(server, 'close');
  }
});

/** A port that this very process listens on; how often somebody came is counted. */
async function listen(host = '127.0.0.1'): Promise<{ port: number; came: () => number }> {
  let count = 0;
  const server = createServer((socket) => {
    count++;
    socket.destroy();
  });
  open.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, came: () => count };
}

const { pid } = process;
const role = (family: Role['family'], name: string): Role => ({ family, name });
const urls = (owner: Role | null, any = false) =>
  findPages([{ pid, role: owner }], { any }).candidates.map(({ url }) => url);

describe('a page is looked for', () => {
  it('on each port that the process listens on, without sending anything', async () => {
    const [one, other] = [await listen(), await listen()];
    const found = urls(role('vLLM', 'API server'));
    for (const { port } of [one, other])
      expect(found).toContain(`http://127.0.0.1:${port}/metrics`);
    expect(one.came() + other.came()).toBe(0);
  });

  it('once for a port on both families, and by loopback where all addresses are bound', async () => {
    const { port } = await listen('::');
    const found = urls(role('llama.cpp', 'server')).filter((url) => url.includes(`:${port}/`));
    expect(found).toEqual([`http://[::1]:${port}/metrics`]);
  });

  it.each([
    [role('vLLM', 'API server'), true],
    [role('Dynamo', 'frontend'), true],
    [role('SGLang', 'router'), true],
    [role('TGI', 'router'), true],
    // Their ports speak other protocols.
    [role('vLLM', 'engine core DP0'), false],
    [role('SGLang', 'scheduler TP0'), false],
    [role('Dynamo', 'engine worker'), false],
    [role('gunicorn', 'worker'), false],
    [role('nginx', 'master'), false],
    [null, false],
  ])('of %j: %s', async (owner, expected) => {
    const { port } = await listen();
    expect(urls(owner).some((url) => url.includes(`:${port}/`))).toBe(expected);
  });

  it('of any program where that is asked for', async () => {
    const { port } = await listen();
    expect(urls(null, true)).toContain(`http://127.0.0.1:${port}/metrics`);
  });

  it('where TensorRT-LLM has it: its /metrics is used up by who reads it', async () => {
    const { port } = await listen();
    const found = urls(role('TensorRT-LLM', 'API server'));
    expect(found).toContain(`http://127.0.0.1:${port}/prometheus/metrics`);
    expect(found.filter((url) => new URL(url).pathname === '/metrics')).toEqual([]);
  });

  it('on no port of another process', async () => {
    await listen();
    const search = findPages([{ pid: process.ppid, role: role('vLLM', 'API server') }], {
      any: false,
    });
    const [{ port } = { port: 0 }] = open.map((server) => server.address() as { port: number });
    expect(search.candidates.filter(({ url }) => url.includes(`:${port}/`))).toEqual([]);
  });

  it('in vain where nothing listens, and says so', () => {
    const search = findPages([{ pid: 2 ** 22 + 1, role: role('vLLM', 'API server') }], {
      any: false,
    });
    expect(search.candidates).toEqual([]);
    expect(search.obstacle).toMatch(/may not be read|listens on no TCP port/);
  });
});
