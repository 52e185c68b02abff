import { type MissedLook, toMissedLook } from '../core/missed-look.ts';
import { frameOrigin } from '../core/place.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { RecordingView, Seconds, UnnumberedFinding } from '../core/types.ts';

/**
 * Tasks that wait for a condition of asyncio although what they wait for is there and nobody has its lock: the notification went to a task that
 * did not use it, or there was none. Assumed: who makes it true notifies at once, not later for several.
 */

/** Such looks; who notifies for several at a time is seen between two of them once. */
const LOOKS = 2;
const PLACES = 6;
const TEXT_LIMIT = 100;

interface Look extends MissedLook {
  readonly at: Seconds;
}

/** One finding a condition. */
export function* missedWakeUps(view: RecordingView): Iterable<UnnumberedFinding> {
  const conditions = new Map<string, Look[]>();
  for (const { at, body } of view.snapshots(SNAPSHOT.missed)) {
    const look = toMissedLook(body);
    if (look === undefined) continue;
    const key = `${look.pid} ${look.condition}`;
    conditions.set(key, [...(conditions.get(key) ?? []), { ...look, at }]);
  }
  for (const looks of conditions.values()) {
    const last = looks.at(-1);
    const moments = new Set(looks.map(({ at }) => Math.round(at * 2)));
    if (last !== undefined && moments.size >= LOOKS) yield findingOf(last, moments.size);
  }
}

function findingOf(last: Look, looks: number): UnnumberedFinding {
  const expression = printable(last.expression, TEXT_LIMIT);
  const own = last.frames.findIndex(({ file }) => frameOrigin(file).kind !== 'standard-library');
  const caller = last.frames[Math.max(0, own)];
  const where = caller === undefined ? 'a condition' : `${caller.function}`;
  const frames = [
    ...(caller === undefined ? [] : [caller]),
    ...last.frames.filter((frame) => frame !== caller),
  ];
  return {
    code: 'TRC105',
    kind: 'deadlock',
    mechanism: 'lost wake-up',
    severity: 'warning',
    confidence: 'likely',
    pid: last.pid,
    summary: `a task waits for a Condition in ${printable(where, TEXT_LIMIT)} although ${expression}, which it waits for, is there and the condition's lock is free, in ${looks} looks: it was not woken`,
    where: frames.slice(0, PLACES).map((frame) => ({
      ...frame,
      module: frameOrigin(frame.file).module,
      thread: null,
      share: 1,
    })),
    evidence: [
      {
        kind: 'state',
        summary: `task ${printable(last.task, TEXT_LIMIT)} waited through three readings, in which the loop turned or had nothing to do, while ${expression} was true (${last.items} in it)`,
        data: { condition: last.condition, expression, items_count: last.items },
      },
    ],
    measure: { looks_count: looks, items_count: last.items },
    remedy:
      'notify for each item, and pass the notification on when a waiter is cancelled (asyncio.Condition itself does so in Python 3.13)',
  };
}
