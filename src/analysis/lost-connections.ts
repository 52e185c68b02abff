import { frameOrigin } from '../core/place.ts';
import { POOL_TASKS, type PoolLook, toPoolLook } from '../core/pool-look.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Finding, Place, RecordingView, Seconds } from '../core/types.ts';

/**
 * A pool whose connections are all taken while no task is left that could have one: each look at all tasks found several that wait for a
 * connection, others each time, and none that uses one. Assumed: a connection is used by a task, and that task can be told (pool-look.ts).
 */

/** Such looks; in a pool that is busy the first one already finds who uses its connections. */
const LOOKS = 3;
const STUCK_FOR: Seconds = 3;
const PLACES = 6;
const TEXT_LIMIT = 100;

interface Look extends PoolLook {
  readonly at: Seconds;
}

/** One finding a pool. */
export function* lostConnections(view: RecordingView): Iterable<Omit<Finding, 'id'>> {
  const pools = new Map<string, Look[][]>();
  for (const { at, body } of view.snapshots(SNAPSHOT.pool)) {
    const look = toPoolLook(body);
    if (look === undefined) continue;
    const key = `${look.pid} ${look.pool.id}`;
    const runs = pools.get(key) ?? [[]];
    pools.set(key, runs);
    // Somebody had one: what was seen before was no more than a moment.
    if (look.users > 0) runs.push([]);
    else runs.at(-1)?.push({ ...look, at });
  }
  for (const runs of pools.values()) {
    const [longest] = runs.toSorted((a, b) => b.length - a.length);
    const [first] = longest ?? [];
    const last = longest?.at(-1);
    if (longest === undefined || first === undefined || last === undefined) continue;
    const known = new Set(first.waiters);
    // Workers that wait for work are the same for ever; whoever needs a connection is joined by others.
    const hasCome = longest.some(({ waiters }) => waiters.some((id) => !known.has(id)));
    if (longest.length >= LOOKS && hasCome && last.at - first.at >= STUCK_FOR)
      yield findingOf(longest, first, last);
  }
}

function findingOf(looks: readonly Look[], first: Look, last: Look): Omit<Finding, 'id'> {
  const lasted = last.at - first.at;
  const pool = printable(last.pool.type, TEXT_LIMIT);
  const most = Math.max(...looks.map(({ waitersCount }) => waitersCount));
  const sizes = Object.entries(last.sizes)
    .filter(([, size]) => size > 0)
    .map(([name, size]) => `${printable(name, TEXT_LIMIT)} has ${size}`);
  const kept = sizes.length === 0 ? '' : `; of the pool, ${sizes.slice(0, 6).join(', ')}`;
  return {
    code: 'TRC105',
    kind: 'deadlock',
    mechanism: 'pool exhaustion',
    severity: 'critical',
    confidence: 'likely',
    pid: last.pid,
    summary: `up to ${most} tasks at once wait for a connection of ${pool} and no task has one: all are taken, and nobody is left to give one back, for ${lasted.toFixed(0)} s`,
    where: last.frames.slice(0, PLACES).map(placeOf),
    evidence: [
      {
        kind: 'pool',
        summary: `in each of ${looks.length} looks at all tasks at least ${POOL_TASKS} waited, others than before, and none was in a call that uses ${pool}${kept}`,
        data: { pool: last.pool.id, looks_count: looks.length, ...last.sizes },
      },
    ],
    measure: { lasted_s: lasted, looks_count: looks.length, waiting_count: most },
    remedy:
      'give connections back also when a request is cancelled (shield the clean-up), and never take a second one while holding the first',
  };
}

function placeOf(frame: PoolLook['frames'][number]): Place {
  return { ...frame, module: frameOrigin(frame.file).module, thread: null, share: 1 };
}
