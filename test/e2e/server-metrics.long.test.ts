import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { type Ended, parseReport, runCli } from './cli.ts';

/* What a server says of itself, found on its own ports and nowhere else; and what a small request takes. With a server whose numbers evolve. */

const PROGRAM = join(import.meta.dirname, '..', 'targets', 'node', 'inference-server.js');

interface Asked {
  readonly pages: number;
  readonly models: number;
  readonly completions: readonly {
    readonly body: Readonly<Record<string, unknown>>;
    readonly traceparent?: string;
  }[];
}

interface Running {
  readonly pid: number;
  readonly port: number;
  asked(): Promise<Asked>;
}

const ends: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** Runs under this name: what a process is to its server is told by its command line. */
function startServer(name: string, ...flags: readonly string[]): Promise<Running> {
  return ready(spawn(process.execPath, [PROGRAM, ...flags], { argv0: name }));
}

const UNSHARE = ['unshare', '-rn'] as const;
const canUnshare = spawnSync(UNSHARE[0], [UNSHARE[1], 'true']).status === 0;

/** As from a container: a network of its own. */
function startElsewhere(name: string): Promise<Running> {
  const [program, flag] = UNSHARE;
  const named = ['bash', '-c', `exec -a ${name} "$@"`, 'bash', process.execPath, PROGRAM];
  return ready(spawn(program, [flag, ...named]));
}

async function ready(child: ChildProcessWithoutNullStreams): Promise<Running> {
  ends.push(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  for await (const line of createInterface(child.stdout)) {
    const [, pid, port] = /^READY (\d+) (\d+)$/.exec(line) ?? [];
    if (pid === undefined || port === undefined) continue;
    const asked = async (): Promise<Asked> =>
      (await (await fetch(`http://127.0.0.1:${port}/asked`)).json()) as Asked;
    return { pid: Number(pid), port: Number(port), asked };
  }
  throw new Error('not ready');
}

/** A port of ours, which is none of the target's; counts who came. */
async function startNeighbour(): Promise<{ readonly url: string; readonly came: () => number }> {
  let count = 0;
  const server: Server = createServer((_, response) => {
    count++;
    response.end('m 1\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/metrics`, came: () => count };
}

function attach({ pid }: Running, ...flags: readonly string[]): Promise<Ended> {
  return runCli(['attach', String(pid), '-d', '3', '--no-recording', ...flags]);
}

it('is called what it is beside a load run, too', async () => {
  const { port, pid } = await startServer('llama-server');
  const run = await runCli(
    `load http://127.0.0.1:${port} -m tiny -c 1 -n 3 --attach ${pid} --no-recording --json`.split(
      ' ',
    ),
  );
  expect(parseReport(run).targets).toMatchObject([{ pid, role: 'llama.cpp server' }]);
});

describe('the page of a server that is known', () => {
  it('is found on its port; the report says what it says, and that it began anew', async () => {
    const server = await startServer('llama-server', '--restart-after', '3');
    const other = await startNeighbour();
    const run = await attach(server, '--metrics-interval', '0.5s');
    const { port, pid } = server;
    expect(run.stderr).toContain(
      `asked http://127.0.0.1:${port}/metrics of pid ${pid} (llama.cpp server): 5 series of llama.cpp`,
    );
    expect(run.stdout).toMatch(/server +llama\.cpp at 127\.0\.0\.1:\d+: running median/);
    expect(run.stdout).toMatch(/restarted once/);
    expect((await server.asked()).pages).toBeGreaterThanOrEqual(4);
    expect(other.came()).toBe(0);
  });

  it('is not asked for with --no-metrics, and is where --metrics-url says', async () => {
    const server = await startServer('llama-server');
    await attach(server, '--no-metrics');
    expect((await server.asked()).pages).toBe(0);
    const url = `http://127.0.0.1:${server.port}/metrics`;
    const report = parseReport(await attach(server, '--metrics-url', url, '--json'));
    expect(report.metrics['tracewright.server.tokens.output']?.series).toHaveLength(1);
  });

  it.each([
    ['none', /HTTP 501/, /llama-server publishes it with --metrics/],
    ['elsewhere', /HTTP 302, which is not followed/, /./],
  ])('that is %s is said, with what was asked', async (page, reason, remedy) => {
    const other = await startNeighbour();
    const server = await startServer('llama-server', '--page', page, '--elsewhere', other.url);
    const run = await attach(server);
    expect(run.stderr).toMatch(reason);
    expect(run.stdout).toMatch(remedy);
    expect(run.code).toBe(0);
    expect(other.came()).toBe(0);
  });
});

it.skipIf(!canUnshare)('in another network namespace is named, and what to do', async () => {
  const server = await startElsewhere('llama-server');
  const run = await attach(server);
  expect(run.stderr).toContain(
    `pid ${server.pid} listens on ${server.port} in another network namespace`,
  );
  expect(run.stdout).toContain('--metrics-url');
  expect(run.code).toBe(0);
});

describe('any other program', () => {
  it('is not asked, but for --metrics; an unknown page is called unknown', async () => {
    const server = await startServer('some-service', '--page', 'unknown');
    const silent = await attach(server);
    expect((await server.asked()).pages).toBe(0);
    expect(silent.stdout + silent.stderr).not.toContain('server-metrics');
    const run = await attach(server, '--metrics');
    expect(run.stderr).toContain('1 series of an unknown server');
    expect((await server.asked()).pages).toBeGreaterThan(2);
  });
});

describe('--probe-url', () => {
  it('sends a small request now and then, in the trace of the run', async () => {
    const server = await startServer('some-service');
    const probe = ['--probe-url', `http://127.0.0.1:${server.port}`, '--probe-interval', '1s'];
    const report = parseReport(await attach(server, ...probe, '--json'));
    const { models, completions } = await server.asked();
    expect(models).toBe(1);
    expect(completions.length).toBeGreaterThanOrEqual(2);
    expect(completions.length).toBeLessThanOrEqual(4);
    for (const { body, traceparent } of completions) {
      expect(body).toMatchObject({ model: 'tiny', max_tokens: 2, stream: true });
      expect(traceparent?.split('-')[1]).toBe(report.trace_id);
    }
    expect(new Set(completions.map(({ traceparent }) => traceparent)).size).toBe(
      completions.length,
    );
    const [ttft] = report.metrics['tracewright.server.probe.time_to_first_token']?.series ?? [];
    expect(ttft?.count).toBeGreaterThanOrEqual(2);
    expect(ttft?.min).toBeGreaterThan(0.015);
    expect(report.metrics['tracewright.server.probe.duration']?.series[0]?.min).toBeGreaterThan(
      0.035,
    );
  });

  it('says which requests failed, and goes on', async () => {
    const server = await startServer('some-service', '--answer', 'error');
    const run = await attach(
      server,
      '--probe-url',
      `http://127.0.0.1:${server.port}/v1`,
      '--probe-interval',
      '1s',
    );
    expect(run.stdout).toMatch(/probe +[2-4] requests; [2-4] failed/);
    expect(run.code).toBe(0);
  });
});
