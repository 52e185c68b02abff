import type { Seconds } from '../core/types.ts';

/** Waiting for moments that several wait for: one timer, and one wake-up of trace, for all of them. */

interface Moment {
  readonly timer: NodeJS.Timeout;
  readonly sleepers: Set<() => void>;
}

const moments = new Map<Seconds, Moment>();

/**
 * The next point of a grid that all share who wait for `interval`, so that trace wakes up once for all of them. What was missed is not made up
 * for, and it is half an interval away at least.
 */
export function nextMoment(now: Seconds, interval: Seconds): Seconds {
  const next = (Math.floor(now / interval) + 1) * interval;
  return next - now < interval / 2 ? next + interval : next;
}

/** Resolves at a moment of the clock that says `now`, a few milliseconds early at most; sooner, and without complaint, when the signal ends it. */
export function untilMoment(
  at: Seconds,
  { now, signal }: { readonly now: Seconds; readonly signal: AbortSignal },
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const moment = moments.get(at) ?? begin(at, now);
    const wake = (): void => {
      signal.removeEventListener('abort', wake);
      moment.sleepers.delete(wake);
      if (moment.sleepers.size === 0) forget(at, moment);
      resolve();
    };
    moment.sleepers.add(wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}

function begin(at: Seconds, now: Seconds): Moment {
  const sleepers = new Set<() => void>();
  const timer = setTimeout(
    () => {
      for (const wake of sleepers) wake();
    },
    Math.max(0, (at - now) * 1e3),
  );
  const moment = { timer, sleepers };
  moments.set(at, moment);
  return moment;
}

/** A timer that nobody waits for would keep trace alive. */
function forget(at: Seconds, moment: Moment): void {
  clearTimeout(moment.timer);
  if (moments.get(at) === moment) moments.delete(at);
}
