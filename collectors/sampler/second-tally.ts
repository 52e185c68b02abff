import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { FRACTION } from '../../src/core/fraction.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';
import type { Activity, LoopThread, SecondMessage } from './messages.ts';
import type { TurnWatch } from './turn-watch.ts';

/** A thread on a core, or waiting for one, for this share of a second is looked at for spinning, at 10 stacks a second. */
const SATURATED: Ratio = 0.8;
const ACTIVITY_EVERY: Seconds = 0.1;

/** One thread's second, while it is being counted. */
export class SecondTally {
  readonly cpu: Seconds;
  readonly wait: Seconds;
  readonly #from: Seconds;
  readonly #watch: TurnWatch;
  readonly #readings: { readonly cpu: Seconds; readonly wait: Seconds };
  readonly #idleTotal: Seconds | null;
  readonly #counters: { readonly iterations: number; readonly events: number } | null;
  readonly #stacks = new Map<string, number>();
  readonly #delay = new ExponentialHistogram();
  readonly #raw: number[] = [];
  #samples = 0;
  #lost = 0;
  #busy: Seconds = FRACTION;
  /** The time that was not lost, and the last sample's: while a turn lasts, samples are closer together and count for less. */
  #seen: Seconds = FRACTION;
  #sampledAt: Seconds;
  /** Samples of a loop that waited, or whose turn was only just seen. */
  #ageless = 0;
  #stackSamples = 0;
  #lastStack: Seconds = FRACTION;

  /** Starts counting from what `watch` and `readings` show now. */
  constructor(
    from: Seconds,
    watch: TurnWatch,
    readings: { readonly cpu: Seconds; readonly wait: Seconds },
  ) {
    this.#from = from;
    this.#sampledAt = from;
    this.#watch = watch;
    this.#readings = readings;
    this.cpu = readings.cpu;
    this.wait = readings.wait;
    this.#idleTotal = watch.idleTotal;
    this.#counters = watch.counters === null ? null : { ...watch.counters };
  }

  /** Takes the watch's sample at `at` into account; `raw`: keeps it as it is, too. */
  count(at: Seconds, raw: boolean): void {
    const { lost, idle, age } = this.#watch;
    const since = Math.max(0, at - this.#sampledAt);
    this.#sampledAt = at;
    this.#samples++;
    if (lost) {
      this.#lost++;
      return;
    }
    if (raw) this.#raw.push(at, age);
    this.#seen += since;
    if (!idle) this.#busy += since;
    if (age > 0) this.#delay.record(age);
    else this.#ageless++;
  }

  /** Takes a stack if one is due. */
  sampleStack(at: Seconds, capture: () => string | null): void {
    if (at - this.#lastStack < ACTIVITY_EVERY) return;
    this.#lastStack = at;
    const id = capture();
    if (id === null) return;
    this.#stackSamples++;
    this.#stacks.set(id, (this.#stacks.get(id) ?? 0) + 1);
  }

  /** The second, ended at `to`; the readings must have been refreshed. `activity` is there when the thread hardly rested. */
  drain(to: Seconds, thread: LoopThread): SecondMessage {
    const elapsed = Math.max(to - this.#from, 1e-9);
    const onCpu = Math.min(1, (this.#readings.cpu - this.cpu) / elapsed);
    const waited = Math.min(1, (this.#readings.wait - this.wait) / elapsed);
    this.#delay.recordZeros(this.#ageless);
    const { counters } = this.#watch;
    return {
      thread,
      from: this.#from,
      to,
      samples: this.#samples,
      lost: this.#lost,
      utilization: Math.min(1, Math.max(0, this.#utilization(elapsed))),
      delay: this.#delay.drain(),
      counters: counters === null ? null : { ...counters },
      activity: onCpu + waited >= SATURATED ? this.#activity(onCpu, waited) : null,
      raw: this.#raw,
    };
  }

  /** Exact where the loop keeps its idle time, else by samples, each for the time since the one before. */
  #utilization(elapsed: Seconds): Ratio {
    const { idleTotal } = this.#watch;
    return idleTotal !== null && this.#idleTotal !== null
      ? 1 - (idleTotal - this.#idleTotal) / elapsed
      : this.#busy / Math.max(this.#seen, 1e-9);
  }

  #activity(onCpu: Ratio, runQueueWait: Ratio): Activity {
    const { counters } = this.#watch;
    const counted = counters !== null && this.#counters !== null;
    return {
      onCpu,
      runQueueWait,
      stackSamples: this.#stackSamples,
      stacks: this.#stacks,
      iterations: counted ? counters.iterations - this.#counters.iterations : null,
      events: counted ? counters.events - this.#counters.events : null,
    };
  }
}
