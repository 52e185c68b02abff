import { setTimeout as sleep } from 'node:timers/promises';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type {
  Availability,
  Collector,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Seconds,
} from '../../src/core/types.ts';
import { threadWait } from '../../src/platform/thread-wait.ts';
import { openPython, type PythonReader } from './reader.ts';

/**
 * Where each thread of a Python process is, now and then: not to find what blocks (the sampler does that), but to lay processes that do the same
 * work side by side. A hung server is quiet: only its stacks say where it waits.
 */

/** The first look, once the run has settled; a process that has just started is still importing. */
const FIRST_AFTER: Seconds = 1;
/** A look reads some 20 kB of the target. */
const EVERY: Seconds = 30;
/** What is kept of a process: thread pools are long lists of the same. */
const THREADS_KEPT = 64;
const FRAMES_KEPT = 24;

export class ThreadStacks implements Collector<ProcessTarget> {
  readonly name = 'threads';
  readonly metrics: readonly Metric[] = [];
  #reader: PythonReader | null = null;

  async probe({ pid }: ProcessTarget): Promise<Availability> {
    const opened = openPython(pid);
    if (!opened.ok) return { available: false, reason: opened.reason, remedy: opened.remedy };
    this.#reader = opened.reader;
    return { available: true };
  }

  async *observe(
    { pid }: ProcessTarget,
    { signal, clock }: ObserveContext,
  ): AsyncIterable<Observation> {
    const reader = this.#reader;
    if (reader === null) return;
    try {
      for (let pause = FIRST_AFTER; ; pause = EVERY) {
        await sleep(pause * 1e3, undefined, { signal }).catch(() => {});
        // The last look is at the very end: what hung by then hangs there.
        const body = look(reader, pid);
        if (body === null) return;
        yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.threads, body };
        if (signal.aborted) return;
      }
    } finally {
      reader.close();
    }
  }
}

/** Null when the process is gone, or none of its threads could be read. */
function look(reader: PythonReader, pid: number): unknown {
  const threads = reader.threads().filter(({ state }) => state === 'ok');
  if (threads.length === 0) return null;
  return {
    pid,
    count: threads.length,
    threads: threads.slice(0, THREADS_KEPT).map(({ tid, holdsGil, frames }) => ({
      tid,
      holdsGil,
      wait: threadWait(pid, tid),
      frames: frames.slice(0, FRAMES_KEPT),
    })),
  };
}
