import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { Seconds } from '../../core/types.ts';

/*
 * Who goes first where a worker has to share its core: an answer that has come cannot wait, whatever else this process does can. The kernel lets a
 * thread of the same priority keep a core for a tick, 4 ms often, and V8's helpers (they compile, and clear memory away) did so ten times a second:
 * the 99th percentile of TTFT was 5 ms too long and is 1 (256 streams on one core, medians of 4 rounds).
 */

/**
 * Niceness of everything else beside the workers', a tenth of their share. Not less for the main thread, or on a machine where the server takes
 * every core, Ctrl-C would not be heard; and not for the helpers at first, while they compile what the workers run.
 */
const BEHIND = 10;
/** Of the helpers, once that is compiled: a seventieth. (With that from the start, a busy core never gets there.) */
const FAR_BEHIND = 19;
const COMPILED_AFTER: Seconds = 1.5;

/** Linux has no lower priority. */
const LOWEST = 19;

/** The threads that Node itself has, the main thread left out; to be asked before any other is started. Empty where the kernel does not tell. */
export function helperThreads(): readonly number[] {
  try {
    const threads = readdirSync('/proc/self/task').map(Number);
    return threads.filter((thread) => thread !== process.pid);
  } catch {
    return [];
  }
}

/**
 * Lets the workers, which keep the priority they began with, go before the main thread and these helpers; the returned function takes it back
 * where the rights suffice.
 */
export function stepBack(helpers: readonly number[]): () => void {
  const before = getPriority();
  const lower = (thread: number, by: number): void => {
    try {
      // Linux: acts on one thread, and the main thread's id is that of the process.
      setPriority(thread, Math.min(LOWEST, before + by));
    } catch {
      // The thread has ended, or this raises it again, which takes a right that few have.
    }
  };
  const lowerAll = (by: number): void => {
    for (const helper of helpers) lower(helper, by);
  };
  lower(process.pid, BEHIND);
  lowerAll(BEHIND);
  const settled = setTimeout(() => lowerAll(FAR_BEHIND), COMPILED_AFTER * 1e3);
  settled.unref();
  return () => {
    clearTimeout(settled);
    lower(process.pid, 0);
    lowerAll(0);
  };
}
