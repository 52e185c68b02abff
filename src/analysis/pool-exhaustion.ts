import { type LockActor, type LockLook, type LockObject, POOL_WAITERS } from '../core/lock-look.ts';
import { frameOrigin } from '../core/place.ts';
import type { Place, Seconds, UnnumberedFinding } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { actorName, placeName, placesOf } from './wait-places.ts';

/**
 * A pool whose threads all wait for permits that only work waiting for one of these threads can give back. Who has a permit that was taken
 * without a `with` cannot be seen. What can: every thread of the pool waits for the same semaphore, none of its permits is left (or for the same
 * queue, which is empty, and in work that tasks gave it), work waits for a thread, and nothing of that work waits for anything outside of the process, for as long as one looked.
 */

/** None of them moved for so long. Requests that are slow, but move, take turns within seconds. */
const STUCK_FOR: Seconds = 5;
/** Waits of tasks that something inside of the process ends; any other may end by itself, and then the work goes on. */
const INNER_WAIT = /^(?:event|future|lock|semaphore|condition|executor|task)$/;

/** Frames of a task that waits for a thread of a pool: of asyncio, and of what stands in its place. */
const HANDED = /(?:^|\.)(?:to_thread|run_in_executor|run_sync|run_sync_in_worker_thread)$/;

/** Frames of the work that are shown: from the wait through the library that handed it to a thread, to who called that. */
const WORK_PLACES = 8;

/** One finding a semaphore. */
export function* exhaustedPools(
  looks: readonly (LockLook & { readonly at: Seconds })[],
): Iterable<UnnumberedFinding> {
  const said = new Set<string>();
  for (const look of looks.toReversed()) {
    for (const object of look.objects) {
      if (said.has(object.id) || !isUsedUp(object)) continue;
      const finding = findingOf(look, object);
      if (finding === null) continue;
      said.add(object.id);
      yield finding;
    }
  }
}

function isUsedUp({ kind, value, items }: LockObject): boolean {
  return (kind === 'semaphore' && value === 0) || (kind === 'queue' && items === 0);
}

function findingOf(
  look: LockLook & { readonly at: Seconds },
  semaphore: LockObject,
): UnnumberedFinding | null {
  const waiters = look.actors.filter(
    (actor) =>
      actor.kind === 'thread' &&
      actor.on === semaphore.id &&
      !actor.isTimed &&
      look.at - actor.since >= STUCK_FOR,
  );
  const [first] = waiters;
  if (first === undefined || waiters.length < POOL_WAITERS) return null;
  const pool = poolName(first.name);
  // A thread of the pool that does anything else could give a permit back, or take the next piece of work.
  const elsewhere = [
    ...look.others,
    ...look.actors.filter(({ on }) => on !== semaphore.id).map(({ name }) => name),
  ].some((name) => poolName(name) === pool);
  if (elsewhere || waiters.some(({ name }) => poolName(name) !== pool)) return null;
  const served = look.tasks.filter(({ count }) => count >= 1);
  const coroutine = busiest(served);
  const work = served.filter((group) => group.coroutine === coroutine);
  const count = sum(work);
  const isWaiting = work.every(
    ({ wait, since }) => INNER_WAIT.test(wait) && look.at - since >= STUCK_FOR,
  );
  if (count <= waiters.length || !isWaiting) return null;
  // Threads without work wait for a queue as well: here tasks wait for what they gave these threads to do.
  const given = work.filter(({ frames }) => frames.some(({ function: name }) => HANDED.test(name)));
  if (semaphore.kind === 'queue' && sum(given) < waiters.length) return null;
  const lasted =
    look.at - Math.max(...waiters.map(({ since }) => since), ...work.map(({ since }) => since));
  const rest = work.filter(({ wait }) => wait !== 'future' && wait !== 'executor');
  return {
    code: 'TRC105',
    kind: 'deadlock',
    mechanism: 'pool exhaustion',
    severity: 'critical',
    confidence: 'likely',
    pid: look.pid,
    summary: `all ${waiters.length} threads of pool ${pool} wait in ${placeName(first)} for ${semaphore.label}, ${semaphore.kind === 'queue' ? 'which is empty' : 'of which no permit is left'}, and ${count} ${coroutine} wait behind them; nothing moved for ${formatSeconds(lasted)}`,
    where: [...placesOf(first), ...rest.slice(0, 1).flatMap(({ frames }) => taskPlaces(frames))],
    evidence: [
      {
        kind: 'pool',
        summary: `${waiters.length} threads, no other of that name, waited without a time-out and without having run: ${waiters
          .slice(0, 3)
          .map((one: LockActor) => actorName(one))
          .join(', ')}${waiters.length > 3 ? ', …' : ''}`,
        data: { pool, threads_count: waiters.length, semaphore: semaphore.id },
      },
      ...work.slice(0, 8).map((group) => ({
        kind: 'work',
        summary: `${group.count} ${group.coroutine} wait for ${group.wait} at ${group.frames
          .slice(0, 4)
          .map(({ function: name }) => name)
          .join(' in ')}`,
        data: { count: group.count, wait: group.wait },
      })),
    ],
    measure: { lasted_s: lasted, threads_count: waiters.length, waiting_count: count },
    remedy:
      'give the permit back without a thread of the same pool, or do not block a thread of the pool while waiting for a permit',
  };
}

function sum(groups: readonly { readonly count: number }[]): number {
  return groups.reduce((total, { count }) => total + count, 0);
}

/** `AnyIO worker thread`, `ThreadPoolExecutor-0`: names of a pool's threads differ in a number at the end. */
function poolName(name: string): string {
  return name.replace(/[\s_-]*\d+$/, '');
}

function busiest(
  groups: readonly { readonly coroutine: string; readonly count: number }[],
): string {
  const counts = new Map<string, number>();
  for (const { coroutine, count } of groups)
    counts.set(coroutine, (counts.get(coroutine) ?? 0) + count);
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? '';
}

function taskPlaces(frames: LockLook['tasks'][number]['frames']): readonly Place[] {
  return frames
    .filter(({ file }) => frameOrigin(file).kind !== 'standard-library')
    .slice(0, WORK_PLACES)
    .map((frame) => ({
      function: frame.function,
      file: frame.file,
      line: frame.line,
      module: frameOrigin(frame.file).module,
      thread: null,
      share: 1,
    }));
}
