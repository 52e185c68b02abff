import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { interpreters } from '../environments.ts';
import { CAPTURE, FakeSmi } from '../nvidia-smi/fake-smi.ts';
import { startReady } from '../targets/harness.ts';
import { canRun } from '../programs.ts';
import { type FindingDocument, parseReport, runCli, verdicts } from './cli.ts';

/** A server that is wedged for real (test/targets/python/wedging_server.py), from outside: named within 40 s, with and without the right to its memory. */

const PROGRAM = join(import.meta.dirname, '..', 'targets', 'python', 'wedging_server.py');
const [python = '', home = ''] = execFileSync(
  interpreters()[0]?.path ?? 'python3',
  ['-c', 'import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)'],
  { encoding: 'utf8' },
).split('\n');

/** Long enough for a wedge that begins with the first seconds of the run to be likely. */
const WATCH_S = 38;
/** After the server's start: trace has begun by then, also on a busy machine. */
const FAULT_S = 8;

interface Server {
  readonly pid: number;
  readonly engine: number;
  readonly workers: readonly number[];
}

type Finished = Pick<TestContext, 'onTestFinished'>['onTestFinished'];

async function startServer(
  fault: string,
  { onTestFinished }: { readonly onTestFinished: Finished },
): Promise<Server> {
  // exec -a: the name by which a server is recognised.
  const flags = ['--fault', fault, '--fault-s', String(FAULT_S), '--seconds', '120'];
  const running = await startReady('bash', [
    '-c',
    'export PYTHONHOME="$1"; shift; exec -a "/usr/bin/vllm serve" "$@"',
    'bash',
    home,
    python,
    PROGRAM,
    ...flags,
    '--port',
    String(20_000 + Math.floor(Math.random() * 20_000)),
  ]);
  onTestFinished(() => running.stop());
  const [engine = 0, ...workers] = (running.lines.find((line) => line.startsWith('PIDS')) ?? '')
    .split(' ')
    .slice(1)
    .map(Number);
  return { pid: running.pid, engine, workers };
}

interface Watched {
  readonly wedge: FindingDocument | undefined;
  readonly verdicts: readonly FindingDocument[];
  readonly code: number | null;
}

async function watch(
  { pid }: Server,
  { behind = [], path = '' }: { readonly behind?: readonly string[]; readonly path?: string } = {},
): Promise<Watched> {
  const args = ['attach', String(pid), '-d', String(WATCH_S), '--no-recording', '--json'];
  const run = await runCli(args, {
    limitS: WATCH_S + 30,
    command: [...behind, process.execPath],
    env: path === '' ? {} : { PATH: `${path}:${process.env['PATH'] ?? ''}` },
  });
  const report = parseReport(run);
  const found = verdicts(report);
  return { wedge: found.find(({ kind }) => kind === 'wedge'), verdicts: found, code: run.code };
}

const BLIND = ['setpriv', '--inh-caps=-sys_ptrace', '--bounding-set=-sys_ptrace'] as const;
/** Taking a capability from root takes root. */
const CAN_BLIND = process.getuid?.() === 0 && canRun('setpriv', '--version');
const VIEWS = [
  { view: 'its memory readable', behind: [] },
  ...(CAN_BLIND ? [{ view: 'CAP_SYS_PTRACE dropped', behind: BLIND }] : []),
] as const;

describe.concurrent.each(VIEWS)('a wedged server, $view', ({ behind }) => {
  it('is told by a stopped engine', async ({ onTestFinished }) => {
    const server = await startServer('none', { onTestFinished });
    const timer = setTimeout(() => process.kill(server.engine, 'SIGSTOP'), FAULT_S * 1e3);
    onTestFinished(() => clearTimeout(timer));
    const { wedge, code } = await watch(server, { behind });
    expect(wedge).toMatchObject({
      code: 'TRC201',
      mechanism: 'stopped process',
      pid: server.engine,
    });
    expect(wedge?.confidence).toBe('likely');
    expect(code).toBe(1);
  });

  it('is told by a worker that is deadlocked', async ({ onTestFinished }) => {
    const server = await startServer('deadlock', { onTestFinished });
    const { wedge } = await watch(server, { behind });
    expect(wedge?.confidence).toBe('likely');
    if (behind.length > 0) return expect(wedge?.mechanism).toBe('lost wake-up');
    expect(wedge).toMatchObject({ mechanism: 'deadlock', pid: server.workers.at(-1) });
    expect(wedge?.where[0]?.function).toBe('save_cache');
  });

  it('is told by a message that never comes', async ({ onTestFinished }) => {
    const { wedge } = await watch(await startServer('lost', { onTestFinished }), { behind });
    expect(wedge).toMatchObject({ mechanism: 'lost wake-up', confidence: 'likely' });
  });

  it('is told by a GPU that is busy and draws nothing', async ({ onTestFinished }) => {
    const server = await startServer('lost', { onTestFinished });
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
    const { wedge } = await watch(server, { behind, path: smi.folder });
    expect(wedge).toMatchObject({ mechanism: 'kernel never returned', confidence: 'likely' });
  });
});

describe.concurrent('a server that is not wedged', () => {
  it.each(['none', 'slow', 'prefill'])('is not called so: %s', async (fault) => {
    // Nothing to clean up by the test's own context: the server ends with its input.
    const finished: (() => unknown)[] = [];
    try {
      const server = await startServer(fault, {
        onTestFinished: (fn) => void finished.push(fn as () => unknown),
      });
      const { verdicts: found } = await watch(server);
      expect(found).toEqual([]);
    } finally {
      for (const end of finished) await end();
    }
  });
});
