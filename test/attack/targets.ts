import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Running, startReady } from '../targets/harness.ts';

/* The processes that trace is aimed at; they wait until they are stopped. */

const WAITING_PYTHON = `
import asyncio, os
print("READY", os.getpid(), 0, flush=True)
asyncio.run(asyncio.sleep(86400))
`;
const WAITING_NODE = "console.log('READY', process.pid, 0); setInterval(() => {}, 50)";
const HERE = import.meta.dirname;

export const waitingPython = (): Promise<Running> => startReady('python3', ['-c', WAITING_PYTHON]);

export const waitingNode = (): Promise<Running> =>
  startReady(process.execPath, ['-e', WAITING_NODE]);

/** A Node process that answers as an inspector, with the lines of a file. */
export const falseInspector = (port: number, file: string): Promise<Running> =>
  startReady(process.execPath, [
    `--inspect-port=${port}`,
    join(HERE, 'inspector.mjs'),
    String(port),
    file,
  ]);

/** Clock ticks after boot at which a process began: field 22 of its stat. */
export const startTicksOf = (pid: number): number =>
  Number(
    readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')[19],
  );
