import type { Seconds } from '../core/types.ts';

/** A signal that others abort, until it is released. */
export interface Joined {
  readonly signal: AbortSignal;
  release(): void;
}

/**
 * Aborts with the first of `signals`, or when `limit` is over. AbortSignal.any of an AbortSignal.timeout says the same, but Node 20.20.2 collects it
 * as garbage while somebody waits, and it never aborts then (seen in a test; again with a gc() by hand, 2 of 2; not in 24.21.0).
 */
export function join(signals: readonly AbortSignal[], limit?: Seconds): Joined {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
  }
  const timer = limit === undefined ? undefined : setTimeout(abort, limit * 1e3);
  return {
    signal: controller.signal,
    release() {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', abort);
    },
  };
}
