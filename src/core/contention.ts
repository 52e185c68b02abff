import { asArray, asFinite, asFrame, asObject, asString } from './otlp-values.ts';
import type { Frame } from './types.ts';

/** How often threads of one process were found waiting for locks, by now: the body of a `contention` snapshot. */

/** A thread that had a lock that another waited for. */
export interface ContentionHolder {
  /** As the program calls the thread. Untrusted. */
  readonly name: string;
  /** Looks in which it had it. */
  readonly seen: number;
  /** Where, the last time. */
  readonly frame: Frame | null;
}

export interface ContendedLock {
  readonly id: string;
  /** As the program calls it. Untrusted. */
  readonly label: string;
  /** Readings in which somebody waited for it. */
  readonly busy: number;
  /** Waits in all readings: two threads in one reading are two. */
  readonly waits: number;
  /** Looks, seconds apart, in which somebody waited for it. */
  readonly looks: number;
  /** Names of the threads that did. Untrusted. */
  readonly waiters: readonly string[];
  readonly holders: readonly ContentionHolder[];
  /** Where they wait. */
  readonly frame: Frame | null;
}

export interface Contention {
  readonly pid: number;
  readonly readings: number;
  readonly locks: readonly ContendedLock[];
}

/** The body of a snapshot back into what was seen; undefined without a pid. */
export function toContention(body: unknown): Contention | undefined {
  const seen = asObject(body);
  const pid = seen?.['pid'];
  if (seen === undefined || typeof pid !== 'number') return undefined;
  return {
    pid,
    readings: asFinite(seen['readings']),
    locks: asArray(seen['locks']).flatMap(toLock),
  };
}

function toLock(value: unknown): readonly ContendedLock[] {
  const lock = asObject(value);
  const id = asString(lock?.['id']);
  if (lock === undefined || id === '') return [];
  return [
    {
      id,
      label: asString(lock['label'], 'lock'),
      busy: asFinite(lock['busy']),
      waits: asFinite(lock['waits']),
      looks: asFinite(lock['looks']),
      waiters: asArray(lock['waiters']).filter((name) => typeof name === 'string'),
      holders: asArray(lock['holders']).flatMap((one) => {
        const holder = asObject(one);
        const name = asString(holder?.['name']);
        if (holder === undefined || name === '') return [];
        return [{ name, seen: asFinite(holder['seen']), frame: asFrame(holder['frame']) }];
      }),
      frame: asFrame(lock['frame']),
    },
  ];
}
