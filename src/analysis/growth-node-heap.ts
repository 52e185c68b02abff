import { readNodeHeapSnapshot } from '../core/node-heap-snapshot.ts';
import type { HeapSite, NodeHeapLook } from '../core/node-heap.ts';
import { frameOrigin, placeAt, rankPlaces } from '../core/place.ts';
import { ATTR, METRIC, SNAPSHOT } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import { theilSen } from '../core/theil-sen.ts';
import type { Trend } from '../core/trend.ts';
import type {
  Bytes,
  Evidence,
  Frame,
  Place,
  Ratio,
  RecordingView,
  Seconds,
} from '../core/types.ts';
import { formatBytes, formatSeconds } from '../core/units.ts';
import type { Owner } from './growth-owner.ts';

/**
 * Who allocates what stays in a Node process: from looks at V8's heap just after it was collected (snapshots of `node-heap`). What is left
 * then is reachable, so no warm-up of an allocator and no garbage is in it.
 */

/** The first look begins the sampling and has no sites; three intervals after it tell a steady growth from one that slows down. */
const LEAST_LOOKS = 4;
/** What growth has to show to be told. */
interface Limits {
  /** Of the place itself, in bytes and of the heap at the first look. */
  readonly rise: Bytes;
  readonly ratio: Ratio;
  /** One stands for 32 KiB: 24 know a rate to a fifth. */
  readonly samples: number;
  /** No later rate may be below this share of the first. */
  readonly steady: Ratio;
  /** Of the whole heap in use. */
  readonly heap: Bytes;
}

/** May be a cache that fills: as much as for memory of any kind, and a rate that halves is one that is about full. */
const ANYTHING: Limits = {
  rise: 8 * 2 ** 20,
  ratio: 0.1,
  samples: 24,
  steady: 0.5,
  heap: 8 * 2 ** 20,
};
/** Nobody caches callbacks. Work that slows down, as it does with thousands of them to call, adds fewer: they have to become more in each look. */
const LISTENERS: Limits = { rise: 2 ** 18, ratio: 0, samples: 8, steady: 0.1, heap: 2 ** 20 };
/** Each stands for a buffer and what V8 keeps of it. They tell who makes them; how fast they become more is known by what they hold, and not from samples. */
const BUFFERS: Limits = { ...ANYTHING, samples: 8 };
const KINDS: Readonly<
  Record<AllocatedGrowth['mechanism'], { readonly limits: Limits; readonly by: string }>
> = {
  listeners: { limits: LISTENERS, by: 'for listeners added in' },
  timers: { limits: LISTENERS, by: 'for timers set in' },
  'v8-external': { limits: BUFFERS, by: 'for buffers made in' },
  'v8-heap': { limits: ANYTHING, by: 'under' },
};
/** A place that explains less of what stays is one of several. */
const SITE_SHARE: Ratio = 0.3;
/** Objects sampled that belong to something open; fewer are of what is under way. */
const LEAST_OPENED = 8;
const PLACES = 5;
const TEXT_LIMIT = 200;
/** A look collected all, and memory of buffers that was read so soon after it has no garbage in it. */
const AFTER_LOOK: Seconds = 2;
/** Buffers are small objects of V8's that stand for memory elsewhere: where this much was gained there, those who make them are asked first. */
const LEAST_EXTERNAL: Bytes = 8 * 2 ** 20;
const LEAST_MORE: Ratio = 1.5;
/** Functions of Node that make buffers. */
const MAKES_BUFFERS = /(?:^|\.)(?:alloc\w*|from\w*|concat|FastBuffer|createUnsafeBuffer|Buffer)$/;
/** Functions of Node that keep a callback. */
const KEEPS_CALLBACKS =
  /(?:^|\.)(?:addEventListener|addListener|prependListener|_addListener|on|once)$/;

/** One that repeats is kept until somebody clears it, like a callback, and becomes no more in a program that does. Those that end do so by themselves. */
const REPEATS = /(?:^|\.)setInterval$/;

/** Growth of V8's heap with the place that allocated it. */
export interface AllocatedGrowth {
  readonly mechanism: 'listeners' | 'timers' | 'v8-heap' | 'v8-external';
  readonly pid: number;
  readonly owner: Owner;
  /** The place that allocates and what called it, innermost first. */
  readonly places: readonly Place[];
  readonly evidence: Evidence;
  /** Of the heap in use after each collection, with the buffers that it holds where those grow. */
  readonly trend: Trend;
}

/** The place whose allocations stay, as fast in the last look as in the first; null where no process shows that. */
export function allocatedGrowth(view: RecordingView): AllocatedGrowth | null {
  let best: AllocatedGrowth | null = null;
  for (const [pid, looks] of looksByProcess(view)) {
    const found = growthIn(pid, looks, externalAfter(view, pid, looks));
    if (found !== null && found.owner.rise > (best?.owner.rise ?? 0)) best = found;
  }
  return best;
}

/**
 * The place that opens what stays open. What was allocated inside of functions that open, and stays, tells it; where nothing of it stays in
 * the heap (a number is all that is left of a file), what was seen to open most. Innermost first; empty where several places are as likely.
 */
export function openedBy(
  view: RecordingView,
  isOpening: (frame: Frame) => boolean,
): readonly Place[] {
  for (const looks of looksByProcess(view).values()) {
    const last = looks.at(-1);
    if (last === undefined || looks.length < 2) continue;
    const opening = last.sites.filter(({ frames }) => frames.some(isOpening));
    const samples = opening.reduce((sum, site) => sum + site.samples, 0);
    const kept = samples >= LEAST_OPENED ? placesOf(opening) : [];
    if (kept.length > 0) return kept;
    const openers = (last.openers ?? []).map(({ frames, weight }) => ({ frames, bytes: weight }));
    const seen = placesOf(openers);
    if (seen.length > 0) return seen;
  }
  return [];
}

function looksByProcess(view: RecordingView): ReadonlyMap<number, readonly NodeHeapLook[]> {
  const looks = new Map<number, NodeHeapLook[]>();
  for (const { at, body } of view.snapshots(SNAPSHOT.nodeHeap)) {
    const read = readNodeHeapSnapshot(at, body);
    if (read === null) continue;
    const known = looks.get(read.pid);
    if (known === undefined) looks.set(read.pid, [read.look]);
    else known.push(read.look);
  }
  return looks;
}

/** Memory of buffers just after each look; zeros where it was not read, or did not grow from each to the next. */
function externalAfter(
  view: RecordingView,
  pid: number,
  looks: readonly NodeHeapLook[],
): readonly Bytes[] {
  const series = view
    .series(METRIC.heapExternal.name)
    .filter(({ attributes }) => (attributes[ATTR.pid] ?? pid) === pid);
  const after = looks.map((look) => {
    for (const { at, value } of series) {
      const i = at.findIndex((time) => time >= look.at);
      if (i !== -1 && (at[i] ?? 0) - look.at <= AFTER_LOOK) return value[i] ?? 0;
    }
    return 0;
  });
  const grows = after.every((bytes, i) => i === 0 || bytes > (after[i - 1] ?? 0));
  return grows ? after : looks.map(() => 0);
}

function growthIn(
  pid: number,
  looks: readonly NodeHeapLook[],
  external: readonly Bytes[],
): AllocatedGrowth | null {
  if (looks.length < LEAST_LOOKS) return null;
  const none = looks.map(() => 0);
  const isOutside = (external.at(-1) ?? 0) - (external[0] ?? 0) >= LEAST_EXTERNAL;
  // A callback that stays keeps all that it refers to: where callbacks grow, what else grows hangs on them.
  return (
    siteGrowth(pid, { looks, external: none, of: 'listeners' }) ??
    siteGrowth(pid, { looks, external: none, of: 'timers' }) ??
    (isOutside ? siteGrowth(pid, { looks, external, of: 'v8-external' }) : null) ??
    siteGrowth(pid, { looks, external, of: 'v8-heap' })
  );
}

const IS_OF: Readonly<Record<AllocatedGrowth['mechanism'], (site: HeapSite) => boolean>> = {
  listeners: ({ frames }) => frames.some(keepsCallbacks),
  timers: ({ frames }) => frames.some(repeats),
  'v8-external': ({ frames }) => frames.some(makesBuffers),
  'v8-heap': () => true,
};

/** Growth of what one place allocates, of all sites, or of those of listeners, of timers or of buffers. */
function siteGrowth(
  pid: number,
  {
    looks,
    external,
    of: kind,
  }: {
    readonly looks: readonly NodeHeapLook[];
    readonly external: readonly Bytes[];
    readonly of: AllocatedGrowth['mechanism'];
  },
): AllocatedGrowth | null {
  const of = ({ sites }: NodeHeapLook): readonly HeapSite[] => sites.filter(IS_OF[kind]);
  const [first] = looks;
  const last = looks.at(-1);
  if (first === undefined || last === undefined) return null;
  const places = placesOf(of(last));
  const [place] = places;
  if (place === undefined) return null;
  const own = looks.map((look) => of(look).filter((site) => isAt(site, place)));
  const samples = (own.at(-1) ?? []).reduce((sum, site) => sum + site.samples, 0);
  const stayed = sumOf(kind === 'v8-external' ? of(last) : last.sites);
  const share = Math.min(1, sumOf(own.at(-1) ?? []) / stayed);
  const outside = (external.at(-1) ?? 0) - (external[0] ?? 0);
  // What buffers hold is put down to who makes them, by their share of what was made and stayed.
  const rise = sumOf(own.at(-1) ?? []) + outside * share;
  const isOutside = outside >= LEAST_EXTERNAL;
  const limits = isOutside ? BUFFERS : KINDS[kind].limits;
  const before = first.used + (external[0] ?? 0);
  if (rise < Math.max(limits.rise, before * limits.ratio) || samples < limits.samples) return null;
  const isCallbacks = kind === 'listeners' || kind === 'timers';
  if (!isCallbacks && share < SITE_SHARE) return null;
  const at = looks.map((look) => look.at);
  const stays = own.map(sumOf);
  if (!isSteady(at, isOutside ? external : stays, limits.steady) || !becomesMore(stays))
    return null;
  const trend = trendOf(looks, external);
  if (trend === null || trend.last - trend.first < limits.heap) return null;
  const name = nameOf(place);
  const elapsed = last.at - first.at;
  const buffers = isOutside ? `, ${formatBytes(outside)} of buffers more` : '';
  return {
    mechanism: kind === 'v8-heap' && outside > stayed ? 'v8-external' : kind,
    pid,
    owner: { name, rise, share },
    places,
    evidence: {
      kind: 'heap',
      summary:
        `of what was allocated in ${formatSeconds(elapsed)} ${KINDS[kind].by} ${name}, ` +
        `${formatBytes(sumOf(own.at(-1) ?? []))} stayed when V8 had collected its heap (${samples} samples)${buffers}, and more in each look`,
      data: {
        bytes: rise,
        external_bytes: outside,
        samples,
        stayed_bytes: stayed,
        looks: looks.length,
      },
    },
    trend,
  };
}

/** The function, with the end of its file where it has no name of its own. */
function nameOf({ function: name, file, line }: Place): string {
  const text = printable(name, TEXT_LIMIT);
  return text === '(anonymous)' ? `${text} at ${file.split('/').at(-1)}:${line}` : text;
}

/** The innermost place that has half of what stayed, or the one that has most of all. */
function placesOf(sites: readonly Pick<HeapSite, 'frames' | 'bytes'>[]): readonly Place[] {
  const stacks = sites.map(({ frames, bytes }) => ({ frames, weight: bytes }));
  const ranked = rankPlaces(stacks, PLACES);
  const [first] = ranked;
  if (first !== undefined && first.origin.kind !== 'standard-library')
    return ranked.map(({ frame, share }) => placeAt(frame, share));
  const most = new Map<string, { bytes: Bytes; frames: readonly Frame[] }>();
  for (const { frames, bytes } of sites) {
    const from = frames.findIndex(({ file }) => frameOrigin(file).kind !== 'standard-library');
    const frame = frames[from];
    if (frame === undefined) continue;
    const key = `${frame.function}\n${frame.file}`;
    const known = most.get(key);
    most.set(key, {
      bytes: (known?.bytes ?? 0) + bytes,
      frames: known?.frames ?? frames.slice(from),
    });
  }
  const [top] = [...most.values()].toSorted((a, b) => b.bytes - a.bytes);
  const all = sumOf(sites);
  if (top === undefined || top.bytes < all * SITE_SHARE) return [];
  return top.frames
    .filter(({ file }) => frameOrigin(file).kind !== 'standard-library')
    .slice(0, PLACES)
    .map((frame) => placeAt(frame, top.bytes / all));
}

const sumOf = (sites: readonly Pick<HeapSite, 'bytes'>[]): Bytes =>
  sites.reduce((sum, { bytes }) => sum + bytes, 0);

const keepsCallbacks = ({ function: name, file }: Frame): boolean =>
  file.startsWith('node:') && KEEPS_CALLBACKS.test(name);

const repeats = ({ function: name, file }: Frame): boolean =>
  file.startsWith('node:') && REPEATS.test(name);

const makesBuffers = ({ function: name, file }: Frame): boolean =>
  file.startsWith('node:') && MAKES_BUFFERS.test(name);

function isAt({ frames }: HeapSite, { function: name, file }: Place): boolean {
  return frames.some((frame) => frame.function === name && frame.file === file);
}

/** Whether each look found more than the one before, at no less than a share of the first rate. */
function isSteady(at: readonly Seconds[], value: readonly number[], share: Ratio): boolean {
  const rates = value
    .slice(1)
    .map((one, i) => (one - (value[i] ?? 0)) / Math.max(0.001, (at[i + 1] ?? 0) - (at[i] ?? 0)));
  const [first = 0] = rates;
  return first > 0 && rates.every((rate) => rate >= first * share);
}

/** From the second look on, the first with anything sampled: of an even growth four times as much in the fifth, of what only stays as much. */
function becomesMore(value: readonly number[]): boolean {
  const isLess = value.some((one, i) => one < (value[i - 1] ?? 0));
  return !isLess && (value.at(-1) ?? 0) >= (value[1] ?? 0) * LEAST_MORE;
}

/** Of a handful of readings in each of which all was collected; null where one was not higher than the one before. */
function trendOf(looks: readonly NodeHeapLook[], external: readonly Bytes[]): Trend | null {
  const at = looks.map((look) => look.at);
  const used = looks.map((look, i) => look.used + (external[i] ?? 0));
  if (used.some((one, i) => i > 0 && one <= (used[i - 1] ?? 0))) return null;
  const { slope, low, high } = theilSen(at, used);
  const third = Math.max(0, looks.length - Math.max(2, Math.ceil(looks.length / 3)));
  return {
    verdict: 'grows',
    readings: looks.length,
    duration: (at.at(-1) ?? 0) - (at[0] ?? 0),
    first: used[0] ?? 0,
    last: used.at(-1) ?? 0,
    slope,
    slopeLow: low,
    slopeHigh: high,
    lastThird: theilSen(at.slice(third), used.slice(third)).slope / slope,
    p: null,
  };
}
