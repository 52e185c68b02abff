import { join } from 'node:path';
import { median } from '../../src/core/statistics.ts';
import { interpreters } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';

/* Saturated targets that say how much integer work they get done, and how that is read. */

/** What a target says every tenth of a second. */
interface Window {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly cpu_ns: number;
  readonly work: number;
}

/** Work per nanosecond of time, and of the target's own CPU. */
export interface Rate {
  readonly wall: number;
  readonly cpu: number;
}

const TARGETS_DIR = join(import.meta.dirname, '..', 'targets');
const NODE_PROGRAM = join(TARGETS_DIR, 'node', 'integer-loop.js');

/** asyncio callbacks of about a millisecond, one after the other. */
export function startPythonWork(seconds: number, behind: readonly string[] = []): Promise<Running> {
  const python = interpreters()[0]?.path ?? 'python3';
  const program = join(TARGETS_DIR, 'python', 'integer_loop.py');
  return start([...behind, python, program], seconds);
}

/** The same with setImmediate. */
export function startNodeWork(seconds: number, behind: readonly string[] = []): Promise<Running> {
  return start([...behind, process.execPath, NODE_PROGRAM], seconds);
}

function start([command = '', ...args]: readonly string[], seconds: number): Promise<Running> {
  return startReady(command, [...args, '--shape', 'loop', '--seconds', String(seconds)]);
}

/**
 * What was done between two moments of CLOCK_MONOTONIC in nanoseconds, by the median of the windows of a tenth of a second: a host that
 * takes the machine's core away for a moment makes outliers.
 */
export function rateOf(target: Running, from: number, to: number): Rate {
  const windows = target.lines
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Window)
    .filter(({ start_ns: start, end_ns: end }) => start >= from && end <= to);
  return {
    wall: median(windows.map(({ work, start_ns: start, end_ns: end }) => work / (end - start))),
    cpu: median(windows.map(({ work, cpu_ns: cpu }) => work / cpu)),
  };
}
