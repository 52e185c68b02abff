import { frameOrigin } from '../core/place.ts';
import { POOL_TASKS, type PoolLook, toPoolLook } from '../core/pool-look.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Place, RecordingView, Seconds, UnnumberedFinding } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';

/**
 * A pool whose connections are all taken while no task is left that could have one: each look at all tasks found several that wait for a
 * connection, and none that uses one. Assumed: a connection is used by a task, and that task can be told (pool-look.ts). Where others wait each
 * time that is all it takes. Where they are always the same they may be workers that wait for work, and what the pool says of itself decides:
 * connections that it counts as taken are lost; where it counts none as taken, one is free, and who waits was not woken.
 */

/** Such looks; in a pool that is busy the first one already finds who uses its connections. */
const LOOKS = 3;
const STUCK_FOR: Seconds = 3;
/** Of waiters that are the same in all looks: a pool that makes a connection for each of them has nobody wait for so long. */
const STOOD_FOR: Seconds = 5;
/** Where pools keep what they have given out (aiohttp `_acquired`, redis `_in_use_connections`, aiomysql `_used`); not of workers, which are `busy`. */
const GIVEN_OUT =
  /^_*(?:in_?use|acquired|checked_?out|used|borrowed|leased)(?:_(?:connections?|conns?|clients|items|objects|resources))?$/i;
const PLACES = 6;
const TEXT_LIMIT = 100;

interface Look extends PoolLook {
  readonly at: Seconds;
}

/** One finding a pool. */
export function* lostConnections(view: RecordingView): Iterable<UnnumberedFinding> {
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
    const lasted = last.at - first.at;
    if (longest.length < LOOKS || lasted < STUCK_FOR) continue;
    const known = new Set(first.waiters);
    // Workers that wait for work are the same for ever; whoever needs a connection is joined by others.
    if (longest.some(({ waiters }) => waiters.some((id) => !known.has(id))))
      yield exhausted(longest, 'others than before');
    else if (lasted >= STOOD_FOR && isSame(longest)) yield* standing(longest);
  }
}

function isSame(looks: readonly Look[]): boolean {
  const [first] = looks;
  return looks.every(({ waitersCount }) => waitersCount === first?.waitersCount);
}

/** Of a pool for which the same tasks wait in all looks. */
function* standing(looks: readonly Look[]): Iterable<UnnumberedFinding> {
  const given = looks.map(({ sizes }) =>
    Object.entries(sizes).filter(([name]) => GIVEN_OUT.test(name)),
  );
  const counts = new Set(given.map((of) => of.reduce((sum, [, size]) => sum + size, 0)));
  const [count] = counts;
  if (counts.size !== 1 || given.some((of) => of.length === 0)) return;
  if (count === 0) yield notWoken(looks, given[0]?.[0]?.[0] ?? '');
  else yield exhausted(looks, 'the same as before');
}

interface Told {
  readonly pool: string;
  readonly most: number;
  readonly lasted: Seconds;
  /** The pool's containers that have something. */
  readonly kept: string;
  readonly last: Look | undefined;
}

function told(looks: readonly Look[]): Told {
  const last = looks.at(-1);
  const sizes = Object.entries(last?.sizes ?? {})
    .filter(([, size]) => size > 0)
    .map(([name, size]) => `${printable(name, TEXT_LIMIT)} has ${size}`);
  return {
    pool: printable(last?.pool.type ?? '?', TEXT_LIMIT),
    most: Math.max(...looks.map(({ waitersCount }) => waitersCount)),
    lasted: (last?.at ?? 0) - (looks[0]?.at ?? 0),
    kept: sizes.length === 0 ? '' : `; of the pool, ${sizes.slice(0, 6).join(', ')}`,
    last,
  };
}

function exhausted(looks: readonly Look[], who: string): UnnumberedFinding {
  const { pool, most, lasted, kept, last } = told(looks);
  return {
    code: 'TRC105',
    kind: 'deadlock',
    mechanism: 'pool exhaustion',
    severity: 'critical',
    confidence: 'likely',
    pid: last?.pid ?? null,
    summary: `up to ${most} tasks at once wait for a connection of ${pool} and no task has one: all are taken, and nobody is left to give one back, for ${formatSeconds(lasted)}`,
    where: (last?.frames ?? []).slice(0, PLACES).map(placeOf),
    evidence: [
      {
        kind: 'pool',
        summary: `in each of ${looks.length} looks at all tasks at least ${POOL_TASKS} waited, ${who}, and none was in a call that uses ${pool}${kept}`,
        data: { pool: last?.pool.id ?? '', looks_count: looks.length, ...last?.sizes },
      },
    ],
    measure: { lasted_s: lasted, looks_count: looks.length, waiting_count: most },
    remedy:
      'give connections back also when a request is cancelled (shield the clean-up), and never take a second one while holding the first',
  };
}

function notWoken(looks: readonly Look[], container: string): UnnumberedFinding {
  const { pool, most, lasted, kept, last } = told(looks);
  const given = printable(container, TEXT_LIMIT);
  return {
    code: 'TRC105',
    kind: 'deadlock',
    mechanism: 'lost wake-up',
    severity: 'warning',
    confidence: 'likely',
    pid: last?.pid ?? null,
    summary: `the same ${most} tasks wait for a connection of ${pool} although none is taken (${given} is empty), for ${formatSeconds(lasted)}: they were not woken`,
    where: (last?.frames ?? []).slice(0, PLACES).map(placeOf),
    evidence: [
      {
        kind: 'pool',
        summary: `in each of ${looks.length} looks at all tasks the same ${most} waited, ${given} was empty, and no other task was in a call that uses ${pool}${kept}`,
        data: { pool: last?.pool.id ?? '', looks_count: looks.length, ...last?.sizes },
      },
    ],
    measure: { lasted_s: lasted, looks_count: looks.length, waiting_count: most },
    remedy:
      'who is woken and then cancelled, or fails, must wake the next one; wake in the same step that makes a connection free',
  };
}

function placeOf(frame: PoolLook['frames'][number]): Place {
  return { ...frame, module: frameOrigin(frame.file).module, thread: null, share: 1 };
}
