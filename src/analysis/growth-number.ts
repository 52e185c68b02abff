import { heapGrowth } from '../core/heap-growth.ts';
import type { HeapLook } from '../core/heap-look.ts';
import { toThreadStacks } from '../core/otlp-records.ts';
import { frameOrigin, placeAt, rankPlaces } from '../core/place.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Evidence, Place, Ratio, RecordingView } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { looksByProcess, placeOf } from './growth-heap.ts';
import type { Growth } from './growth-finding.ts';

/**
 * Who holds what becomes more in number in a Python process (descriptors, threads): the objects that become as many more, and where threads that
 * came stand. From looks that are taken while the number grows.
 */

/** As many more a second, give or take: two objects a descriptor (a connection and its stream), or one for two (both ends in one process). */
const RATES: readonly [Ratio, Ratio] = [0.4, 2.2];
const LEAST_ADDED = 12;
const PLACES = 5;
const HOLDERS = 3;
const TEXT_LIMIT = 200;
/** Modules of the interpreter whose objects come with every descriptor or thread, and say nothing of who made them. */
const OF_PYTHON =
  /^(?:_(?!_main__)\w+|abc|array|asyncio|builtins|codecs|collections|concurrent|contextlib|contextvars|email|encodings|functools|http|inspect|io|itertools|json|logging|multiprocessing|os|pathlib|queue|re|select|selectors|signal|socket|socketserver|ssl|subprocess|sys|tempfile|threading|types|typing|urllib|uuid|uvloop|weakref)\./;

export interface NumberHolder {
  readonly places: readonly Place[];
  readonly evidence: readonly Evidence[];
}

/** Containers and types of objects that gained about as many as `growth` did; null where no look says so. */
export function holderOf(view: RecordingView, { trend }: Growth): NumberHolder | null {
  for (const looks of looksByProcess(view).values()) {
    const [before] = looks;
    const after = looks.at(-1);
    if (before === undefined || after === undefined || after.at <= before.at) continue;
    const { containers, types, elapsed } = heapGrowth(before, after);
    const isAsFast = ({ addedCount }: { addedCount: number }): boolean =>
      addedCount >= LEAST_ADDED &&
      addedCount >= trend.slope * elapsed * RATES[0] &&
      addedCount <= trend.slope * elapsed * RATES[1];
    const held = containers.filter((one) => one.container.at !== null && isAsFast(one));
    const made = types.filter(
      (one) =>
        one.type.includes('.') &&
        !OF_PYTHON.test(one.type) &&
        isAsFast(one) &&
        risesThrough(looks, one.type),
    );
    if (held.length + made.length === 0) continue;
    const own = held.filter((one) => !isLibrary(one));
    // What the library keeps of each (a selector's keys, a loop's transports) is told where nothing of the program's is known.
    const kept = (own.length + made.length > 0 ? own : held).slice(0, HOLDERS);
    const classes = made.slice(0, HOLDERS);
    const time = `in ${formatSeconds(elapsed)}, as fast as they grow`;
    return {
      places: [
        ...kept.flatMap(({ container: { at } }) =>
          at === null
            ? []
            : [
                ...(at.holder ? [placeOf(at.holder, 1)] : []),
                { ...placeOf({ name: at.path, file: at.file ?? at.module }, 1), line: at.line },
              ],
        ),
        ...classes.map(({ type }) => placeOf({ name: type, file: null }, 1)),
      ],
      evidence: [
        ...kept.map(({ container: { at, type, content }, addedCount }) =>
          evidenceOf(
            `${at?.path}: ${addedCount} more entries ${time}; a ${type}${content === null ? '' : ` of ${content}`}`,
            { path: at?.path ?? null, added_entries_count: addedCount },
          ),
        ),
        ...classes.map(({ type, addedCount }) =>
          evidenceOf(`${type}: ${addedCount} more objects ${time}`, {
            type,
            added_count: addedCount,
          }),
        ),
      ],
    };
  }
  return null;
}

function isLibrary({ container: { at } }: { container: HeapLook['containers'][number] }): boolean {
  return (
    at === null ||
    OF_PYTHON.test(`${at.module}.`) ||
    frameOrigin(at.file ?? '').kind === 'standard-library'
  );
}

/** Not where a look lacks the type: it had too few objects to be kept, and how many came is not known. */
function risesThrough(looks: readonly HeapLook[], type: string): boolean {
  const counts = looks
    .filter(({ onlyReachable }) => onlyReachable !== true)
    .map(({ types }) => types.reduce((sum, one) => sum + (one.type === type ? one.count : 0), 0));
  return counts.every((count, i) => count > (counts[i - 1] ?? 0));
}

function evidenceOf(summary: string, data: Readonly<Record<string, unknown>>): Evidence {
  return { kind: 'heap', summary: printable(summary, 2 * TEXT_LIMIT), data };
}

/** Where the threads stand that were not there when they were looked at first; empty where no such look was taken. */
export function newThreadPlaces(view: RecordingView): readonly Place[] {
  const looks = view
    .snapshots(SNAPSHOT.threads)
    .flatMap(({ body }) => toThreadStacks(body) ?? [])
    .filter(({ pid, threads }) => threads.every(({ tid }) => tid !== pid));
  const [first] = looks;
  const last = looks.at(-1);
  if (first === undefined || last === undefined) return [];
  const known = new Set(looks.length < 2 ? [] : first.threads.map(({ tid }) => tid));
  const stacks = last.threads
    .filter(({ tid, frames }) => !known.has(tid) && frames.length > 0)
    .map(({ frames }) => ({ frames, weight: 1 }));
  return rankPlaces(stacks, PLACES).map(({ frame, share }) => placeAt(frame, share));
}
