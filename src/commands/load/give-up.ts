import type { EngineBatch } from '../../load/contracts.ts';
import type { Environment, StopSignal } from '../command-line/command.ts';

/** Failures in a row, from the first request on, after which nobody need be asked again: a wrong model, path, key or body. */
const HOPELESS = 20;
/** Refusals that another try may not meet: a time-out, too early, too many requests. */
const PASSING = [408, 425, 429];

/** Ends a run in which every request is refused as such: half a minute of it would be an attack, and tells nothing more. */
export class GiveUp {
  /** Whether it did. */
  done = false;
  #refused = 0;
  #isOver = false;
  readonly #stops = new Set<(signal: StopSignal) => void>();

  /** The environment for the run: it stops as if it were told to. */
  within(environment: Environment): Environment {
    return {
      ...environment,
      onStop: (stop) => {
        this.#stops.add(stop);
        const release = environment.onStop(stop);
        return () => {
          this.#stops.delete(stop);
          release();
        };
      },
    };
  }

  /** True when this batch made it give up. */
  batch({ requests }: EngineBatch): boolean {
    if (this.#isOver) return false;
    for (const { error, status } of requests) {
      const isRefused =
        error !== null && error.class === 'http.4xx' && !PASSING.includes(status ?? 0);
      if (!isRefused) this.#isOver = true;
      else this.#refused++;
    }
    if (this.#isOver || this.#refused < HOPELESS) return false;
    this.#isOver = true;
    this.done = true;
    for (const stop of this.#stops) stop('SIGTERM');
    return true;
  }
}
