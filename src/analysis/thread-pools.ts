import { frameOrigin, placeAt } from '../core/place.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import {
  POOL_THREADS,
  type PoolHolder,
  type ThreadPoolLook,
  toThreadPoolLook,
} from '../core/thread-pool-look.ts';
import type {
  Evidence,
  Finding,
  Frame,
  Place,
  RecordingView,
  Seconds,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { position } from './wait-places.ts';

/**
 * A pool of connections that threads wait for, each look the same ones. Where no thread has a connection they are lost, and nobody is left to give
 * one back; where the same threads have them all the time, these keep them. Assumed: a thread that has a connection has it in a variable. In doubt
 * (a thread that was moving, a connection that may be of another pool) a pool is not said to be lost.
 */

/** Looks at the pool, and the time that a thread has stood in it: a request that waits for so long has been given up by its client. */
const LOOKS = 2;
const STUCK_FOR: Seconds = 5;
const PLACES = 6;
const TOLD = 8;
const TEXT_LIMIT = 100;

interface Look extends ThreadPoolLook {
  readonly at: Seconds;
}

/** Pools whose connections are lost: the part of TRC105. */
export function* lostOfThreads(view: RecordingView): Iterable<UnnumberedFinding> {
  for (const { looks, last, waiting } of standing(view)) {
    if (looks.some(({ holders, unread }) => holders.length > 0 || unread > 0)) continue;
    yield {
      code: 'TRC105',
      kind: 'deadlock',
      mechanism: 'pool exhaustion',
      severity: 'critical',
      confidence: 'likely',
      pid: last.pid,
      summary: `${waiting.length} threads wait for a connection of ${text(last.pool.type)} and no thread has one: all are taken, and nobody is left to give one back, for ${lasted(last, waiting)}`,
      where: waitPlaces(last, waiting),
      evidence: [
        waitEvidence(looks, waiting),
        {
          kind: 'pool',
          summary:
            'no variable of any other thread is a connection, a response or a transaction: who took them has returned without giving them back',
          data: { pool: last.pool.id },
        },
      ],
      measure: measureOf(looks, last, waiting),
      remedy:
        'give connections back on every way out (with, try … finally); read or close a response also where its body is not wanted',
    };
  }
}

/** Pools whose connections the same threads keep: the part of TRC106. */
export function* keptByThreads(view: RecordingView): Iterable<UnnumberedFinding> {
  for (const { looks, last, waiting } of standing(view)) {
    const keepers = last.holders.filter(
      (holder) =>
        holder.isCertain &&
        last.at - holder.since >= STUCK_FOR &&
        looks.every((look) => look.holders.some((one) => isSame(one, holder))),
    );
    const [first] = keepers;
    if (first === undefined) continue;
    // A thread that comes and goes with a connection gives others a turn: then the pool is too small, and not kept.
    if (looks.some(({ holders }) => holders.some((one) => one.isCertain && !isKept(one, keepers))))
      continue;
    const where = first.frame === null ? '' : ` in ${place(first.frame)}`;
    yield {
      code: 'TRC106',
      kind: 'lock-contention',
      mechanism: 'pool exhaustion',
      severity: 'warning',
      confidence: 'likely',
      pid: last.pid,
      summary: `${waiting.length} threads wait for a connection of ${text(last.pool.type)} for ${lasted(last, waiting)}; ${keepers.length === 1 ? `${text(first.name)} keeps one` : `${keepers.length} threads keep theirs`}${where}`,
      where: [
        ...(first.frame === null ? [] : [{ ...placeAt(first.frame, 1), thread: first.name }]),
        ...waitPlaces(last, waiting),
      ],
      evidence: [
        waitEvidence(looks, waiting),
        ...keepers.slice(0, TOLD).map(({ name, what, wait, frame, since }): Evidence => ({
          kind: 'holds',
          summary: `${text(name)} has ${text(what)}${frame === null ? '' : ` in ${place(frame)}`} and has not moved for ${formatSeconds(last.at - since)} (${text(wait)})`,
          data: { holder: text(name), pool: last.pool.id },
        })),
      ],
      measure: { ...measureOf(looks, last, waiting), holders_count: keepers.length },
      remedy:
        'do not wait for anything else while a connection is out (another service, a lock, input), or do so with a time-out',
    };
  }
}

interface StandingPool {
  readonly looks: readonly Look[];
  readonly last: Look;
  readonly waiting: ThreadPoolLook['waiters'];
}

/** Pools in which enough threads have stood for long, by their last look. */
function* standing(view: RecordingView): Iterable<StandingPool> {
  const pools = new Map<string, Look[]>();
  for (const { at, body } of view.snapshots(SNAPSHOT.threadPool)) {
    const look = toThreadPoolLook(body);
    if (look === undefined) continue;
    const key = `${look.pid} ${look.pool.id}`;
    const known = pools.get(key);
    if (known === undefined) pools.set(key, [{ ...look, at }]);
    else known.push({ ...look, at });
  }
  for (const all of pools.values()) {
    // At the end of a time-out all begin anew: the last wait that was looked at more than once.
    const found = all.toReversed().flatMap((last) => {
      const waiting = last.waiters.filter(({ since }) => last.at - since >= STUCK_FOR);
      const from = Math.max(...waiting.map(({ since }) => since));
      const looks = all.filter(({ at }) => at >= from && at <= last.at);
      return waiting.length >= POOL_THREADS && looks.length >= LOOKS
        ? [{ looks, last, waiting }]
        : [];
    });
    yield* found.slice(0, 1);
  }
}

function isSame(one: PoolHolder, other: PoolHolder): boolean {
  return one.tid === other.tid && one.since === other.since;
}

function isKept(one: PoolHolder, keepers: readonly PoolHolder[]): boolean {
  return keepers.some((keeper) => isSame(one, keeper));
}

function waitEvidence(looks: readonly Look[], waiting: ThreadPoolLook['waiters']): Evidence {
  const names = waiting.slice(0, TOLD).map(({ name }) => text(name));
  const timed = waiting.filter(({ isTimed }) => isTimed).length;
  const how = timed === 0 ? 'without a time-out' : `${timed} of them with a time-out`;
  return {
    kind: 'waits-for',
    summary: `${waiting.length} threads did not run in ${looks.length} looks, ${how}: ${names.join(', ')}${waiting.length > TOLD ? ', …' : ''}`,
    data: { threads_count: waiting.length, looks_count: looks.length },
  };
}

function measureOf(
  looks: readonly Look[],
  last: Look,
  waiting: ThreadPoolLook['waiters'],
): Finding['measure'] {
  return {
    lasted_s: last.at - Math.max(...waiting.map(({ since }) => since)),
    looks_count: looks.length,
    waiting_count: waiting.length,
  };
}

function lasted(last: Look, waiting: ThreadPoolLook['waiters']): string {
  return formatSeconds(last.at - Math.max(...waiting.map(({ since }) => since)));
}

const text = (of: string): string => printable(of, TEXT_LIMIT);
const place = (frame: Frame): string => `${text(frame.function)} (${position(frame)})`;

/** Of one that waits, from the pool's method outwards; not how its thread began. */
function waitPlaces({ frames }: Look, waiting: ThreadPoolLook['waiters']): readonly Place[] {
  return frames
    .filter(({ file }) => frameOrigin(file).kind !== 'standard-library')
    .slice(0, PLACES)
    .map((frame) => ({ ...placeAt(frame, 1), thread: waiting[0]?.name ?? null }));
}
