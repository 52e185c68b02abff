import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pythonEnvironment } from '../environments.ts';
import { readTruth, type TruthBlock } from '../truth/truth.ts';

/** The real services with planted faults, by what they run on. */
export const TARGETS = ['asyncio', 'fastapi-asyncio', 'fastapi-uvloop', 'node-http'] as const;
export type TargetName = (typeof TARGETS)[number];

/** The kinds of fault every target can make. */
export const KINDS = ['spin', 'sleep', 'file', 'http', 'exec'] as const;

/** What a target does; each is a flag that `targets/python/plan.py` explains. */
export interface TargetOptions {
  readonly kinds?: readonly string[];
  readonly durations?: readonly number[];
  readonly reps?: number;
  readonly seed?: number;
  readonly spacingMs?: number;
  readonly jitterMs?: number;
  readonly startS?: number;
  readonly seconds?: number;
  readonly saturated?: boolean;
  readonly healthy?: boolean;
  readonly plantS?: number;
  /** File for the memory canary's latencies (Python targets only). */
  readonly canary?: string;
  /** Interpreter or Node binary; the machine's own by default. */
  readonly runtime?: string;
  /** Flags for the runtime itself, such as `--inspect=0`. */
  readonly runtimeFlags?: readonly string[];
  /** A command that becomes the runtime, such as `nsenter`. */
  readonly behind?: readonly string[];
}

/** A process that said READY. */
export interface Running {
  readonly pid: number;
  readonly port: number;
  readonly child: ChildProcess;
  /** Lines of standard output after READY, as they come. */
  readonly lines: string[];
  readonly exited: Promise<number | null>;
  /** Kills it if it still runs, and waits until it is gone. */
  stop(): Promise<void>;
}

export interface RunningTarget extends Running {
  /** Resolves when the plan is through. */
  readonly done: Promise<void>;
  truth(): TruthBlock[];
}

const HERE = import.meta.dirname;
/** A cold FastAPI import on a busy machine takes seconds; more is a failure. */
const READY_TIMEOUT_MS = 60_000;

/** Starts a command that prints `READY <pid> <port>` and waits for that line. */
export async function startReady(command: string, args: readonly string[]): Promise<Running> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const lines: string[] = [];
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  child.stdin.on('error', () => {}); // a target that does not read its input
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const ready = await new Promise<string>((resolve, reject) => {
    const fail = (why: string): void =>
      reject(new Error(`${command} ${args.join(' ')}: ${why}\n${errors}`));
    const timer = setTimeout(() => fail('not ready in time'), READY_TIMEOUT_MS);
    child.on('error', (error) => fail(error.message));
    child.on('close', (code) => fail(`ended with ${String(code)} before it was ready`));
    createInterface(child.stdout).on('line', (line) => {
      lines.push(line);
      if (!line.startsWith('READY ')) return;
      clearTimeout(timer);
      resolve(line);
    });
  });
  const [, pid, port] = ready.split(' ').map(Number);
  if (pid === undefined || port === undefined) throw new Error(`not understood: ${ready}`);
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
  };
  return { pid, port, child, lines, exited, stop };
}

/** Starts a target with its helper server, and leaves nothing behind when it is stopped. */
export async function startTarget(
  name: TargetName,
  options: TargetOptions = {},
): Promise<RunningTarget> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-target-'));
  const truthPath = join(folder, 'truth.jsonl');
  const helper = options.kinds?.includes('http')
    ? await startReady(process.execPath, [join(HERE, 'slow-server.js')])
    : undefined;
  const stopAll = async (target?: Running): Promise<void> => {
    await target?.stop();
    await helper?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { command: runtime, args: before } = await commandOf(name, options);
    const [command = runtime, ...args] = [...(options.behind ?? []), runtime, ...before];
    const flags = [
      ...planFlags(options),
      '--truth',
      truthPath,
      '--helper-port',
      String(helper?.port ?? 0),
    ];
    const target = await startReady(command, [...args, ...flags]);
    return {
      ...target,
      done: until(target, 'DONE'),
      truth: () => readTruth(truthPath),
      stop: () => stopAll(target),
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/** Bounded real HTTP to a target, from a process of its own. */
export function startTraffic(
  port: number,
  options: { rate: number; seconds: number; path?: string },
): Promise<Running> {
  const { rate, seconds, path = '/' } = options;
  const flags = { port, path, rate, count: Math.ceil(rate * seconds) };
  return startReady(process.execPath, [
    join(HERE, 'traffic.js'),
    ...Object.entries(flags).flatMap(([key, value]) => [`--${key}`, String(value)]),
  ]);
}

/** A process that eats one core. */
export function startHog(seconds: number): Promise<Running> {
  return startReady(process.execPath, [join(HERE, 'hog.js'), String(seconds)]);
}

/** Resolves at a line of standard output, rejects when the process ends without it. */
function until(target: Running, line: string): Promise<void> {
  const seen = new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (target.lines.includes(line)) resolve();
    };
    target.child.stdout?.on('data', () => setImmediate(look));
    target.child.on('close', () => {
      look();
      reject(new Error(`the target ended without ${line}`));
    });
  });
  seen.catch(() => {}); // only a failure for whoever waits for it
  return seen;
}

async function commandOf(
  name: TargetName,
  options: TargetOptions,
): Promise<{ command: string; args: string[] }> {
  const flags = options.runtimeFlags ?? [];
  switch (name) {
    case 'node-http':
      return {
        command: options.runtime ?? process.execPath,
        args: [...flags, join(HERE, 'node', 'http-server.js')],
      };
    case 'asyncio': {
      const { python } = await pythonEnvironment([], options.runtime);
      return { command: python, args: [...flags, join(HERE, 'python', 'asyncio_server.py')] };
    }
    case 'fastapi-asyncio':
    case 'fastapi-uvloop': {
      const { python } = await pythonEnvironment(
        ['fastapi', 'uvicorn', 'uvloop', 'httptools'],
        options.runtime,
      );
      const loop = name === 'fastapi-uvloop' ? 'uvloop' : 'asyncio';
      return {
        command: python,
        args: [...flags, join(HERE, 'python', 'fastapi_server.py'), '--loop', loop],
      };
    }
  }
}

function planFlags(options: TargetOptions): string[] {
  const values: Record<string, string | undefined> = {
    kinds: options.kinds?.join(','),
    durations: options.durations?.join(','),
    reps: options.reps?.toString(),
    seed: options.seed?.toString(),
    'spacing-ms': options.spacingMs?.toString(),
    'jitter-ms': options.jitterMs?.toString(),
    'start-s': options.startS?.toString(),
    seconds: options.seconds?.toString(),
    'plant-s': options.plantS?.toString(),
    canary: options.canary,
  };
  const flags = Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [`--${key}`, value],
  );
  if (options.saturated) flags.push('--saturated');
  if (options.healthy) flags.push('--healthy');
  return flags;
}
