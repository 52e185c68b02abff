import { type ContendedLock, type Contention, toContention } from '../core/contention.ts';
import { frameOrigin } from '../core/place.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import type { Detector, Frame, Place, Ratio, UnnumberedFinding } from '../core/types.ts';
import { formatRatio } from '../core/units.ts';
import { keptByThreads } from './thread-pools.ts';
import { position } from './wait-places.ts';

/**
 * TRC106 lock-contention: threads that get on, but spend their time waiting for a lock that others have. What is known are readings, some in a
 * row every two seconds: shares of them are shares of the time. Assumed: the readings do not fall in step with the program's own rhythm.
 */
const CODE = 'TRC106';

/** Readings from which a share says something: two looks of eight, as a run of ten seconds has at least. */
const LEAST_READINGS = 16;
/** Waits seen, and looks two seconds apart in which they were: one burst is an event, not a state. */
const LEAST_WAITS = 8;
const LEAST_LOOKS = 2;
/** Somebody waits for it a quarter of the time. A lock that is taken for a moment is waited for in a few readings of a hundred. */
const BUSY_NOTE: Ratio = 0.25;
/** Half of the time: what the threads do one after the other is most of what they do. */
const BUSY_WARNING: Ratio = 0.5;

export const lockContention: Detector = {
  code: CODE,
  *detect(view) {
    // Counts go on through the run, so the last of each process says all.
    const last = new Map<number, Contention>();
    for (const { body } of view.snapshots(SNAPSHOT.contention)) {
      const seen = toContention(body);
      if (seen !== undefined) last.set(seen.pid, seen);
    }
    for (const seen of last.values()) {
      for (const lock of seen.locks.toSorted((a, b) => b.waits - a.waits)) {
        const isEnough =
          seen.readings >= LEAST_READINGS &&
          lock.waits >= LEAST_WAITS &&
          lock.looks >= LEAST_LOOKS &&
          lock.busy / seen.readings >= BUSY_NOTE;
        if (isEnough) yield findingOf(lock, seen);
      }
    }
    yield* keptByThreads(view);
  },
};

function findingOf(lock: ContendedLock, { pid, readings }: Contention): UnnumberedFinding {
  const busy = lock.busy / readings;
  const share = Math.min(1, lock.waits / (readings * Math.max(1, lock.waiters.length)));
  const [holder] = lock.holders;
  const where = lock.frame === null ? '' : ` in ${placeOf(lock.frame)}`;
  const by =
    holder === undefined
      ? ''
      : `; ${holder.name} has it most often${holder.frame === null ? '' : `, in ${placeOf(holder.frame)}`}`;
  return {
    code: CODE,
    kind: 'lock-contention',
    mechanism: 'lock',
    severity: busy >= BUSY_WARNING ? 'warning' : 'note',
    // Where nobody was seen to have it, it may be a signal between threads and not a lock.
    confidence: holder === undefined ? 'inconclusive' : 'likely',
    pid,
    summary: `threads wait for ${lock.label}${where} in ${formatRatio(busy)} of readings${by}`,
    // Who has it stands in the evidence: further places would read as callers of this one.
    where: placesOf(lock.frame, { thread: lock.waiters[0] ?? '', share: busy }),
    evidence: [
      {
        kind: 'waits-for',
        summary: `${lock.waiters.length} threads waited for ${lock.label} in ${lock.busy} of ${readings} readings, ${lock.waits} waits in all, ${formatRatio(share)} of the time of each: ${lock.waiters.join(', ')}`,
        data: { object: lock.id, waits: lock.waits, readings },
      },
      ...lock.holders.slice(0, 3).map(({ name, seen, frame }) => ({
        kind: 'holds',
        summary: `${name} had it in ${seen} of ${lock.looks} looks${frame === null ? '' : `, in ${placeOf(frame)}`}`,
        data: { holder: name, object: lock.id },
      })),
    ],
    measure: {
      busy_ratio: busy,
      wait_ratio: share,
      waits_count: lock.waits,
      readings_count: readings,
      waiters_count: lock.waiters.length,
    },
    remedy:
      'hold the lock for less: take out of it what waits or computes (I/O, sleep, serialising), or give each thread its own of what it protects',
  };
}

function placesOf(
  frame: Frame | null,
  { thread, share }: { readonly thread: string; readonly share: Ratio },
): readonly Place[] {
  if (frame === null) return [];
  const { function: name, file, line } = frame;
  return [{ function: name, file, line, module: frameOrigin(file).module, thread, share }];
}

function placeOf(frame: Frame): string {
  return `${frame.function} (${position(frame)})`;
}
