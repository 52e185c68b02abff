import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { FREEZERS } from '../cgroups.ts';
import { interpreters } from '../environments.ts';
import { CAPTURE, FakeSmi } from '../nvidia-smi/fake-smi.ts';
import { freePort } from '../servers/dynamo.ts';
import { startReady } from '../targets/harness.ts';
import { canRun } from '../programs.ts';
import { type FindingDocument, parseReport, startCli, verdicts } from './cli.ts';

/** A server that is wedged for real (test/targets/python/wedging_server.py), from outside: named within 40 s, with and without the right to its memory. */

const PROGRAM = join(import.meta.dirname, '..', 'targets', 'python', 'wedging_server.py');
const [python = '', home = ''] = execFileSync(
  interpreters()[0]?.path ?? 'python3',
  ['-c', 'import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)'],
  { encoding: 'utf8' },
).split('\n');

/** Long enough for a wedge that begins with the first seconds of the run to be likely. */
const WATCH_S = 34;
/** Once every trace has asked for the page: it has seen tokens come. */
const HEALTHY_S = 2;

interface Server {
  readonly pid: number;
  readonly port: number;
  readonly engine: number;
  readonly workers: readonly number[];
  /** Begins the fault. */
  break(): void;
}

type Finished = Pick<TestContext, 'onTestFinished'>['onTestFinished'];

async function startServer(
  fault: string,
  onTestFinished: Finished,
  more: readonly string[] = [],
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'trace-wedge-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const when = join(folder, 'now');
  // exec -a: the name by which a server is recognised.
  const flags = ['--fault', fault, '--when', when, '--seconds', '150', ...more];
  const port = await freePort();
  const running = await startReady('bash', [
    '-c',
    'export PYTHONHOME="$1"; shift; exec -a "/usr/bin/vllm serve" "$@"',
    'bash',
    home,
    python,
    PROGRAM,
    ...flags,
    '--port',
    String(port),
  ]);
  onTestFinished(() => running.stop());
  const [engine = 0, ...workers] = (running.lines.find((line) => line.startsWith('PIDS')) ?? '')
    .split(' ')
    .slice(1)
    .map(Number);
  // A stopped one does not see that its parent is gone.
  onTestFinished(() => void (engine > 0 && process.kill(engine, 'SIGKILL')));
  return { pid: running.pid, port, engine, workers, break: () => writeFileSync(when, '') };
}

const BLIND = ['setpriv', '--inh-caps=-sys_ptrace', '--bounding-set=-sys_ptrace'] as const;
/** Taking a capability from root takes root. */
const CAN_BLIND = process.getuid?.() === 0 && canRun('setpriv', '--version');
const VIEWS = [
  { isBlind: false, behind: [] },
  ...(CAN_BLIND ? [{ isBlind: true, behind: BLIND }] : []),
] as const;

interface Watched {
  readonly isBlind: boolean;
  readonly wedge: FindingDocument | undefined;
  readonly verdicts: readonly FindingDocument[];
  readonly code: number | null;
}

interface Watch {
  readonly views?: readonly (typeof VIEWS)[number][];
  readonly path?: string;
  /** In place of the server's own fault. */
  readonly fault?: (server: Server) => void;
  /** Asks it for something every five seconds. */
  readonly isProbed?: boolean;
}

/** Watches it once with the right to its memory and once without, at the same time; the fault begins when all of them watch. */
async function watch(
  server: Server,
  { views = VIEWS, path = '', fault = (one) => one.break(), isProbed = false }: Watch = {},
): Promise<readonly Watched[]> {
  const args = [
    'attach',
    String(server.pid),
    '-d',
    String(WATCH_S),
    '--no-recording',
    '--json',
    ...(isProbed ? ['--probe-url', `http://127.0.0.1:${server.port}`] : []),
  ];
  const runs = views.map(({ isBlind, behind }) => {
    const run = startCli(args, {
      limitS: WATCH_S + 60,
      command: [...behind, process.execPath],
      env: path === '' ? {} : { PATH: `${path}:${process.env['PATH'] ?? ''}` },
    });
    return { isBlind, run };
  });
  await Promise.all(runs.map(({ run }) => run.said('server-metrics: asked')));
  // Real time: so long it is healthy.
  await sleep(HEALTHY_S * 1e3);
  fault(server);
  return Promise.all(
    runs.map(async ({ isBlind, run }) => {
      const ended = await run.ended;
      const found = verdicts(parseReport(ended));
      const wedge = found.find(({ kind }) => kind === 'wedge');
      return { isBlind, wedge, verdicts: found, code: ended.code };
    }),
  );
}

describe.concurrent('a wedged server, with its memory readable and with CAP_SYS_PTRACE dropped', () => {
  it('is told by a stopped engine', async ({ onTestFinished }) => {
    const server = await startServer('none', onTestFinished);
    const all = await watch(server, { fault: ({ engine }) => process.kill(engine, 'SIGSTOP') });
    for (const { wedge, code } of all) {
      expect(wedge).toMatchObject({ code: 'TRC201', mechanism: 'stopped process' });
      expect(wedge).toMatchObject({ confidence: 'likely', pid: server.engine });
      // 6: the machine stood still itself, and too few readings came of the loop.
      expect([1, 6]).toContain(code);
    }
  });

  it.for(FREEZERS)(
    'is told by an engine whose control group is frozen, as docker pause does: version %s',
    async ([, make], { onTestFinished }) => {
      const server = await startServer('none', onTestFinished);
      const group = make();
      // It cannot leave the group, and be ended, before it is thawed.
      onTestFinished(() => {
        group.freeze(false);
        writeFileSync(join(dirname(group.folder), 'cgroup.procs'), String(server.engine));
        group.remove();
      });
      group.admit(server.engine);
      const views = VIEWS.slice(0, 1);
      const [watched] = await watch(server, { views, fault: () => group.freeze(true) });
      expect(watched?.wedge).toMatchObject({
        mechanism: 'stopped process',
        confidence: 'likely',
        pid: server.engine,
        remedy: expect.stringContaining('docker unpause') as string,
      });
    },
  );

  it('is told by a worker that is deadlocked', async ({ onTestFinished }) => {
    const server = await startServer('deadlock', onTestFinished);
    for (const { wedge, isBlind } of await watch(server)) {
      expect(wedge?.confidence).toBe('likely');
      expect(wedge?.mechanism).toBe(isBlind ? 'lost wake-up' : 'deadlock');
      if (isBlind) continue;
      expect(wedge?.pid).toBe(server.workers.at(-1));
      expect(wedge?.where[0]?.function).toBe('save_cache');
    }
  });

  it('is told by a message that never comes', async ({ onTestFinished }) => {
    for (const { wedge } of await watch(await startServer('lost', onTestFinished)))
      expect(wedge).toMatchObject({ mechanism: 'lost wake-up', confidence: 'likely' });
  });

  it('is told by a GPU that is busy and draws nothing', async ({ onTestFinished }) => {
    const server = await startServer('lost', onTestFinished);
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        state: 'load',
        processes: [[server.engine, 60_000]],
        values: {
          'utilization.gpu': '100',
          'power.draw': '130.00',
          'power.draw.instant': '130.00',
        },
      },
      onTestFinished,
    );
    for (const { wedge } of await watch(server, { path: smi.folder }))
      expect(wedge).toMatchObject({ mechanism: 'kernel never returned', confidence: 'likely' });
  });
});

describe.concurrent('a server that nobody asks but trace, and whose page says nothing of it', () => {
  const idle = ['--idle'];

  it('is wedged when a worker is deadlocked', async ({ onTestFinished }) => {
    const server = await startServer('deadlock', onTestFinished, idle);
    for (const { wedge, isBlind } of await watch(server, { isProbed: true })) {
      expect(wedge?.confidence).toBe('likely');
      expect(wedge?.mechanism).toBe(isBlind ? 'lost wake-up' : 'deadlock');
      expect(wedge?.summary).toContain('no progress for');
      expect(JSON.stringify(wedge)).toContain('1 small request of trace got no answer');
      if (!isBlind) expect(wedge?.pid).toBe(server.workers.at(-1));
    }
  });

  it.for(['none', 'prefill'])(
    'is not when it is healthy: %s',
    async (fault, { onTestFinished }) => {
      const server = await startServer(fault, onTestFinished, idle);
      const [watched] = await watch(server, { views: VIEWS.slice(0, 1), isProbed: true });
      expect(watched?.verdicts).toEqual([]);
    },
  );
});

describe.concurrent('a server that is not wedged', () => {
  it.for(['none', 'slow', 'prefill'])('is not called so: %s', async (fault, { onTestFinished }) => {
    const server = await startServer(fault, onTestFinished);
    const [watched] = await watch(server, { views: VIEWS.slice(0, 1) });
    expect(watched?.verdicts).toEqual([]);
  });
});
