import { ATTR, EVENT } from '../../core/semconv.ts';
import type { Clock, Event, Gap, Observation, Seconds } from '../../core/types.ts';
import { formatOffset } from '../../core/units.ts';
import { uptime } from '../../platform/proc.ts';

/**
 * What the clocks do while a run goes on. The run's own time is CLOCK_MONOTONIC, which neither steps nor counts the time that the machine
 * sleeps: a suspension makes no block and a clock that is set no negative duration. That they happened is said.
 */

/** Less is the resolution of /proc/uptime (10 ms) and what passes between reading two clocks. NTP steps at all from 0.128 s on. */
const WORTH_SAYING: Seconds = 0.5;
/** The clocks are read one after the other: when that took longer, trace was held up in between, and they are read again. */
const AT_ONCE: Seconds = 0.02;
const TRIES = 5;

/** The clocks at one moment. */
export interface ClockReadings {
  /** CLOCK_MONOTONIC. */
  readonly mono: Seconds;
  /** CLOCK_REALTIME. */
  readonly wall: Seconds;
  /** Since boot, sleep included; 0 where it cannot be read. */
  readonly boot: Seconds;
}

export class ClockWatch {
  readonly #clock: Clock;
  readonly #read: () => ClockReadings | null;
  #last: (ClockReadings & { readonly at: Seconds }) | null = null;

  constructor(clock: Clock, read: () => ClockReadings | null = () => readClocks(clock)) {
    this.#clock = clock;
    this.#read = read;
  }

  /** What happened since the last call, with an anchor that says where the clocks are now; nothing when nothing did. */
  tick(): readonly Observation[] {
    const now = this.#readAt();
    const last = this.#last;
    if (now === null) return [];
    this.#last = now;
    if (last === null) return [];
    const awake = now.mono - last.mono;
    const asleep = now.boot === 0 || last.boot === 0 ? 0 : now.boot - last.boot - awake;
    const stepped = now.wall - last.wall - awake - Math.max(0, asleep);
    const seen: Observation[] = [];
    if (asleep >= WORTH_SAYING) seen.push(suspended(last.at, now.at, asleep));
    if (Math.abs(stepped) >= WORTH_SAYING) seen.push(step(now.at, stepped));
    return seen.length === 0 ? seen : [...seen, anchorOf(now)];
  }

  /**
   * Ties the three clocks together: the run's own (`at`, which never steps), the wall clock as it is now, and the two of the kernel. A
   * later reader sees from them where NTP stepped and where the machine was suspended (boot time goes on then, monotonic does not).
   */
  anchor(): readonly Observation[] {
    const now = this.#readAt();
    if (now === null) return [];
    this.#last ??= now;
    return [anchorOf(now)];
  }

  #readAt(): (ClockReadings & { readonly at: Seconds }) | null {
    const readings = this.#read();
    return readings === null ? null : { ...readings, at: this.#clock.now() };
  }
}

/** Null when trace was held up in between each time. */
function readClocks(clock: Clock): ClockReadings | null {
  for (let i = 0; i < TRIES; i++) {
    const mono = clock.mono();
    const readings = { mono, wall: Date.now() / 1e3, boot: uptime() };
    if (clock.mono() - mono <= AT_ONCE) return readings;
  }
  return null;
}

function anchorOf({ at, mono, wall, boot }: ClockReadings & { readonly at: Seconds }): Event {
  return {
    kind: 'event',
    at,
    name: EVENT.clockAnchor,
    severity: 'info',
    body: 'clocks',
    attributes: { [ATTR.clockMono]: mono, [ATTR.clockWall]: wall, [ATTR.clockBoot]: boot },
  };
}

function suspended(from: Seconds, to: Seconds, asleep: Seconds): Gap {
  return {
    kind: 'gap',
    from,
    to,
    collector: 'clock',
    reason: 'suspended',
    detail: `the machine slept for ${formatOffset(asleep)}, which is no time of the run; times of day after it are too early by as much`,
  };
}

function step(at: Seconds, by: Seconds): Event {
  return {
    kind: 'event',
    at,
    name: EVENT.clockStep,
    severity: 'warn',
    body: `the wall clock was set ${by > 0 ? 'forward' : 'back'} by ${formatOffset(Math.abs(by))}: durations are right, times of day go by the clock as it was at the start`,
    attributes: { [ATTR.clockStep]: by },
  };
}
