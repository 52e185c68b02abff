import type { Seconds } from '../../core/types.ts';
import type { Alarm, Alarms } from './alarms.ts';
import type { SharedCells } from './cells.ts';
import { nextTurn } from './conversation.ts';
import type { Slot, SlotOwner } from './slot.ts';
import type { Loop, Sender, StageRun } from './stage-run.ts';
import type { Prepare, ReadyRequest, Supply } from './supply.ts';

/**
 * A user whose request failed without a byte of an answer waits so long before the next: a server that is down would be asked ten thousand times
 * a second, and the result would say nothing else.
 */
export const PAUSE_AFTER_FAILURE: Seconds = 0.1;

/** One of the users of a closed loop: at most one request under way. They outlive stages that follow at once. */
export class User implements SlotOwner {
  readonly number: number;
  readonly #users: Users;
  isBusy = false;
  /** The turn that this one sends next. */
  next: ReadyRequest | null = null;
  alarm: Alarm | null = null;

  constructor(number: number, users: Users) {
    this.number = number;
    this.#users = users;
  }

  ended(slot: Slot): void {
    this.isBusy = false;
    this.#users.loop?.ended(this, slot);
  }
}

/** The users of one worker: numbers ≡ the worker's, modulo the number of workers. */
export class Users {
  readonly #worker: number;
  readonly #workers: number;
  readonly #users: User[] = [];
  /** The stage that they belong to now. */
  loop: ClosedLoop | null = null;

  constructor(worker: number, workers: number) {
    this.#worker = worker;
    this.#workers = workers;
  }

  /** This worker's of the first `concurrency` users. */
  upTo(concurrency: number): readonly User[] {
    for (;;) {
      const number = this.#worker + this.#users.length * this.#workers;
      if (number >= concurrency) break;
      this.#users.push(new User(number, this));
    }
    return this.#users.filter(({ number }) => number < concurrency);
  }
}

export interface ClosedLoopParts {
  readonly stage: StageRun;
  readonly sender: Sender;
  readonly users: Users;
  readonly supply: Supply;
  readonly prepare: Prepare;
  readonly alarms: Alarms;
  readonly cells: SharedCells;
  readonly concurrency: number;
  readonly rampUp: Seconds;
  readonly turns: number;
  readonly thinkTime: Seconds;
}

/** Each user sends its next request when its last is over. */
export class ClosedLoop implements Loop {
  readonly waiting = 0;
  readonly endUnit = null;
  readonly #parts: ClosedLoopParts;
  #users: readonly User[] = [];
  #isOpen = true;
  #isExhausted = false;

  constructor(parts: ClosedLoopParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { stage, users, concurrency, rampUp, supply, alarms } = this.#parts;
    users.loop = this;
    supply.reopen();
    this.#users = users.upTo(concurrency);
    for (const user of this.#users) {
      // Busy with a request of the stage before: its end brings it here.
      if (user.isBusy) continue;
      const at = stage.startsAt + (rampUp * user.number) / concurrency;
      if (at <= alarms.now()) this.#free(user, at);
      else this.#wakeAbout(user, at);
    }
    this.#endIfIdle();
  }

  close(): void {
    this.#isOpen = false;
    for (const user of this.#users) {
      user.alarm?.cancel();
      user.alarm = null;
      user.next = null;
    }
  }

  abandon(): void {
    // Nothing waits for a place here.
  }

  /** A user's request is over, maybe one of the stage before. */
  ended(user: User, slot: Slot): void {
    const { prepare, turns, thinkTime, concurrency } = this.#parts;
    if (!this.#isOpen || user.number >= concurrency) return;
    const at = slot.endedAt;
    user.next = nextTurn(slot, prepare, turns);
    const pause =
      slot.error !== null && slot.firstByteAt === null
        ? PAUSE_AFTER_FAILURE
        : user.next === null
          ? 0
          : thinkTime;
    if (slot.error !== null && pause > 0) this.#wakeAbout(user, at + pause);
    else if (pause > 0) this.#wake(user, at + pause);
    else this.#free(user, at);
    this.#endIfIdle();
  }

  #wake(user: User, at: Seconds): void {
    user.alarm = this.#parts.alarms.set(at, () => {
      user.alarm = null;
      this.#free(user, at);
      this.#endIfIdle();
    });
  }

  /** When exactly does not matter: the request is due when it happens. */
  #wakeAbout(user: User, at: Seconds): void {
    const { alarms } = this.#parts;
    user.alarm = alarms.setAbout(at, () => {
      user.alarm = null;
      this.#free(user, alarms.now());
      this.#endIfIdle();
    });
  }

  #free(user: User, at: Seconds): void {
    if (!this.#isOpen) return;
    const { stage, sender, supply, turns } = this.#parts;
    const ready = user.next ?? supply.peek();
    if (ready === null) {
      this.#isExhausted = true;
      if (turns === 1) sender.endSending(stage, stage.lastSentAt);
      return;
    }
    const standing = this.#admit(at);
    if (standing === 'over') {
      sender.endSending(stage, stage.lastSentAt);
      return;
    }
    if (user.next === null) supply.take();
    user.next = null;
    user.isBusy = true;
    sender.send(stage, user, {
      ...ready,
      scheduledAt: at,
      readyAt: at,
      warmup: standing === 'warmup',
    });
  }

  /** What a request that is sent now is, by what all workers have sent. */
  #admit(at: Seconds): 'warmup' | 'measured' | 'over' {
    const { stage, cells, sender } = this.#parts;
    if (stage.lead > 0 && at < stage.startsAt + stage.lead) return 'warmup';
    const { requests } = stage.plan;
    const before = cells.countSent(stage.index) - stage.warmupRequests;
    if (before < 0) return 'warmup';
    if (requests !== null && before >= requests) return 'over';
    if (before === 0 && stage.warmupRequests > 0) sender.measure(stage, at);
    return 'measured';
  }

  /** With the data at an end, conversations that have begun go on; after them nothing is left. */
  #endIfIdle(): void {
    if (!this.#isExhausted || !this.#isOpen) return;
    if (this.#users.some((user) => user.isBusy || user.alarm !== null)) return;
    const { sender, stage } = this.#parts;
    sender.endSending(stage, stage.lastSentAt);
  }
}
