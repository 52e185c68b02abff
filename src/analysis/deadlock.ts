import { toLockLook, type LockActor, type LockLook, type LockObject } from '../core/lock-look.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import type {
  Detector,
  Evidence,
  RecordingView,
  Seconds,
  UnnumberedFinding,
  MechanismOf,
} from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { missedWakeUps } from './missed-wake-ups.ts';
import { lostConnections } from './lost-connections.ts';
import { lostOfThreads } from './thread-pools.ts';
import { exhaustedPools } from './pool-exhaustion.ts';
import { actorName, placeName, placesOf, position } from './wait-places.ts';
import { waitCycles, type WaitEdge } from './wait-cycles.ts';

/**
 * TRC105 deadlock: threads or tasks that wait for one another, and a wake-up that was lost. Assumed: a lock is given back by who took it, and
 * none of the waits has a time-out; both are as the look says, and a thread that has not run since is where it was.
 */
const CODE = 'TRC105';

/** Every member of a circle must have stood still for so long, in which it did not run at all. A circle of locks never opens again. */
const CIRCLE_AFTER: Seconds = 1;
/**
 * What is waited for is there and the waiter has not run for so long. A woken thread waits for a core and for the GIL: 5 ms a thread that
 * wants it, a second with 200 of them.
 */
const LOST_AFTER: Seconds = 4;

export const deadlock: Detector = {
  code: CODE,
  *detect(view) {
    const looks = looksOf(view);
    yield* circles(looks);
    yield* lostWakeUps(looks);
    yield* exhaustedPools(looks);
    yield* lostConnections(view);
    yield* lostOfThreads(view);
    yield* missedWakeUps(view);
  },
};

interface Look extends LockLook {
  readonly at: Seconds;
}

function looksOf(view: RecordingView): readonly Look[] {
  return view.snapshots(SNAPSHOT.locks).flatMap(({ at, body }) => {
    const look = toLockLook(body);
    return look === undefined ? [] : [{ ...look, at }];
  });
}

function* circles(looks: readonly Look[]): Iterable<UnnumberedFinding> {
  const found = new Map<string, { readonly cycle: readonly WaitEdge[]; readonly look: Look }>();
  for (const look of looks) {
    for (const cycle of waitCycles(look)) {
      if (cycle.some(({ waiter }) => look.at - waiter.since < CIRCLE_AFTER)) continue;
      const ids = cycle.map(({ waiter }) => waiter.id).toSorted();
      found.set(ids.join('\n'), { cycle, look });
    }
  }
  // Two circles with a member in common are one deadlock: a task that waits for ten children is in ten.
  const said = new Set<string>();
  for (const { cycle, look } of found.values()) {
    const ids = cycle.map(({ waiter }) => waiter.id);
    if (!ids.some((id) => said.has(id))) yield circleFinding(cycle, look);
    for (const id of ids) said.add(id);
  }
}

function circleFinding(cycle: readonly WaitEdge[], look: Look): UnnumberedFinding {
  const lasted = look.at - Math.max(...cycle.map(({ waiter }) => waiter.since));
  const members = new Set(cycle.map(({ waiter }) => waiter.id));
  const inCircle = new Set(cycle.map(({ object }) => object.id));
  const behind = look.actors.filter(
    ({ id, on }) => !members.has(id) && on !== null && inCircle.has(on),
  );
  return {
    code: CODE,
    kind: 'deadlock',
    mechanism: mechanismOf(cycle),
    severity: 'critical',
    confidence: 'confirmed',
    pid: look.pid,
    summary: `${summaryOf(cycle)}, for ${formatSeconds(lasted)}${behind.length > 0 ? `; ${behind.length} more wait behind them` : ''}`,
    where: cycle.flatMap(({ waiter }) => placesOf(waiter)),
    evidence: [
      edgeEvidence(cycle[0] as WaitEdge),
      ...cycle.slice(1).map((edge) => edgeEvidence(edge)),
      ...behind.slice(0, 8).map((actor) => waiterEvidence(actor)),
    ],
    measure: { lasted_s: lasted, members_count: cycle.length, behind_count: behind.length },
    remedy: remedyOf(cycle),
  };
}

function mechanismOf(cycle: readonly WaitEdge[]): MechanismOf<'deadlock'> {
  if (cycle.some(({ owner, holder }) => owner.runsLoop && holder.how === 'setter'))
    return 'loop waits for itself';
  return cycle.length === 1 ? 'lock taken twice' : 'lock order';
}

function summaryOf(cycle: readonly WaitEdge[]): string {
  const [first] = cycle;
  if (first !== undefined && cycle.length === 1) {
    const { waiter, object, holder } = first;
    return holder.how === 'setter'
      ? `${actorName(waiter)} waits in ${placeName(waiter)} for a ${object.kind} that only its own event loop can complete`
      : `${actorName(waiter)} waits in ${placeName(waiter)} for ${object.label}, which it has itself`;
  }
  const steps = cycle.map(
    ({ waiter, object, owner, holder }) =>
      `${actorName(waiter)} waits in ${placeName(waiter)} for ${object.label}, which ${actorName(owner)} ${holder.how === 'setter' ? 'has to complete' : 'has'}`,
  );
  return steps.join('; ');
}

function remedyOf(cycle: readonly WaitEdge[]): string {
  if (mechanismOf(cycle) === 'loop waits for itself')
    return 'await the coroutine instead of blocking the thread of its loop, or wait for it in another thread';
  return cycle.length === 1
    ? 'take the lock once, or make it one that its owner may take again (RLock)'
    : 'take the locks in the same order everywhere, or take them with a time-out';
}

function edgeEvidence({ waiter, object, holder, owner }: WaitEdge): Evidence {
  const by =
    holder.frame === null ? '' : ` in ${holder.frame.function} (${position(holder.frame)})`;
  const how =
    holder.how === 'owner'
      ? 'the lock names it as its owner'
      : holder.how === 'with'
        ? 'it is in the body of a with statement of that lock'
        : 'only it can complete that';
  return {
    kind: 'waits-for',
    summary: `${actorName(waiter)} waits without a time-out for ${object.kind} ${object.label} at ${placeName(waiter)}; ${actorName(owner)} has it${by}: ${how}`,
    data: { waiter: waiter.id, object: object.id, holder: owner.id, how: holder.how },
  };
}

function waiterEvidence(actor: LockActor): Evidence {
  return {
    kind: 'waits-behind',
    summary: `${actorName(actor)} waits at ${placeName(actor)}`,
    data: { waiter: actor.id, object: actor.on },
  };
}

/** What is waited for is there, and who waits for it has not moved. */
function* lostWakeUps(looks: readonly Look[]): Iterable<UnnumberedFinding> {
  const lastOf = new Map<string, { readonly object: LockObject; readonly look: Look }>();
  for (const look of looks)
    for (const object of look.objects) lastOf.set(object.id, { object, look });
  for (const { object, look } of lastOf.values()) {
    const there = whatIsThere(object);
    if (there === null) continue;
    const waiters = look.actors.filter(
      (actor) =>
        actor.on === object.id && isForIt(actor, object) && look.at - actor.since >= LOST_AFTER,
    );
    const [first] = waiters;
    // Seen in an earlier look too: that it was there at the very moment of a wake-up is ruled out.
    const before = looks.some(
      (other) =>
        other.at <= look.at - 1 &&
        other.objects.some((one) => one.id === object.id && whatIsThere(one) !== null) &&
        other.actors.some(
          ({ id, on, since }) => id === first?.id && on === object.id && since === first.since,
        ),
    );
    if (first !== undefined && before) yield lostFinding(object, there, { waiters, look });
  }
}

/** In words, what a waiter for it could take; null when there is nothing, or that cannot be told. */
function whatIsThere({ kind, taken, value, items }: LockObject): string | null {
  switch (kind) {
    case 'lock':
      return taken === false ? 'the lock is free' : null;
    case 'semaphore':
      return value !== null && value > 0 ? `${value} permits are left` : null;
    case 'queue':
      return items !== null && items > 0 ? `${items} items are in the queue` : null;
    case 'event':
      return taken === true ? 'the event is set' : null;
    case 'future':
      return taken === true ? 'it is done' : null;
    default:
      return null; // of a condition only the program knows
  }
}

/** Whether it waits for what is there: who puts into a queue, or joins it, waits for the opposite. */
function isForIt({ frames, caller, kind: actor, wait }: LockActor, { kind }: LockObject): boolean {
  if (actor === 'task' && kind === 'queue') return wait === 'queue-get';
  return (
    kind !== 'queue' ||
    frames.slice(0, caller).some(({ function: name }) => /(?:^|\.)get$/.test(name))
  );
}

function lostFinding(
  object: LockObject,
  there: string,
  { waiters, look }: { readonly waiters: readonly LockActor[]; readonly look: Look },
): UnnumberedFinding {
  const lasted = look.at - Math.max(...waiters.map(({ since }) => since));
  const [first] = waiters;
  const who = first === undefined ? 'nobody' : actorName(first);
  const more = waiters.length > 1 ? ` and ${waiters.length - 1} more` : '';
  return {
    code: CODE,
    kind: 'deadlock',
    mechanism: 'lost wake-up',
    severity: 'warning',
    confidence: 'likely',
    pid: look.pid,
    summary: `${who}${more} waits for ${object.kind} ${object.label} although ${there}, for ${formatSeconds(lasted)}: it was not woken`,
    where: first === undefined ? [] : placesOf(first),
    evidence: [
      {
        kind: 'state',
        summary: `${there}, and ${waiters.length} waited for it in two looks without having run in between`,
        data: { object: object.id, kind: object.kind },
      },
      ...waiters.slice(0, 8).map((actor) => waiterEvidence(actor)),
    ],
    measure: { lasted_s: lasted, waiters_count: waiters.length },
    remedy: 'notify for each item, and pass the notification on when a waiter is cancelled',
  };
}
