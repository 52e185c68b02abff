import { join } from 'node:path';
import type { Seconds } from '../../../src/core/types.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';
import type { Behind } from './running.ts';
import type { Runtime } from './tools.ts';

const TARGETS_DIR = join(import.meta.dirname, '..', '..', 'targets');

/** A loop with nothing to do that says how late its 1 ms timer is. */
export function startHeartbeat(
  runtime: Runtime,
  seconds: Seconds,
  behind: Behind,
): Promise<Running> {
  const [interpreter, program] =
    runtime === 'python'
      ? [interpreters()[0]?.path ?? 'python3', join(TARGETS_DIR, 'python', 'heartbeat.py')]
      : [process.execPath, join(TARGETS_DIR, 'node', 'heartbeat.js')];
  const [command = '', ...args]: readonly string[] = [...behind, interpreter, program];
  return startReady(command, [...args, String(seconds)]);
}
