import type { Seconds } from '../../core/types.ts';
import { Schedule, type ScheduleOptions } from './schedule.ts';
import type { StageRun } from './stage-run.ts';
import type { ReadyRequest, Supply } from './supply.ts';

/** When the requests of one worker are due, one after the other; times are from the beginning of the stage. */
export interface Timetable {
  /** Goes to the next; false when there is none. */
  advance(): boolean;
  /** Of the present one. */
  readonly at: Seconds;
  /** Its number among those of all workers. */
  readonly number: number;
  readonly isWarmup: boolean;
  /** The present one itself, where the data say when; else the loop takes the next from its supply when it sends it. */
  readonly request: ReadyRequest | null;
  /** After {@link advance} said false: when the window ends, and whether that is a matter of time. */
  readonly end: { readonly at: Seconds; readonly timed: boolean };
}

/** The part of a schedule that a worker sends: numbers ≡ its own, modulo the number of workers. */
export class SharedSchedule implements Timetable {
  readonly request = null;
  readonly #schedule: Schedule;
  readonly #worker: number;
  readonly #workers: number;
  readonly #duration: Seconds | null;

  constructor(options: ScheduleOptions, worker: number, workers: number) {
    this.#schedule = new Schedule(options);
    this.#worker = worker;
    this.#workers = workers;
    this.#duration = options.duration;
  }

  advance(): boolean {
    while (this.#schedule.advance()) {
      if (this.#schedule.number % this.#workers === this.#worker) return true;
    }
    return false;
  }

  get at(): Seconds {
    return this.#schedule.at;
  }

  get number(): number {
    return this.#schedule.number;
  }

  get isWarmup(): boolean {
    return this.#schedule.isWarmup;
  }

  get end(): Timetable['end'] {
    const { endsAt, at } = this.#schedule;
    return { at: endsAt, timed: this.#duration !== null && at >= endsAt };
  }
}

/** The times that the data name. */
export class ReplayTimetable implements Timetable {
  at: Seconds = 0;
  number: number;
  isWarmup = false;
  request: ReadyRequest | null = null;
  readonly #stage: StageRun;
  readonly #supply: Supply;
  readonly #speed: number;
  readonly #workers: number;
  #isCut = false;

  constructor(
    stage: StageRun,
    supply: Supply,
    of: { readonly speed: number; readonly worker: number; readonly workers: number },
  ) {
    this.#stage = stage;
    this.#supply = supply;
    this.#speed = of.speed;
    this.#workers = of.workers;
    this.number = of.worker - of.workers;
  }

  advance(): boolean {
    const { lead, warmupRequests, plan } = this.#stage;
    this.number += this.#workers;
    this.request = null;
    if (plan.requests !== null && this.number >= warmupRequests + plan.requests) return false;
    const ready = this.#supply.take();
    if (ready === null) return false;
    const at = Math.max(this.at, (ready.request.due ?? 0) / this.#speed);
    this.#isCut = plan.duration !== null && at >= lead + plan.duration;
    if (this.#isCut) return false;
    this.at = at;
    this.request = ready;
    this.isWarmup = this.number < warmupRequests || at < lead;
    return true;
  }

  get end(): Timetable['end'] {
    const { plan, lead } = this.#stage;
    if (plan.duration === null || !this.#isCut) return { at: this.at, timed: false };
    return { at: lead + plan.duration, timed: true };
  }
}
