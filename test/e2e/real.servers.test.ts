import { beforeAll, describe, expect, it } from 'vitest';
import {
  startAiohttp,
  startCompletions,
  startFastify,
  startGunicorn,
  startLlama,
  type Server,
} from '../servers/servers.ts';
import { startTraffic } from '../targets/harness.ts';
import { type Ended, parseReport, type ReportDocument, runCli, verdicts } from './cli.ts';

/*
 * Servers as people run them, from pinned packages (test/servers): what our handlers do wrong is found and put down to them, what runs as it
 * should is left alone. Installed on first use; a section of its own in .ci/run.
 */

const WATCH_S = 10;
/** Every block is this long, well above the threshold of 50 ms; two of each kind, so that one may fall into a gap. */
const BLOCK_MS = 200;
const BLOCKS = 2;
/** From 30 readings on a trend is tested, not looked at: what loses by requests is uneven on a busy machine. */
const LEAK_WATCH_S = 32;
/** What is left behind a second. */
const LEAKS_A_SECOND = 10;
const THREADS_A_SECOND = 4;

interface Watched {
  readonly run: Ended;
  readonly report: ReportDocument;
}

async function attach(pid: number, watchS: number = WATCH_S): Promise<Watched> {
  const args = ['attach', String(pid), '-d', String(watchS), '--json', '--no-recording'];
  const run = await runCli(args, { limitS: watchS + 30 });
  return { run, report: parseReport(run) };
}

/** The path of every fault, some times over, spread over the watch; the rest of the time healthy requests. */
async function requestFaults(port: number, kinds: readonly string[]): Promise<void> {
  const paths = Array.from({ length: BLOCKS }, () => kinds).flat();
  const pauseMs = (WATCH_S * 0.7 * 1e3) / paths.length;
  for (const kind of paths) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const answer = await fetch(`http://127.0.0.1:${port}/fault/${kind}?ms=${BLOCK_MS}`);
    await answer.arrayBuffer();
  }
}

async function watchFaults(
  { port, pid }: Pick<Server, 'pid' | 'port'>,
  kinds: readonly string[],
): Promise<Watched> {
  const clients = await startTraffic(port, { rate: 40, seconds: WATCH_S });
  try {
    const [watched] = await Promise.all([attach(pid), requestFaults(port, kinds)]);
    return watched;
  } finally {
    await clients.stop();
  }
}

async function watchLoad(
  { port, pid }: Pick<Server, 'pid' | 'port'>,
  load: { readonly rate: number; readonly path?: string },
  watchS: number = WATCH_S,
): Promise<Watched> {
  const clients = await startTraffic(port, { ...load, seconds: watchS + 5 });
  try {
    return await attach(pid, watchS);
  } finally {
    await clients.stop();
  }
}

const blamed = (report: ReportDocument): string[] =>
  verdicts(report)
    .filter(({ kind }) => kind === 'loop-blocked')
    .map(({ where }) => where[0]?.function ?? '')
    .toSorted((a, b) => a.localeCompare(b));

/** A loop that has to wait for a core also blocks (a thread is slow to start); here what grows is judged. */
const leaks = (report: ReportDocument) =>
  verdicts(report).filter(({ kind }) => kind.endsWith('-leak'));

/** Each function that blocks and nothing else; on a crowded machine writing a file may be for the most part waiting for a core. */
function expectBlamed({ report, run }: Watched, functions: readonly string[]): void {
  const found = blamed(report);
  const isCrowded = report.findings.some(({ mechanism }) => mechanism === 'starved');
  const optional = functions.filter(
    (name) => isCrowded && /file$/i.test(name) && !found.includes(name),
  );
  expect(found).toEqual(functions.filter((name) => !optional.includes(name)));
  expect(run.code).toBe(1);
}

/** One server of each kind that runs handlers of ours, all at the same time. */
async function startAll(workers: number, fastifyFlags: readonly string[] = []) {
  const [aiohttp, gunicorn, fastify] = await Promise.all([
    startAiohttp(),
    startGunicorn(workers),
    startFastify(fastifyFlags),
  ]);
  const worker = { port: gunicorn.port, pid: gunicorn.workers.at(-1) ?? 0 };
  const stop = () => Promise.all([aiohttp, gunicorn, fastify].map((server) => server.stop()));
  return { aiohttp, worker, fastify, stop };
}

describe('handlers that block', () => {
  let aiohttp: Watched;
  let gunicorn: Watched;
  let fastify: Watched;
  beforeAll(async () => {
    // One worker: every request reaches the process that is watched.
    const servers = await startAll(1, ['--inspect=0']);
    [aiohttp, gunicorn, fastify] = await Promise.all([
      watchFaults(servers.aiohttp, ['sleep', 'file', 'spin']),
      watchFaults(servers.worker, ['sleep', 'file', 'spin']),
      watchFaults(servers.fastify, ['exec', 'file', 'spin']),
    ]);
    return servers.stop;
  });

  it('of aiohttp are named, each alone', () => {
    expectBlamed(aiohttp, ['blocking_file', 'blocking_sleep', 'blocking_spin']);
  });

  it('of a gunicorn worker are named, each alone', () => {
    expectBlamed(gunicorn, ['blocking_file', 'blocking_sleep', 'blocking_spin']);
  });

  it('of Fastify are named through its inspector, each alone', () => {
    expectBlamed(fastify, ['blockingExec', 'blockingFile', 'blockingSpin']);
  });
});

describe('handlers that lose something at every request', () => {
  let found: Readonly<Record<'aiohttp' | 'gunicorn' | 'fastify', Watched>>;
  beforeAll(async () => {
    const servers = await startAll(1);
    const [aiohttp, gunicorn, fastify] = await Promise.all([
      watchLoad(servers.aiohttp, { rate: LEAKS_A_SECOND, path: '/leak/socket' }, LEAK_WATCH_S),
      watchLoad(servers.worker, { rate: THREADS_A_SECOND, path: '/leak/thread' }, LEAK_WATCH_S),
      watchLoad(servers.fastify, { rate: LEAKS_A_SECOND, path: '/leak/fd' }, LEAK_WATCH_S),
    ]);
    found = { aiohttp, gunicorn, fastify };
    return servers.stop;
  });

  it('are found in aiohttp, with the state of the connections', () => {
    expect(leaks(found.aiohttp.report)).toMatchObject([
      { kind: 'socket-leak', mechanism: 'close_wait' },
    ]);
  });

  it('are found in a gunicorn worker, with the name of the threads', () => {
    expect(leaks(found.gunicorn.report)).toMatchObject([{ kind: 'thread-leak' }]);
  });

  it('are found in Fastify, with the kind of descriptor', () => {
    expect(leaks(found.fastify.report)).toMatchObject([{ kind: 'fd-leak', mechanism: 'file' }]);
  });
});

describe('under healthy load nothing is reported', () => {
  let watched: Readonly<Record<'aiohttp' | 'gunicorn' | 'fastify', Watched>>;
  beforeAll(async () => {
    const servers = await startAll(2);
    const load = { rate: 60 };
    const [aiohttp, gunicorn, fastify] = await Promise.all([
      watchLoad(servers.aiohttp, load),
      watchLoad(servers.worker, load),
      watchLoad(servers.fastify, load),
    ]);
    watched = { aiohttp, gunicorn, fastify };
    return servers.stop;
  });

  it.each(['aiohttp', 'gunicorn', 'fastify'] as const)('of %s', (name) => {
    expect(verdicts(watched[name].report)).toEqual([]);
    expect(watched[name].run.code).toBe(0);
  });
});

describe('llama.cpp', () => {
  it('streaming completions is left alone, and its threads are told apart', async () => {
    const server = await startLlama();
    const clients = await startCompletions(server.port, { clients: 4, seconds: WATCH_S + 2 });
    try {
      const { run, report } = await attach(server.pid);
      expect(await clients.done()).toMatchObject({ failed: 0 });
      expect(verdicts(report)).toEqual([]);
      expect(run.code).toBe(0);
      expect(report.targets).toMatchObject([{ runtime: 'native' }]);
      const threads = report.metrics['tracewright.thread.cpu.utilization']?.series ?? [];
      expect(threads.length).toBeGreaterThan(2);
    } finally {
      await clients.stop();
      await server.stop();
    }
  });

  it('is said to have no event loop, and what else was looked at', async () => {
    const server = await startLlama();
    try {
      const run = await runCli(['attach', String(server.pid), '-d', '9', '--no-recording']);
      expect(run.stdout).toContain('Nothing found: neither descriptors nor threads of pid');
      expect(run.stdout).toMatch(/native,\s+llama-server\s+-m/);
      expect(run.stdout).toMatch(/it has no event loop that could\s+be\s+watched/);
      expect(run.code).toBe(0);
    } finally {
      await server.stop();
    }
  });
});

describe('gunicorn’s master', () => {
  it('is watched with its workers, or said to have its work done in them, with their pids', async () => {
    const server = await startGunicorn(2);
    try {
      const watched = await runCli(['attach', String(server.pid), '-d', '2', '--no-recording']);
      const [first = 0, second = 0] = server.workers;
      expect(watched.stdout).toMatch(new RegExp(`^ *${server.pid} .* gunicorn master:`, 'm'));
      for (const worker of [first, second])
        expect(watched.stdout).toMatch(new RegExp(`^ *${worker} .* {3}gunicorn worker:`, 'm'));
      const alone = ['attach', String(server.pid), '--no-subprocesses', '-d', '2'];
      const run = await runCli([...alone, '--no-recording']);
      expect(run.stdout).toContain('its worker processes were not watched');
      expect(run.stdout).toMatch(new RegExp(`\\b${first}\\b`));
      expect(run.stdout).toMatch(new RegExp(`\\b${second}\\b`));
      expect(run.stderr).toMatch(new RegExp(`trace attach (?:${first}|${second})\\b`));
    } finally {
      await server.stop();
    }
  });
});
