import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { frameOrigin } from '../core/place.ts';
import { METRIC, SNAPSHOT } from '../core/semconv.ts';
import { type TasksSnapshotGroup, toTasksSnapshot } from '../core/tasks-snapshot.ts';
import { printable } from '../core/text.ts';
import { trendOf } from '../core/trend.ts';
import type {
  Detector,
  Place,
  Ratio,
  RecordingView,
  UnnumberedFinding,
  MechanismOf,
} from '../core/types.ts';
import {
  type Growth,
  grows,
  inconclusiveFinding,
  leakFinding,
  type Least,
} from './growth-finding.ts';

/**
 * TRC114: asyncio tasks that grow in number and do not level off. The number is read each second; whose they are is told by the first and the
 * last look at what the tasks do: the coroutine that accounts for most of the growth. Assumed: the tasks looked at are like those that were not (`read`
 * of `total`), and what stays through the run would stay after it.
 */

/** A task more every two seconds; each holds a coroutine with its frames, some kilobytes, and what those refer to. */
const LEAST: Least = { rise: 16, ratio: 0.25 };
/** In seconds: above a burst of requests, and half as many again as there were. */
const LEAST_SHORT: Least = { rise: 40, ratio: 0.5 };
/** A coroutine accounts for more than half of what all of them grew by, else it is one of several. */
const OWNER_SHARE: Ratio = 0.5;
/** What the looks saw grow, of what the number grew by; less means that it is not living tasks that grow. */
const SEEN_SHARE: Ratio = 0.5;
/** Each of these is a client that is connected: more of them may be more clients. */
const CLIENT_WAITS: ReadonlySet<string | null> = new Set(['stream-read', 'socket']);
const NAME = 80;

export const taskLeak: Detector = {
  code: 'TRC114',
  *detect(view) {
    for (const { at, value } of view.series(METRIC.asyncioTasks.name)) {
      const trend = trendOf(at, value);
      if (!grows(trend, LEAST, LEAST_SHORT)) continue;
      yield findingOf(view, { what: 'asyncio tasks', verb: 'grow', unit: 'count', trend });
    }
  },
};

/** The coroutine whose tasks grew, where most of them are now. */
interface GrownCoroutine {
  readonly coroutine: string;
  readonly rise: number;
  readonly share: Ratio;
  /** The group of it that is largest at the end. */
  readonly group: TasksSnapshotGroup;
}

function findingOf(view: RecordingView, growth: Growth): UnnumberedFinding {
  const rise = growth.trend.last - growth.trend.first;
  const looks = view.snapshots(SNAPSHOT.tasks).flatMap(({ body }) => toTasksSnapshot(body) ?? []);
  const [first, last] = [looks[0], looks.at(-1)];
  if (first === undefined || last === undefined || first === last)
    return inconclusiveFinding(view, growth, {
      why: 'whose they are could not be seen',
      remedy: 'Watch longer: what the tasks do is read once some have come, and at the end.',
    });
  const { grown, owner } = ownerOf(first.groups, last.groups);
  if (grown < rise * SEEN_SHARE)
    return inconclusiveFinding(view, growth, {
      why: 'most of them are done and still referred to, or moved too fast to be read',
      remedy: 'Look for a list or set that finished tasks are put into and never taken out of.',
    });
  if (owner === null)
    return inconclusiveFinding(view, growth, {
      why: 'they are of many coroutines, none of which stands out',
      remedy: 'Compare with the number of requests under way: this may be load that rises.',
    });
  if (CLIENT_WAITS.has(owner.group.wait))
    return inconclusiveFinding(view, growth, {
      why: `they are of ${named(owner.coroutine)} and wait for data of a connection, which may be clients that become more`,
      remedy: 'Watch longer under steady load, and compare with the number of clients.',
    });
  return leakOf(view, growth, owner);
}

function leakOf(
  view: RecordingView,
  growth: Growth,
  { coroutine, rise, share, group }: GrownCoroutine,
): UnnumberedFinding {
  const name = named(coroutine);
  const { place, own = null, parent, wait } = group;
  // Whose tasks they are first; where they wait may be deep in a library that they call.
  const isWithin = own !== null && (own.function !== place?.function || own.file !== place.file);
  const where = [isWithin ? own : null, place].flatMap((frame) =>
    frame === null ? [] : [placeOf(frame, share)],
  );
  const waitsFor = mechanismOf('task-leak', wait);
  const waits = wait === null ? '' : `, each waiting for ${WAITED[waitsFor ?? 'other']}`;
  const at =
    place === null
      ? ''
      : ` in ${named(place.function)} (${printable(place.file, 200)}${place.line === null ? '' : `:${place.line}`})`;
  const whose = parent === null ? '' : `; ${named(parent)} waits for them`;
  const finding = leakFinding(view, growth, {
    code: 'TRC114',
    kind: 'task-leak',
    mechanism: waitsFor,
    owned: `most of them of ${name}${waits}${at}${whose}`,
    owner: { name, rise, share },
    remedy:
      parent === null
        ? 'Nobody waits for them: give each an end (a time-out, a bound on how many there are), and keep and await what create_task() gives.'
        : 'Bound how many there are at a time (a semaphore, a queue with workers), and give what they wait for a time-out.',
  });
  return { ...finding, where };
}

const WAITED: Readonly<Record<MechanismOf<'task-leak'>, string>> = {
  sleep: 'a sleep to end',
  lock: 'a lock',
  semaphore: 'a semaphore',
  condition: 'a condition',
  event: 'an event',
  barrier: 'a barrier',
  'queue-get': 'a queue to fill',
  'queue-put': 'room in a queue',
  'stream-read': 'something',
  'stream-write': 'a stream to drain',
  socket: 'something',
  subprocess: 'a subprocess',
  executor: 'a thread of a pool',
  gather: 'other tasks',
  wait: 'other tasks',
  'task-group': 'other tasks',
  task: 'another task',
  future: 'a future',
  other: 'something',
};

function placeOf(place: NonNullable<TasksSnapshotGroup['place']>, share: Ratio): Place {
  return { ...place, module: frameOrigin(place.file).module, thread: null, share };
}

/** Which coroutine grew most from one look to another, when it accounts for most; and what all that grew did by. */
function ownerOf(
  before: readonly TasksSnapshotGroup[],
  after: readonly TasksSnapshotGroup[],
): { readonly grown: number; readonly owner: GrownCoroutine | null } {
  const rises = new Map<string, number>();
  for (const { coroutine, count } of after)
    rises.set(coroutine, (rises.get(coroutine) ?? 0) + count);
  for (const { coroutine, count } of before)
    rises.set(coroutine, (rises.get(coroutine) ?? 0) - count);
  const grown = [...rises.values()].reduce((sum, rise) => sum + Math.max(0, rise), 0);
  const [most] = [...rises].toSorted((a, b) => b[1] - a[1]);
  if (most === undefined || grown <= 0 || most[1] <= grown * OWNER_SHARE)
    return { grown, owner: null };
  const [coroutine, rise] = most;
  const [group] = after
    .filter((one) => one.coroutine === coroutine)
    .toSorted((a, b) => b.count - a.count);
  return {
    grown,
    owner: group === undefined ? null : { coroutine, rise, share: rise / grown, group },
  };
}

function named(text: string): string {
  return printable(text, NAME);
}
