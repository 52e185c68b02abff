import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LOAD_METRIC } from '../../src/core/semconv-load.ts';
import { runCli, startCli } from './cli.ts';
import { startLoadServer } from './load-server.ts';

/* How a load run ends that goes wrong: its own end, and its server's. */

const folder = mkdtempSync(join(tmpdir(), 'trace-load-ends-'));
const sockets = new Set<Socket>();
let asked = 0;
let silent: Server;
let url = '';

beforeAll(async () => {
  // Takes every connection and answers none.
  silent = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', () => (asked += 1));
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/v1/chat/completions`;
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  silent.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What a recording holds so far. */
function written(recording: string): string {
  try {
    return readFileSync(join(recording, 'telemetry.jsonl'), 'utf8');
  } catch {
    return '';
  }
}

describe('a load run', () => {
  it('that is killed before its first answer says so, and what was under way', async () => {
    const recording = join(folder, 'killed');
    const flags = ['-m', 'x', '-c', '4', '-d', '60s', '--ramp', '0s', '-o', recording];
    const run = startCli(['load', url, ...flags], { cwd: folder });
    await expect.poll(() => asked).toBe(4);
    const seconds = (): number => written(recording).split(LOAD_METRIC.inFlight.name).length;
    const before = seconds();
    // What is under way is written once a second.
    await expect.poll(seconds).toBeGreaterThan(before + 1);
    run.child.kill('SIGKILL');
    await run.ended;
    const { stdout } = await runCli(['show', recording]);
    expect(stdout).toMatch(/^KILLED: before the first answer, 4 under way$/m);
  });

  it('whose server is gone in the middle is said to fail, whatever that costs the client', async () => {
    const server = await startLoadServer();
    const prompts = ['--isl', '8', '--osl', '2'];
    const flags = ['-c', '4', '-d', '4s', '--drain', '1s', '--no-recording', '--json'];
    const run = startCli(['load', server.url, ...prompts, ...flags], { cwd: folder });
    await expect.poll(() => server.asked.length, { interval: 10 }).toBeGreaterThan(4);
    await server.close();
    const { code, stdout } = await run.ended;
    expect([1, 6]).toContain(code);
    const { findings } = JSON.parse(stdout) as {
      findings: { code: string; severity: string }[];
    };
    const failed = findings.find((finding) => finding.code === 'TRC303');
    expect(failed?.severity).toBe('warning');
  });
});
