import type { Seconds } from '../../src/core/types.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { epollDescriptorIn } from '../../src/platform/proc-parse.ts';
import type { LoopProbe } from '../event-loop/loop-probe.ts';
import { LoopTurns } from '../event-loop/loop-turn.ts';
import type { LoopKind, Turn, TurnWatch } from './turn-watch.ts';

/** Unreadable for this many samples in a row, the loop counts as ended. */
const LOST_LIMIT = 8;
/** Turns are kept from this share of the threshold on: the observer decides which of them are blocks. */
const FLOOR_SHARE = 0.5;

/** A libuv loop, iteration by iteration: Node's main loop by its own idle metrics, uvloop's by its count and its clock. */
export class LibuvWatch implements TurnWatch {
  readonly kind: LoopKind;
  readonly basis = 'iteration';
  lost = false;
  counters: { iterations: number; events: number } | null = null;
  idleTotal: Seconds | null = null;

  readonly #probe: LoopProbe;
  readonly #turns: LoopTurns;
  /** Needed where libuv does not note the entry into the poll. */
  readonly #syscall: KeptFile | null;
  #misses = 0;

  constructor(options: {
    kind: LoopKind;
    probe: LoopProbe;
    pid: number;
    tid: number;
    threshold: Seconds;
  }) {
    this.kind = options.kind;
    this.#probe = options.probe;
    const { idleMetrics } = options.probe;
    this.#turns = new LoopTurns({ idleMetrics, floor: options.threshold * FLOOR_SHARE });
    this.#syscall = idleMetrics
      ? null
      : KeptFile.open(`/proc/${options.pid}/task/${options.tid}/syscall`, 256);
  }

  sample(at: Seconds): void {
    // Looked up before the counters are read: a poll entered in between shows in the count.
    const inPoll = this.#syscall !== null && this.#isInPoll(this.#syscall);
    const reading = this.#probe.read(at);
    this.lost = reading === null;
    if (reading === null) {
      if (++this.#misses === LOST_LIMIT) this.#turns.reset();
      return;
    }
    this.#misses = 0;
    this.#turns.observe(reading, inPoll);
    this.counters ??= { iterations: 0, events: 0 };
    this.counters.iterations = reading.loopCount;
    this.counters.events = reading.events;
    if (this.#probe.idleMetrics && !this.#turns.idleTimeIsShort) {
      this.idleTotal =
        reading.idleTime + (reading.entryTime > 0 ? reading.at - reading.entryTime : 0);
    } else this.idleTotal = null;
  }

  stay(at: Seconds): void {
    this.#turns.stay(at);
  }

  get idle(): boolean {
    return this.#turns.idle;
  }

  get turnId(): number {
    return this.#turns.turnId;
  }

  get age(): Seconds {
    return this.#turns.age;
  }

  takeClosed(): Turn | null {
    return this.#turns.takeClosed();
  }

  openTurn(): Turn | null {
    return this.#turns.openTurn();
  }

  /** The probe proves at each busy reading that the loop is still the one that was found. */
  confirm(): boolean {
    return true;
  }

  #isInPoll(file: KeptFile): boolean {
    return epollDescriptorIn(file.buffer, file.read()) === this.#probe.backendFd;
  }
}
