import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';
import { readProc } from '../../src/platform/proc.ts';
import { parseSchedstat } from '../../src/platform/proc-parse.ts';
import { threadWait } from '../../src/platform/thread-wait.ts';
import type { Look, LookContext, Looking, LookMoment, LookTurn } from './python-watch.ts';
import type { PythonReader } from './reader.ts';
import type { PythonThread } from './thread-states.ts';

/**
 * Where each thread of a Python process is, now and then: not to find what blocks (the sampler does that), but to lay processes that do the same
 * work side by side. A hung server is quiet: only its stacks say where it waits.
 */

/** The first look, once the run has settled; a process that has just started is still importing. */
const FIRST_AFTER: Seconds = 1;
/** A look reads some 20 kB of the target. */
const EVERY: Seconds = 30;
/** How often it is asked whether the main thread works; where it does, where it is: what a GPU waits for is found there. */
const BUSY_EVERY: Seconds = 1;
const BUSY_SHARE: Ratio = 0.5;
/** Such looks of one process in one run: ten minutes of them. */
const BUSY_LOOKS = 600;
/** What is kept of a process: thread pools are long lists of the same. */
const THREADS_KEPT = 64;
const FRAMES_KEPT = 24;

export const THREAD_LOOK: Look = {
  name: 'threads',
  metrics: [],
  firstAfter: FIRST_AFTER,
  begin: (context) => new ThreadStacks(context).turn,
};

class ThreadStacks {
  readonly #context: LookContext;
  readonly #load: MainThreadLoad;
  #due: Seconds = 0;
  #busyLooks = 0;

  constructor(context: LookContext) {
    this.#context = context;
    this.#load = new MainThreadLoad(context.pid);
  }

  readonly turn: Looking = (moment) => this.#turn(moment);

  async *#turn({ now, isLast }: LookMoment): LookTurn {
    const { pid, reader, clock } = this.#context;
    const isBusy = this.#load.shareSince(now) >= BUSY_SHARE && this.#busyLooks < BUSY_LOOKS;
    // The last look is at the very end: what hung by then hangs there.
    const isDue = now >= this.#due || isLast;
    if (!isDue && !isBusy) return BUSY_EVERY;
    const body = isDue ? lookAtAll(reader, pid) : lookAtMain(reader, pid);
    if (body === null) return null;
    if (isDue) this.#due = now + EVERY;
    else this.#busyLooks++;
    yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.threads, body };
    return BUSY_EVERY;
  }
}

/** How much of a core the main thread had since it was last asked. */
class MainThreadLoad {
  readonly #path: string;
  #cpu = Number.NaN;
  #at: Seconds = 0;

  constructor(pid: number) {
    this.#path = `/proc/${pid}/task/${pid}/schedstat`;
  }

  /** 0 the first time, and where the kernel does not count. */
  shareSince(now: Seconds): Ratio {
    const cpu = parseSchedstat(readProc(this.#path) ?? '')?.onCpuNs ?? Number.NaN;
    const share = (cpu - this.#cpu) / 1e9 / (now - this.#at);
    this.#cpu = cpu;
    this.#at = now;
    return Number.isFinite(share) ? share : 0;
  }
}

/** Null when the process is gone, or none of its threads could be read. */
function lookAtAll(reader: PythonReader, pid: number): unknown {
  const threads = reader.threads().filter(({ state }) => state === 'ok');
  return threads.length === 0 ? null : bodyOf(pid, threads);
}

/** All but the main thread, those that were started last first; null where there is none to be read. */
export function lookAtOthers(reader: PythonReader, pid: number): unknown {
  const threads = reader
    .threads()
    .filter(({ state, tid }) => state === 'ok' && tid !== pid)
    .toSorted((a, b) => b.tid - a.tid);
  return threads.length === 0 ? null : bodyOf(pid, threads);
}

/** Null when it is gone; the stack of a thread that moves too fast is empty. */
function lookAtMain(reader: PythonReader, pid: number): unknown {
  const main = reader.stack(pid);
  return main === null ? null : bodyOf(pid, [main]);
}

function bodyOf(pid: number, threads: readonly PythonThread[]): unknown {
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
