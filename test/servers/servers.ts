import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Seconds } from '../../src/core/types.ts';
import { startGroup } from '../process-group.ts';
import { startReady } from '../targets/harness.ts';
import { fastifyPackages, llamaServer, pythonServers } from './install.ts';

/** Real servers with our handlers in them, or with nothing of ours at all, each on a free port of the loopback address. */

const HERE = import.meta.dirname;
/** A server is killed then, whatever became of the test that started it. */
const LIFETIME: Seconds = 150;
/** A cold import on a busy machine takes seconds; more is a failure. */
const READY_TIMEOUT_MS = 60_000;

export interface Server {
  readonly pid: number;
  readonly port: number;
  /** Kills it with all that it started, and waits until it is gone. */
  stop(): Promise<void>;
}

export async function startAiohttp(): Promise<Server> {
  const { python } = await pythonServers();
  return start({ command: [python, join(HERE, 'aiohttp_server.py')], ready: OUR_READY });
}

/** `flags` are Node's own, such as `--inspect=0`. */
export async function startFastify(flags: readonly string[] = []): Promise<Server> {
  const packages = await fastifyPackages();
  const program = join(HERE, 'fastify', 'server.js');
  return start({ command: [process.execPath, ...flags, program, packages], ready: OUR_READY });
}

/** `pid` is the master's; `workers` have all said that they serve. */
export async function startGunicorn(
  count: number,
): Promise<Server & { readonly workers: readonly number[] }> {
  const { python } = await pythonServers();
  const options = ['--config', join(HERE, 'gunicorn.conf.py'), '--workers', String(count)];
  const workers: number[] = [];
  const server = await start({
    command: [python, '-m', 'gunicorn', ...options, '--chdir', HERE, 'asgi:app'],
    ready: OUR_READY,
    onLine: (line) => {
      if (line.startsWith('WORKER ')) workers.push(Number(line.split(' ')[1]));
      return workers.length >= count;
    },
  });
  return { ...server, workers };
}

/** Four slots of 2,048 tokens; with `/metrics`. On a free port unless one is named. */
export async function startLlama(port = 0, lifetime: Seconds = LIFETIME): Promise<Server> {
  const { program, libraries, model } = await llamaServer();
  const where = ['--host', '127.0.0.1', '--port', String(port)];
  const flags = [...where, '--alias', 'tiny', '--offline', '--no-ui', '--metrics'];
  const size = ['-ngl', '0', '-t', '1', '-tb', '1', '-np', '4', '-c', '8192'];
  return start({
    command: [program, '-m', model, ...flags, ...size],
    env: { LD_LIBRARY_PATH: libraries },
    lifetime,
    ready: /listening on http:\/\/127\.0\.0\.1:(?<port>\d+)/,
  });
}

/** What our own servers print once they serve. */
const OUR_READY = /^READY \d+ (?<port>\d+)$/;

interface StartOptions {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly lifetime?: Seconds;
  readonly ready: RegExp;
  /** Sees every line; until it has returned true the server is not ready. */
  readonly onLine?: (line: string) => boolean;
}

async function start(options: StartOptions): Promise<Server> {
  const { command, env = {}, lifetime = LIFETIME, ready, onLine } = options;
  // The shell says its pid and becomes the server.
  const shell = ['sh', '-c', 'echo "PID $$"; exec "$@"', 'sh'];
  const { child, stop } = startGroup([...shell, ...command], { lifetime, env });
  const said: string[] = [];
  try {
    return await new Promise<Server>((resolve, reject) => {
      const fail = (why: string): void =>
        reject(new Error(`${command.join(' ')}: ${why}\n${said.slice(-30).join('\n')}`));
      const timer = setTimeout(() => fail('not ready in time'), READY_TIMEOUT_MS);
      child.on('error', (error) => fail(error.message));
      child.on('close', (code) => fail(`ended with ${String(code)} before it was ready`));
      let pid: number | null = null;
      let port: number | null = null;
      let isComplete = onLine === undefined;
      for (const stream of [child.stdout, child.stderr]) {
        createInterface(stream).on('line', (line) => {
          said.push(line);
          if (line.startsWith('PID ')) pid ??= Number(line.slice(4));
          const found = ready.exec(line)?.groups?.['port'];
          if (found !== undefined) port ??= Number(found);
          if (onLine !== undefined) isComplete = onLine(line) || isComplete;
          if (pid === null || port === null || !isComplete) return;
          clearTimeout(timer);
          resolve({ pid, port, stop });
        });
      }
    });
  } catch (error) {
    await stop();
    throw error;
  }
}

export interface Completions {
  /** Resolves when the time is over: how many answers were streamed, and how many were not. */
  done(): Promise<{ readonly streams: number; readonly tokens: number; readonly failed: number }>;
  stop(): Promise<void>;
}

/** Clients that each stream one answer after another, in a process of their own. */
export async function startCompletions(
  port: number,
  options: {
    readonly clients: number;
    readonly seconds: Seconds;
    /** Between the end of an answer and the next question. */
    readonly pause?: Seconds;
  },
): Promise<Completions> {
  const flags = { port, ...options };
  const running = await startReady(process.execPath, [
    join(HERE, 'completions.js'),
    ...Object.entries(flags).flatMap(([key, value]) => [`--${key}`, String(value)]),
  ]);
  const done = async (): ReturnType<Completions['done']> => {
    await running.exited;
    return JSON.parse(running.lines.at(-1) ?? '') as Awaited<ReturnType<Completions['done']>>;
  };
  return { done, stop: () => running.stop() };
}
