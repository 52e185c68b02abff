import type { Seconds } from '../../core/types.ts';
import type { Arrival, Warmup } from '../plan.ts';
import { Random } from '../random.ts';

/** When the requests of an open loop are due: one sequence from one seed, of which each worker takes its part. */

export interface ScheduleOptions {
  readonly arrival: Extract<Arrival, { readonly kind: 'open' }>;
  readonly seed: number;
  readonly stage: number;
  /** At the first rate and not measured: for so long, or so many requests. */
  readonly warmup: Warmup | null;
  /** Of the measured part; over it the rate goes from `rate` to `rateTo`. Whichever comes first; both null: for ever. */
  readonly duration: Seconds | null;
  readonly requests: number | null;
}

/** Due times from the beginning of the stage, one after the other, for ever or until the end of the schedule. */
export class Schedule {
  /** Of the present arrival, from the beginning of the stage. */
  at: Seconds = 0;
  /** Its number, from 0. */
  number = -1;
  isWarmup = false;
  /** When the schedule ends: after that nothing is due. Known when {@link advance} said false; infinity before. */
  endsAt: Seconds = Number.POSITIVE_INFINITY;

  readonly #options: ScheduleOptions;
  readonly #random: Random;
  readonly #ramp: Ramp;
  /** Expected arrivals until the present one: time in which the rate is 1. */
  #units = 0;
  #measured = 0;

  constructor(options: ScheduleOptions) {
    this.#options = options;
    this.#random = new Random(options.seed, options.stage);
    this.#ramp = rampOf(options);
  }

  /** Goes to the next arrival; false when there is none. */
  advance(): boolean {
    const { arrival, requests, warmup } = this.#options;
    if (this.endsAt !== Number.POSITIVE_INFINITY) return false;
    this.number++;
    // Constant gaps: the first is due at once, so that a whole number of them fits the duration.
    if (arrival.burstiness === null) this.#units = this.number;
    else this.#units += this.#gap(arrival.burstiness);
    this.at = timeAt(this.#ramp, this.#units);
    const { lead, duration } = this.#ramp;
    if (this.#options.duration !== null && !(this.at < lead + duration)) {
      this.endsAt = lead + duration;
      return false;
    }
    this.isWarmup =
      warmup === null
        ? false
        : 'requests' in warmup
          ? this.number < warmup.requests
          : this.at < lead;
    if (this.isWarmup) return true;
    if (requests !== null && this.#measured >= requests) {
      this.endsAt = this.at;
      return false;
    }
    this.#measured++;
    return true;
  }

  #gap(shape: number): number {
    return shape === 1 ? this.#random.exponential() : this.#random.gamma(shape) / shape;
  }
}

/** The rate over time: constant for `lead`, then linear from `from` to `to` over `duration`. */
interface Ramp {
  readonly from: number;
  readonly to: number;
  readonly lead: Seconds;
  readonly duration: Seconds;
}

function rampOf({ arrival, warmup, duration, requests }: ScheduleOptions): Ramp {
  const { rate: from, rateTo: to } = arrival;
  const lead =
    warmup === null ? 0 : 'requests' in warmup ? warmup.requests / from : warmup.duration;
  // By count: as long as it takes to expect so many.
  const byCount = requests === null ? Number.POSITIVE_INFINITY : (2 * requests) / (from + to);
  return { from, to, lead, duration: duration ?? byCount };
}

/** When `units` arrivals are expected: the inverse of the integral of the rate. */
function timeAt({ from, to, lead, duration }: Ramp, units: number): Seconds {
  if (units <= 0) return 0;
  const ramped = units - from * lead;
  if (ramped <= 0 || from === to || duration === Number.POSITIVE_INFINITY) return units / from;
  // After the ramp the last rate stays: only where the end is by count and chance made it later.
  const whole = ((from + to) / 2) * duration;
  if (ramped > whole) return lead + duration + (ramped - whole) / to;
  // from × t + slope × t² / 2 = ramped, solved so that nothing cancels out.
  const slope = (to - from) / duration;
  const root = Math.sqrt(Math.max(0, from * from + 2 * slope * ramped));
  return lead + (2 * ramped) / (from + root);
}
