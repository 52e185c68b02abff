import { describe, expect, it } from 'vitest';
import { watchedSignals } from '../../src/platform/libuv-signals.ts';
import { ProcessMemory } from '../../src/platform/memory.ts';
import { nodes } from '../environments.ts';
import { start, startShell, until } from './processes.ts';

const SIGUSR1 = 10;
const SIGUSR2 = 12;
const SIGTERM = 15;
const SIGCHLD = 17;

function signalsOf(pid: number): ReturnType<typeof watchedSignals> {
  const memory = new ProcessMemory(pid);
  try {
    return watchedSignals(pid, memory);
  } finally {
    memory.close();
  }
}

function setOf(pid: number): ReadonlySet<number> {
  const watched = signalsOf(pid);
  if (!watched.ok) throw new Error(watched.reason);
  return watched.signals;
}

describe.each(await nodes())('signals that a program on Node $version handles', ({ path }) => {
  const run = (script: string) =>
    start(path, ['-e', `${script};process.stdin.resume();process.stdout.write('ready\\n')`]);

  it('are none at first, though Node itself catches the one that opens its inspector', async () => {
    expect(setOf((await run('')).pid)).toEqual(new Set());
  });

  it('are those it listens to, in whatever number', async () => {
    const { pid } = await run(
      "for (const name of ['SIGUSR1','SIGUSR2','SIGTERM','SIGHUP','SIGINT','SIGCONT','SIGPIPE']) process.on(name, () => {})",
    );
    const signals = setOf(pid);
    expect(signals).toEqual(new Set([SIGUSR1, SIGUSR2, SIGTERM, 1, 2, 18, 13]));
  });

  it('are those of libuv itself too', async () => {
    const { pid } = await run("require('node:child_process').spawn('sleep', ['60']).unref()");
    expect(setOf(pid)).toEqual(new Set([SIGCHLD]));
  });

  it('are no more when the listener is gone', async () => {
    const { pid, child } = await run(
      "process.on('SIGUSR1', () => {});process.stdin.once('data', () => process.removeAllListeners('SIGUSR1'))",
    );
    expect(setOf(pid)).toEqual(new Set([SIGUSR1]));
    child.stdin?.write('go\n');
    await until(() => setOf(pid).size === 0);
  });
});

describe('signals of another program', () => {
  it('are not made up', async () => {
    const { pid } = await startShell("trap '' USR1; echo ready; exec sleep 60");
    expect(signalsOf(pid)).toMatchObject({ ok: false });
  });
});
