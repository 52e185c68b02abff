import { type TraceError, usageError } from './errors.ts';
import { printable } from './text.ts';
import type { Seconds } from './types.ts';

/** Durations as people type them: on the command line, in settings and in the environment. */

/** Every unit that a time may be typed in, wherever one is. */
export const UNIT_SECONDS = {
  us: 1e-6,
  µs: 1e-6,
  ms: 0.001,
  s: 1,
  m: 60,
  min: 60,
  h: 3600,
  d: 86_400,
} as const;

/** A unit a duration may be written in. */
export type DurationUnit = keyof typeof UNIT_SECONDS;

/** The shortest and the longest that are taken. */
export interface DurationBounds {
  readonly least: Seconds;
  readonly most: Seconds;
}

function isUnit(text: string): text is DurationUnit {
  return Object.hasOwn(UNIT_SECONDS, text);
}

/**
 * `10s`, `1.5m`, `50ms`, `1h`, `10d`, or a number in the unit `bare`, where one is given.
 * `name` is what was set, for the usage error.
 */
export function readDuration(text: string, name: string, bare: DurationUnit | null): Seconds {
  const match = /^(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s?([a-zµ]*)$/.exec(text.trim());
  const unit = match?.[2] === '' ? (bare ?? '') : (match?.[2] ?? '');
  if (match === null || !isUnit(unit))
    throw wrongDuration(name, text, 'a duration such as 10s, 500ms, 2m or 1h');
  return Number(match[1]) * UNIT_SECONDS[unit];
}

/** A duration that lies within its bounds; else a usage error with it as it was written. */
export function boundedDuration(
  seconds: Seconds,
  { least, most }: DurationBounds,
  said: { readonly name: string; readonly text: string },
): Seconds {
  // Half a nanosecond of grace: 0.005 s written as 5ms must not fall under a bound of 0.005.
  if (seconds >= least - 5e-10 && seconds <= most + 5e-10) return seconds;
  throw wrongDuration(
    said.name,
    said.text,
    `between ${writeDuration(least)} and ${writeDuration(most)}`,
  );
}

function wrongDuration(name: string, text: string, expected: string): TraceError {
  return usageError(`${name} takes ${expected}, got '${printable(text, 60)}'`);
}

/** A duration as it is typed (`5ms`, `10s`, `24h`). */
export function writeDuration(seconds: Seconds): string {
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(6))}ms`;
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600}h`;
  return `${Number(seconds.toPrecision(6))}s`;
}
