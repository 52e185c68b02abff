import type { Clock, Seconds } from './types.ts';

/** What `performance.now()` (milliseconds since this thread began) lacks of CLOCK_MONOTONIC; both are read from uv_hrtime. */
const MONO_OFFSET: Seconds = measureOffset();

function measureOffset(): Seconds {
  // The first call loads perf_hooks, which takes a millisecond; only the later ones can be compared.
  performance.now();
  let best = { width: Number.POSITIVE_INFINITY, offset: 0 };
  // The narrowest of a few brackets: in a wide one we were interrupted.
  for (let i = 0; i < 5; i++) {
    const before = performance.now();
    const mono = Number(process.hrtime.bigint()) / 1e9;
    const after = performance.now();
    const width = after - before;
    if (width < best.width) best = { width, offset: mono - (before + after) / 2e3 };
  }
  return best.offset;
}

/** CLOCK_MONOTONIC now. `performance.now` is used because it makes no BigInt: this is called at every sample. */
export function monotonicNow(): Seconds {
  return MONO_OFFSET + performance.now() / 1e3;
}

/** A pair of readings that ties the monotonic clock to Unix time. */
export interface ClockAnchor {
  readonly wall: Seconds;
  readonly mono: Seconds;
}

export function takeAnchor(): ClockAnchor {
  return { wall: (performance.timeOrigin + performance.now()) / 1e3, mono: monotonicNow() };
}

/** A clock whose Unix time is the monotonic clock on a fixed anchor: it never steps, whatever NTP does. */
export function anchoredClock(anchor: ClockAnchor): Clock {
  return { mono: monotonicNow, now: () => anchor.wall + (monotonicNow() - anchor.mono) };
}

/** A clock that moves only when told to. */
export function fakeClock(start: Seconds = 1_700_000_000): Clock & { advance(by: Seconds): void } {
  let elapsed = 0;
  return {
    now: () => start + elapsed,
    mono: () => 1000 + elapsed,
    advance(by) {
      elapsed += by;
    },
  };
}
