import { heapGrowth, type HeapGrowth } from '../core/heap-growth.ts';
import type { HeapCode, HeapHolder, HeapLook } from '../core/heap-look.ts';
import { readHeapSnapshot } from '../core/heap-snapshot.ts';
import { frameOrigin } from '../core/place.ts';
import { SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Bytes, Evidence, Place, Ratio, RecordingView, Seconds } from '../core/types.ts';
import { formatBytes, formatSeconds } from '../core/units.ts';
import type { Owner } from './growth-owner.ts';

/** Which objects grew while memory did, and who holds them: from looks at the heap (snapshots of `heap`). */

/** A container that holds less of the growth than that is not what grows. */
const HOLDER_SHARE: Ratio = 0.3;
/** What entries refer to is counted to a small depth only: a container beside which hardly another grew stands for what hangs on its entries. */
const LONE_SHARE: Ratio = 0.15;
/** All other containers that grew, beside a lone one. */
const OTHERS_SHARE: Ratio = 0.5;
/** Callables in a container of any kind: callbacks, listeners, hooks. */
const CALLABLES: ReadonlySet<string> = new Set([
  'function',
  'method',
  'builtin_function_or_method',
  'functools.partial',
  'weakref.WeakMethod',
]);
/** What is of use only as long as something is under way: whoever keeps ever more of them has forgotten to let go. */
const UNCACHED: ReadonlySet<string> = new Set([
  '_thread.lock',
  '_thread.RLock',
  'threading.Thread',
  '_asyncio.Future',
  '_asyncio.Task',
  'coroutine',
  'generator',
  'async_generator',
  'frame',
  'traceback',
  'socket.socket',
]);
/** Less of the newest of a type is no more than the code that happens to be made most. */
const CODE_SHARE: Ratio = 0.5;
const TEXT_LIMIT = 200;
/** Two looks make one rate, and three the first two that can be compared. */
const STEADY_LOOKS = 3;
/** A later rate below this share of the first is a cache that is about full: an exponential filling falls to it when half is in. */
const STEADY_SHARE: Ratio = 0.5;

/** Entries that have no memory outside of themselves: what a container of them gains is known. */
const PLAIN: ReadonlySet<string> = new Set(
  'int float complex bool NoneType str bytes range type function'.split(' '),
);
/** Fewer new entries are traffic (as in core/heap-growth.ts). */
const LEAST_ENTRIES = 64;
/** What an entry has outside of the interpreter's objects (an array's numbers, a stream's text) is at least of this size to be told apart from allocators that grow. */
const LEAST_OUTSIDE: Bytes = 1024;

/** What grew, and who holds it. */
export interface HeldGrowth {
  readonly mechanism: 'listeners' | 'python-objects' | 'native-held';
  /** As a sentence ends: `held by app.cache._store`. */
  readonly owned: string;
  readonly owner: Owner;
  /** The class that holds it first, then the way to it. */
  readonly places: readonly Place[];
  readonly evidence: Evidence;
  readonly pid: number;
  readonly elapsed: Seconds;
  /** Whether three looks or more saw it grow at much the same rate. */
  readonly isSteady: boolean;
  /** Whether it is known what holds it. */
  readonly isHeld: boolean;
  /** Whether it is of a kind that no cache keeps. */
  readonly isUncached: boolean;
}

/** The container or type behind the growth of memory; null where no look was taken, or none of what grew is in objects. */
export function heldGrowth(view: RecordingView): HeldGrowth | null {
  let best: HeldGrowth | null = null;
  for (const [pid, looks] of looksByProcess(view)) {
    const held = heldIn(pid, looks);
    if (held !== null && (best === null || held.owner.rise > best.owner.rise)) best = held;
  }
  return best;
}

/** Whether objects were looked at while memory grew, and did not grow with it: then it is native memory. */
export function isOutsideOfObjects(view: RecordingView): boolean {
  const all = [...looksByProcess(view).values()].flatMap((looks) => between(looks) ?? []);
  return all.length > 0 && all.every(({ verdict }) => verdict === 'native');
}

/** The looks at the objects of each Python process, in the order of time. */
export function looksByProcess(view: RecordingView): ReadonlyMap<number, readonly HeapLook[]> {
  const looks = new Map<number, HeapLook[]>();
  for (const { at, body } of view.snapshots(SNAPSHOT.heap)) {
    const read = readHeapSnapshot(at, body);
    if (read === null) continue;
    const known = looks.get(read.pid);
    if (known === undefined) looks.set(read.pid, [read.look]);
    else known.push(read.look);
  }
  return looks;
}

function between(all: readonly HeapLook[]): HeapGrowth | null {
  // Two that counted all objects say more than any that did not.
  const counted = all.filter(({ onlyReachable }) => onlyReachable !== true);
  const looks = counted.length >= 2 ? counted : all;
  const [first] = looks;
  const last = looks.at(-1);
  return first === undefined || last === undefined || looks.length < 2
    ? null
    : heapGrowth(first, last);
}

function heldIn(pid: number, looks: readonly HeapLook[]): HeldGrowth | null {
  const growth = between(looks);
  if (growth === null) return null;
  const whole: Bytes = Math.max(growth.resident ?? 0, growth.objects);
  // Of what grew: what each look found larger than the one before, and not only the last.
  const container = growth.containers.find(({ container: { id } }) => risesThrough(looks, id));
  const share = container === undefined ? 0 : Math.min(1, container.addedBytes / whole);
  if (growth.verdict === 'container' && container !== undefined) {
    const steady = isSteady(looks, (look) => entriesOf(look, container.container.id));
    if (share >= (isAlone(growth, container) ? LONE_SHARE : HOLDER_SHARE))
      return {
        ...ofContainer(pid, growth, { change: container, share }),
        isSteady: steady,
      };
  }
  if (growth.verdict === 'native') return outsideHeld(pid, looks, growth);
  const [type] = growth.types;
  const typeShare = type === undefined ? 0 : Math.min(1, type.addedBytes / whole);
  if (type === undefined || typeShare < HOLDER_SHARE) return null;
  const kind = printable(type.type, TEXT_LIMIT);
  const code = type.code !== null && type.code.share >= CODE_SHARE ? type.code : null;
  const name = code === null ? kind : `${kind} ${printable(code.function, TEXT_LIMIT)}`;
  return {
    mechanism: 'python-objects',
    owned: `most of it in objects of type ${kind}${code === null ? '' : `, of ${printable(code.function, TEXT_LIMIT)}`}`,
    owner: { name, rise: type.addedBytes, share: typeShare },
    // Nobody who holds them can be named: their code, or their class where it is not one of Python’s own, is all that is known of where they come from.
    places: placesOfType(kind, code, typeShare),
    isHeld: false,
    isUncached: UNCACHED.has(type.type),
    isSteady: isSteady(looks, (look) => countOf(look, type.type)),
    evidence: {
      kind: 'heap',
      summary: `${name}: ${type.addedCount} more objects in ${formatSeconds(growth.elapsed)}; what holds them was not found`,
      data: { type: name, added_count: type.addedCount, added_bytes: type.addedBytes },
    },
    pid,
    elapsed: growth.elapsed,
  };
}

/**
 * Memory that is in no object of the interpreter's (arrays of numbers, tensors, images, streams: their objects are small, what they stand for
 * is not) and yet held by objects: one container gains entries in each of three looks or more at much the same rate, and no other gains half as
 * many bytes. Null where that cannot be said: then the memory is a library's or an allocator's.
 */
function outsideHeld(
  pid: number,
  looks: readonly HeapLook[],
  growth: HeapGrowth,
): HeldGrowth | null {
  const { resident, elapsed } = growth;
  const change = growth.containers.find(
    ({ container: { id, content, at }, addedCount }) =>
      at !== null &&
      content !== null &&
      !PLAIN.has(content) &&
      addedCount >= LEAST_ENTRIES &&
      isSteady(looks, (look) => entriesOf(look, id)),
  );
  if (change === undefined || resident === null || !isAlone(growth, change)) return null;
  const each = resident / change.addedCount;
  if (each < LEAST_OUTSIDE) return null;
  const held = ofContainer(pid, growth, { change, share: 1 });
  return {
    ...held,
    mechanism: 'native-held',
    owner: { name: held.owner.name, rise: resident, share: 1 },
    evidence: {
      ...held.evidence,
      summary: `${held.evidence.summary}; memory outside of Python's objects grew with it, ${formatBytes(each)} for each entry`,
      data: {
        ...held.evidence.data,
        resident_per_entry_bytes: Math.round(each),
        elapsed_s: elapsed,
      },
    },
    isSteady: true,
  };
}

function placesOfType(type: string, code: HeapCode | null, share: Ratio): readonly Place[] {
  if (code !== null)
    return [
      { ...placeOf({ name: code.function, file: code.file }, share), line: Math.trunc(code.line) },
    ];
  return type.includes('.') ? [placeOf({ name: type, file: null }, share)] : [];
}

function risesThrough(looks: readonly HeapLook[], id: string): boolean {
  const entries = looks.flatMap(
    ({ containers }) => containers.find((one) => one.id === id)?.entries ?? [],
  );
  return entries.every((count, i) => i === 0 || count > (entries[i - 1] ?? 0));
}

export function placeOf({ name, file }: HeapHolder, share: Ratio): Place {
  return {
    function: printable(name, TEXT_LIMIT),
    file: printable(file ?? '', 1024),
    line: null,
    module: file === null ? null : frameOrigin(file).module,
    thread: null,
    share,
  };
}

function entriesOf({ containers }: HeapLook, id: string): number | null {
  return containers.find((one) => one.id === id)?.entries ?? null;
}

function countOf({ types }: HeapLook, type: string): number | null {
  const all = types.filter((one) => one.type === type);
  return all.length === 0 ? null : all.reduce((sum, { count }) => sum + count, 0);
}

function isAlone({ containers }: HeapGrowth, one: HeapGrowth['containers'][number]): boolean {
  const all = containers.reduce((sum, { addedBytes }) => sum + addedBytes, 0);
  return all - one.addedBytes < one.addedBytes * OTHERS_SHARE;
}

/** Whether a number that was seen in three looks or more grew from each to the next, no slower than half as fast as at first. */
function isSteady(
  looks: readonly HeapLook[],
  numberOf: (look: HeapLook) => number | null,
): boolean {
  const seen = looks.flatMap((look) => {
    const value = numberOf(look);
    return value === null ? [] : [{ at: look.at, value }];
  });
  const rates = seen.slice(1).map(({ at, value }, i) => {
    const before = seen[i];
    return before === undefined ? 0 : (value - before.value) / (at - before.at);
  });
  const [first = 0] = rates;
  return (
    seen.length >= STEADY_LOOKS && first > 0 && rates.every((rate) => rate >= first * STEADY_SHARE)
  );
}

function ofContainer(
  pid: number,
  { elapsed }: HeapGrowth,
  { change, share }: { change: HeapGrowth['containers'][number]; share: Ratio },
): Omit<HeldGrowth, 'isSteady'> {
  const { type, content, at } = change.container;
  const kind = printable(type, TEXT_LIMIT);
  const of = content === null ? '' : ` of ${printable(content, TEXT_LIMIT)}`;
  const path = at === null ? null : printable(at.path, TEXT_LIMIT);
  const name = path ?? `a ${kind}${of}`;
  const isListeners = content !== null && CALLABLES.has(content);
  const file = at?.file ?? at?.module ?? null;
  return {
    mechanism: isListeners ? 'listeners' : 'python-objects',
    owned: `held by ${name}${path === null ? '' : ` (${kind}${of})`}`,
    owner: { name, rise: change.addedBytes, share },
    places: [
      ...(at?.holder ? [placeOf(at.holder, share)] : []),
      ...(path === null
        ? []
        : [{ ...placeOf({ name: path, file }, share), ...(at === null ? {} : { line: at.line }) }]),
    ],
    evidence: {
      kind: 'heap',
      summary: `${name}: from ${change.count - change.addedCount} to ${change.count} entries in ${formatSeconds(elapsed)}, a ${kind}${of}`,
      data: {
        path,
        type: kind,
        content,
        held_by: at?.owner ?? null,
        entries_count: change.count,
        added_entries_count: change.addedCount,
        added_bytes: change.addedBytes,
        bytes: change.bytes,
      },
    },
    pid,
    elapsed,
    isHeld: true,
    isUncached: content !== null && UNCACHED.has(content),
  };
}
