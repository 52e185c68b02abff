import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Seconds } from '../../core/types.ts';

/**
 * Major garbage collections by the clock. Left alone, V8 makes one when the old generation reaches a size that it raises after each: in an hour
 * of a quiet machine resident memory rose by 14 MiB of which 2 were in use. Only of the main thread: the sampler, which looks every 12 ms, has a
 * heap and a collector of its own. What it costs is in docs/measurements.md, "Memory in an hour".
 */

/** 1.5 to 5 MiB of garbage wait at most, at the rates measured. A collection of some 15 MiB took the main thread 5 ms alone on a machine, 36 to 136 on a crowded one. */
const EVERY: Seconds = 60;

/** Collects now. */
type Collect = () => void;

export class HeapTidy {
  readonly #collect: () => Collect | null;
  #due: Seconds;
  #known: Collect | null | undefined;

  /** `now`: when the run begins, by the clock that `tick` is told. */
  constructor(now: Seconds, collect: () => Collect | null = collector) {
    this.#due = now + EVERY;
    this.#collect = collect;
  }

  /** Collects when it is time to; called about once a second. */
  tick(now: Seconds): void {
    if (now < this.#due) return;
    // After a stretch in which nobody ticked one is enough.
    this.#due = now + EVERY;
    this.#known ??= this.#collect();
    this.#known?.();
  }
}

/** V8's own `gc`, which it gives to contexts made while this flag is set; null where it does not. */
function collector(): Collect | null {
  setFlagsFromString('--expose-gc');
  const gc: unknown = runInNewContext('typeof gc === "function" ? gc : null');
  setFlagsFromString('--no-expose-gc');
  return typeof gc === 'function' ? () => compactly(() => void gc()) : null;
}

/** Without it the pages of the old generation become more while what is in them does not: each keeps a few objects that stay. */
function compactly(gc: Collect): void {
  setFlagsFromString('--compact-on-every-full-gc');
  try {
    gc();
  } finally {
    setFlagsFromString('--no-compact-on-every-full-gc');
  }
}
