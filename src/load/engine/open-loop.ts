import type { Seconds } from '../../core/types.ts';
import type { PreparedRequest } from '../contracts.ts';
import type { Alarm, Alarms } from './alarms.ts';
import { nextTurn } from './conversation.ts';
import type { Slot, SlotOwner } from './slot.ts';
import type { Loop, Sender, StageRun } from './stage-run.ts';
import type { Prepare, ReadyRequest, Supply } from './supply.ts';
import type { Timetable } from './timetable.ts';

export interface OpenLoopParts {
  readonly stage: StageRun;
  readonly sender: Sender;
  readonly supply: Supply;
  readonly prepare: Prepare;
  readonly alarms: Alarms;
  readonly timetable: Timetable;
  /** More are never under way in this worker; infinity: no limit. */
  readonly places: number;
  /** Index of the stage's first unit (request or conversation). */
  readonly firstUnit: number;
  readonly turns: number;
  readonly thinkTime: Seconds;
}

/** Due, and waiting for a place. `ready` is null until it is taken from the supply, in this order. */
interface Waiting {
  readonly ready: ReadyRequest | null;
  readonly unit: number;
  readonly scheduledAt: Seconds;
  readonly warmup: boolean;
}

/** Requests are sent when they are due, whatever the server does; under a limit, as soon as there is a place. */
export class OpenLoop implements Loop, SlotOwner {
  readonly #parts: OpenLoopParts;
  readonly #queue: Waiting[] = [];
  #queueHead = 0;
  #alarm: Alarm | null = null;
  readonly #thinking = new Set<Alarm>();
  /** Conversations of which a request is under way, waits, or will be sent. */
  #conversations = 0;
  #isOpen = true;
  #isLast = false;
  #isDispatching = false;

  constructor(parts: OpenLoopParts) {
    this.#parts = parts;
  }

  begin(): void {
    this.#next();
  }

  close(): void {
    this.#isOpen = false;
    this.#alarm?.cancel();
    for (const alarm of this.#thinking) alarm.cancel();
    this.#thinking.clear();
    // What waits is still taken from it.
    if (this.waiting === 0) this.#parts.supply.close();
  }

  get waiting(): number {
    return this.#queue.length - this.#queueHead;
  }

  /** Known once the schedule has ended. */
  get endUnit(): number {
    return this.#parts.firstUnit + Math.max(0, this.#parts.timetable.number);
  }

  abandon(): void {
    const { sender, stage, supply, turns } = this.#parts;
    supply.close();
    for (const { ready, unit, scheduledAt, warmup } of this.#queue.splice(this.#queueHead)) {
      sender.giveUp(stage, {
        request: ready?.request ?? unknownRequest(unit * turns),
        scheduledAt,
        warmup,
      });
    }
  }

  ended(slot: Slot): void {
    const { prepare, turns, thinkTime } = this.#parts;
    const next = this.#isOpen ? nextTurn(slot, prepare, turns) : null;
    if (next === null) this.#conversations--;
    else this.#think(next, slot.endedAt + thinkTime, slot.warmup);
    this.#dispatch(slot.endedAt);
    this.#endIfOver();
  }

  /** Everything that is due is sent; then the alarm is set for what comes next. */
  #next(): void {
    const { timetable, stage, alarms } = this.#parts;
    while (this.#isOpen) {
      if (!timetable.advance()) {
        this.#endAfterLast();
        return;
      }
      const at = stage.startsAt + timetable.at;
      if (at > alarms.now()) {
        this.#alarm = alarms.set(at, () => {
          this.#due(at);
          this.#next();
        });
        return;
      }
      this.#due(at);
    }
  }

  #due(at: Seconds): void {
    const { timetable, firstUnit, stage, sender } = this.#parts;
    if (stage.warmupRequests > 0 && timetable.number === stage.warmupRequests) {
      sender.measure(stage, at);
    }
    this.#conversations++;
    this.#enqueue({
      ready: timetable.request,
      unit: firstUnit + timetable.number,
      scheduledAt: at,
      warmup: timetable.isWarmup,
    });
  }

  #think(ready: ReadyRequest, at: Seconds, warmup: boolean): void {
    const { alarms, turns } = this.#parts;
    const alarm = alarms.set(at, () => {
      this.#thinking.delete(alarm);
      const unit = Math.floor(ready.request.index / turns);
      this.#enqueue({ ready, unit, scheduledAt: at, warmup });
    });
    this.#thinking.add(alarm);
  }

  #enqueue(of: Waiting): void {
    this.#queue.push(of);
    const before = this.waiting;
    this.#dispatch(of.scheduledAt);
    // Still there: it waits.
    if (this.waiting === before && !of.warmup) this.#parts.stage.tally.queue();
  }

  /** Sends what waits, as far as there are places; the last one became free at `freeAt`. */
  #dispatch(freeAt: Seconds): void {
    // A request that fails at once ends within `send`: the loop around that goes on.
    if (this.#isDispatching) return;
    this.#isDispatching = true;
    const { sender, places, supply, stage } = this.#parts;
    while (this.waiting > 0 && sender.inFlight < places) {
      const due = this.#queue[this.#queueHead];
      if (due === undefined) break;
      const ready = due.ready ?? supply.take();
      this.#queueHead++;
      if (ready === null) {
        this.#conversations--;
        continue;
      }
      const { scheduledAt, warmup } = due;
      const readyAt = Math.max(scheduledAt, freeAt);
      sender.send(stage, this, { ...ready, scheduledAt, readyAt, warmup });
    }
    if (this.#queueHead > 1024 || this.waiting === 0) {
      this.#queue.splice(0, this.#queueHead);
      this.#queueHead = 0;
    }
    this.#isDispatching = false;
  }

  #endAfterLast(): void {
    const { timetable, stage, alarms, sender } = this.#parts;
    const { at, timed } = timetable.end;
    if (timed) {
      this.#alarm = alarms.set(stage.startsAt + at, () =>
        sender.endSending(stage, stage.startsAt + at),
      );
      return;
    }
    this.#isLast = true;
    this.#endIfOver();
  }

  /** By count: the last has been sent, and with several turns the last conversation is over. */
  #endIfOver(): void {
    const { timetable, stage, sender, turns } = this.#parts;
    if (!this.#isLast || !this.#isOpen || (turns > 1 && this.#conversations > 0)) return;
    const at = Math.min(timetable.end.at, Number.MAX_SAFE_INTEGER);
    sender.endSending(stage, Math.max(stage.startsAt + at, turns > 1 ? stage.lastSentAt : 0));
  }
}

/** What never was prepared, since it never was sent. */
function unknownRequest(index: number): PreparedRequest {
  return { index, body: Buffer.alloc(0), promptClass: '', session: null, turn: null, due: null };
}
