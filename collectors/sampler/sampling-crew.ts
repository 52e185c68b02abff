import type { Worker } from 'node:worker_threads';
import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { startThread } from '../../src/platform/standalone.ts';
import {
  type Batch,
  CELL,
  type Command,
  type MemberId,
  type Opened,
  type SamplerPlan,
  type WorkerMessage,
} from './messages.ts';

/** How long the worker may take to hand over a last batch. */
const STOP_LIMIT: Seconds = 2;

/** One process that a crew watches. */
export interface CrewMember {
  /** What came of opening it; it is sampled from `begin` on. */
  readonly opened: Promise<Opened>;
  /**
   * Hands each batch to `take`; resolves after the last, with what went wrong, null when nothing
   * did. `since`: monotonic seconds from which on what was not seen is a gap.
   */
  begin(take: (batch: Batch) => void, since: Seconds): Promise<string | null>;
  /** Asks for the last batch. */
  stop(): void;
  /** Ends it without. */
  drop(): void;
}

interface Member {
  onOpened: (opened: Opened) => void;
  take: ((batch: Batch) => void) | null;
  /** Called once, when nothing more will come. */
  onEnd: (failure: string | null) => void;
}

/**
 * Several processes sampled by one worker thread: a wake-up of a thread costs as much as sampling dozens of them. The thread starts with
 * the first that joins and ends with the last.
 */
export class SamplingCrew {
  readonly #members = new Map<MemberId, Member>();
  #worker: Worker | null = null;
  #cells: Int32Array = new Int32Array();
  #next: MemberId = 1;

  /** Opens a process; those that are sampled already are sampled on. */
  join(plan: SamplerPlan): CrewMember {
    const id = this.#next++;
    const member: Member = { onOpened: () => {}, take: null, onEnd: () => {} };
    const opened = new Promise<Opened>((resolve) => {
      member.onOpened = resolve;
      member.onEnd = (failure) =>
        resolve({ kind: 'unavailable', reason: failure ?? NOT_WANTED, remedy: null });
    });
    this.#members.set(id, member);
    this.#command({ kind: 'open', member: id, plan });
    const isIn = (): boolean => this.#members.get(id) === member;
    return {
      opened,
      begin: (take, since) =>
        new Promise((resolve) => {
          if (!isIn()) {
            resolve(null);
            return;
          }
          member.take = take;
          member.onEnd = resolve;
          this.#command({ kind: 'go', member: id, since });
        }),
      stop: () => {
        if (!isIn()) return;
        this.#command({ kind: 'stop', member: id, at: monotonicNow() });
        setTimeout(() => this.#giveUp(id), STOP_LIMIT * 1e3).unref();
      },
      drop: () => {
        if (!isIn()) return;
        this.#command({ kind: 'drop', member: id });
        this.#leave(id, null);
      },
    };
  }

  #command(command: Command): void {
    const worker = (this.#worker ??= this.#start());
    worker.postMessage(command);
    Atomics.add(this.#cells, CELL.commands, 1);
    Atomics.notify(this.#cells, CELL.commands);
  }

  #start(): Worker {
    const buffer = new SharedArrayBuffer(CELL.count * Int32Array.BYTES_PER_ELEMENT);
    const cells = new Int32Array(buffer);
    this.#cells = cells;
    const workerData = { cells: buffer };
    const worker = startThread(new URL('./worker.js', import.meta.url), { workerData });
    worker.on('message', (message: WorkerMessage) => this.#receive(message, cells));
    worker.on('error', (error) => this.#lose(worker, `the sampler failed: ${error.message}`));
    worker.on('exit', () => this.#lose(worker, 'the sampler ended'));
    return worker;
  }

  #receive(message: WorkerMessage, cells: Int32Array): void {
    switch (message.kind) {
      case 'opened': {
        const { member, opened } = message;
        this.#members.get(member)?.onOpened(opened);
        if (opened.kind === 'unavailable') this.#leave(member, null);
        break;
      }
      case 'handover':
        Atomics.add(cells, CELL.taken, 1);
        for (const { member, batch, last } of message.batches) {
          this.#members.get(member)?.take?.(batch);
          if (last) this.#leave(member, null);
        }
        break;
      default:
        message satisfies never;
    }
  }

  /** The worker does not answer: with others it goes on, alone it is ended. */
  #giveUp(id: MemberId): void {
    if (!this.#members.has(id)) return;
    const worker = this.#worker;
    this.#leave(id, 'the sampler did not hand over what it saw last');
    if (this.#worker === null) void worker?.terminate();
  }

  /** All that a worker watched ends with it. */
  #lose(worker: Worker, failure: string): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const members = [...this.#members.values()];
    this.#members.clear();
    for (const member of members) member.onEnd(failure);
  }

  #leave(id: MemberId, failure: string | null): void {
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    member.onEnd(failure);
    if (this.#members.size > 0) return;
    this.#command({ kind: 'end' });
    this.#worker = null;
  }
}

const NOT_WANTED = 'it is no longer wanted';
