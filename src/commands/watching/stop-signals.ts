import type { Environment, StopSignal } from '../command-line/command.ts';

/**
 * The first SIGINT, SIGTERM or SIGHUP of a run, from before it begins until its report is out: one
 * that comes while nobody listens is kept for who listens next. The second one ends nothing, the
 * third ends trace at once.
 */
export class StopSignals {
  received: StopSignal | null = null;
  readonly #release: () => void;
  #stop: ((signal: StopSignal) => void) | null = null;

  constructor(environment: Environment) {
    this.#release = environment.onStop((signal) => {
      this.received = signal;
      this.#stop?.(signal);
    });
  }

  /** Calls `stop` at the signal, at once if it has come already; the result ends that. */
  listen(stop: (signal: StopSignal) => void): () => void {
    this.#stop = stop;
    if (this.received !== null) stop(this.received);
    return () => {
      this.#stop = null;
    };
  }

  /** Gives the signals their default action back. */
  close(): void {
    this.#release();
  }
}
