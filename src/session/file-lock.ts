import { closeSync, openSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { readBeginSync } from '../platform/outside-file.ts';
import { readStat } from '../platform/proc.ts';

/** One writer at a time, across processes: a file that is there while somebody writes, with who it is. */

/** A writer holds it for milliseconds. */
const WAIT_LIMIT: Seconds = 10;
const LOOK_EVERY_MS = 4;
/** A lock that names nobody is another program's, or was cut while it was written: taken over when it is that old. */
const NAMELESS_LIMIT: Seconds = 5;

/** Does `work` while no other writer is at it. Throws a TraceError when the lock does not come free. */
export async function withLock<T>(path: string, work: () => T): Promise<T> {
  await acquire(path);
  try {
    return work();
  } finally {
    unlinkQuietly(path);
  }
}

async function acquire(path: string): Promise<void> {
  const until = Date.now() + WAIT_LIMIT * 1e3;
  for (;;) {
    try {
      const file = openSync(path, 'wx', 0o600);
      writeSync(file, `${process.pid} ${readStat(process.pid)?.startTicks ?? 0}\n`);
      closeSync(file);
      return;
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw unwritable(path, error);
    }
    if (isStale(path)) {
      removeStale(path);
      continue;
    }
    if (Date.now() > until) {
      throw new TraceError(
        'ERR_LOCKED',
        `another process is writing: ${printable(path)} is there`,
        {
          exitCode: EXIT.invalid,
          remedy: 'Run it again; if no trace is running, remove that file.',
        },
      );
    }
    await sleep(LOOK_EVERY_MS * (0.5 + Math.random()));
  }
}

/** Two that find it stale at once must not remove each other's new one: it is only removed while it is the one that was looked at. */
function removeStale(path: string): void {
  const guard = `${path}.stale`;
  try {
    closeSync(openSync(guard, 'wx', 0o600));
  } catch {
    // Somebody else is at it, or died at it: the guard grows old as a nameless lock does.
    if (isOld(guard)) unlinkQuietly(guard);
    return;
  }
  try {
    if (isStale(path)) unlinkQuietly(path);
  } finally {
    unlinkQuietly(guard);
  }
}

/** Whether the process that holds it is gone. */
function isStale(path: string): boolean {
  let text: string;
  try {
    text = readBeginSync(path, 64).toString('latin1');
  } catch {
    return false; // it has just been let go
  }
  const [, pid, startTicks] = /^(\d{1,10}) (\d{1,20})\n/.exec(text) ?? [];
  if (pid === undefined) return isOld(path);
  return readStat(Number(pid))?.startTicks !== Number(startTicks);
}

function isOld(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs > NAMELESS_LIMIT * 1e3;
  } catch {
    return false;
  }
}

function unlinkQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Another was faster.
  }
}

function unwritable(path: string, error: unknown): TraceError {
  return new TraceError(
    'ERR_UNWRITABLE',
    `cannot write beside ${printable(path)}: ${errorCode(error)}`,
    {
      exitCode: EXIT.usage,
      remedy: 'Choose a folder that you may write to with --dir.',
      cause: error,
    },
  );
}
