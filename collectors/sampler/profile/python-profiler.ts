import type { Worker } from 'node:worker_threads';
import type { Frame, ProcessTarget, Ratio, Seconds } from '../../../src/core/types.ts';
import { startThread } from '../../../src/platform/standalone.ts';
import type { PythonRefusal } from '../../python/locate.ts';
import {
  PROFILE_CELL,
  type ProfileBatch,
  type ProfileCommand,
  type ProfileCounters,
  type ProfileMessage,
  type ProfileSettings,
  RUN_FIELDS,
} from './messages.ts';

/** Profiles of Python processes, taken by a thread of our own. */

/** How long the thread may take to hand over what it saw last. */
const STOP_LIMIT: Seconds = 5;

/** What came of opening a process. */
export type PythonOpened = { readonly ok: true; readonly version: string } | PythonRefusal;

/** A stretch in which a thread had one stack, in times of CLOCK_MONOTONIC. */
export interface SeenRun {
  readonly pid: number;
  readonly tid: number;
  readonly frames: readonly Frame[];
  readonly from: Seconds;
  readonly to: Seconds;
  readonly count: number;
  readonly weight: Seconds;
}

/** What is told while it goes on. */
export interface ProfileListener {
  run(run: SeenRun): void;
  thread(facts: ProfileBatch['threads'][number]): void;
  /** A process has ended. */
  gone(pid: number): void;
}

const NOTHING_SEEN: ProfileCounters = {
  rounds: 0,
  late: 0,
  samples: 0,
  partial: 0,
  errors: {},
  withoutCode: 0,
};

export class PythonProfiler {
  counters: ProfileCounters = NOTHING_SEEN;
  /** Looks a second at last, and the share of a core that asked for fewer than were wanted. */
  rate: number;
  loweredFor: Ratio | null = null;
  /** Why there is no more; null while there is. */
  failure: string | null = null;
  readonly #cells: Int32Array;
  readonly #worker: Worker;
  readonly #listener: ProfileListener;
  readonly #waiting = new Map<number, (opened: PythonOpened) => void>();
  readonly #threads = new Map<number, { readonly pid: number; readonly tid: number }>();
  readonly #stacks: (readonly Frame[])[] = [];
  readonly #ended: Promise<void>;

  constructor(settings: ProfileSettings, listener: ProfileListener) {
    const buffer = new SharedArrayBuffer(PROFILE_CELL.count * Int32Array.BYTES_PER_ELEMENT);
    this.rate = settings.rate;
    this.#cells = new Int32Array(buffer);
    this.#listener = listener;
    const workerData = { cells: buffer, settings };
    const worker = startThread(new URL('./worker.js', import.meta.url), { workerData });
    this.#worker = worker;
    worker.on('message', (message: ProfileMessage) => this.#receive(message));
    this.#ended = new Promise((resolve) => {
      worker.on('error', (error) => {
        this.failure = `the profiling thread failed: ${error.message}`;
        resolve();
      });
      worker.on('exit', () => resolve());
    });
  }

  /** Opens a process for reading; it is looked at from `begin` on, or at once where that was called. */
  open({ pid, startTicks }: ProcessTarget): Promise<PythonOpened> {
    return new Promise((resolve) => {
      this.#waiting.set(pid, resolve);
      this.#command({ kind: 'open', pid, startTicks });
    });
  }

  begin(): void {
    this.#command({ kind: 'go' });
  }

  /** Ends with what was seen last; safe to call twice. Never rejects. */
  async stop(): Promise<void> {
    this.#command({ kind: 'stop' });
    const timer = setTimeout(() => void this.#worker.terminate(), STOP_LIMIT * 1e3);
    await this.#ended;
    clearTimeout(timer);
  }

  #command(command: ProfileCommand): void {
    this.#worker.postMessage(command);
    Atomics.add(this.#cells, PROFILE_CELL.commands, 1);
    Atomics.notify(this.#cells, PROFILE_CELL.commands);
  }

  #receive(message: ProfileMessage): void {
    switch (message.kind) {
      case 'opened':
        this.#answer(message.pid, { ok: true, version: message.version });
        break;
      case 'refused':
        this.#answer(message.pid, message.refusal);
        break;
      case 'batch':
        this.#take(message);
        break;
      case 'ended':
        break;
      default:
        message satisfies never;
    }
  }

  #answer(pid: number, opened: PythonOpened): void {
    this.#waiting.get(pid)?.(opened);
    this.#waiting.delete(pid);
  }

  #take(batch: ProfileBatch): void {
    this.counters = batch.counters;
    this.rate = batch.rate;
    this.loweredFor = batch.loweredFor;
    for (const facts of batch.threads) {
      this.#threads.set(facts.index, facts);
      this.#listener.thread(facts);
    }
    for (const [i, frames] of batch.stacks.entries()) this.#stacks[batch.firstStack + i] = frames;
    for (let i = 0; i + RUN_FIELDS <= batch.runs.length; i += RUN_FIELDS) {
      const [index = 0, stack = 0, from = 0, to = 0, count = 0, weight = 0] = batch.runs.subarray(
        i,
        i + RUN_FIELDS,
      );
      const thread = this.#threads.get(index);
      const frames = this.#stacks[stack];
      if (thread === undefined || frames === undefined) continue;
      const { pid, tid } = thread;
      this.#listener.run({ pid, tid, frames, from, to, count, weight });
    }
    for (const pid of batch.gone) this.#listener.gone(pid);
  }
}
