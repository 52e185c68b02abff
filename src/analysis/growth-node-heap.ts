import { readNodeHeapSnapshot } from '../core/node-heap-snapshot.ts';
import type { HeapSite, NodeHeapLook } from '../core/node-heap.ts';
import { frameOrigin, rankPlaces } from '../core/place.ts';
import { SNAPSHOT } from '../core/semconv.ts';
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
/** A place that explains less of what stays is one of several. */
const SITE_SHARE: Ratio = 0.3;
/** Objects sampled that belong to something open; fewer are of what is under way. */
const LEAST_OPENED = 8;
const PLACES = 5;
const TEXT_LIMIT = 200;
/** Functions of Node that keep a callback. */
const KEEPS_CALLBACKS =
  /(?:^|\.)(?:addEventListener|addListener|prependListener|_addListener|on|once)$/;

/** Growth of V8's heap with the place that allocated it. */
export interface AllocatedGrowth {
  readonly mechanism: 'listeners' | 'v8-heap';
  readonly pid: number;
  readonly owner: Owner;
  /** The place that allocates and what called it, innermost first. */
  readonly places: readonly Place[];
  readonly evidence: Evidence;
  /** Of the heap in use after each collection. */
  readonly trend: Trend;
}

/** The place whose allocations stay, as fast in the last look as in the first; null where no process shows that. */
export function allocatedGrowth(view: RecordingView): AllocatedGrowth | null {
  let best: AllocatedGrowth | null = null;
  for (const [pid, looks] of looksByProcess(view)) {
    const found = growthIn(pid, looks);
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

function growthIn(pid: number, looks: readonly NodeHeapLook[]): AllocatedGrowth | null {
  if (looks.length < LEAST_LOOKS) return null;
  // A callback that stays keeps all that it refers to: where callbacks grow, what else grows hangs on them.
  return (
    siteGrowth(pid, looks, ({ frames }) => frames.some(keepsCallbacks)) ?? siteGrowth(pid, looks)
  );
}

/** Growth of what one place allocates, of all sites or of those of listeners. */
function siteGrowth(
  pid: number,
  looks: readonly NodeHeapLook[],
  isListening: ((site: HeapSite) => boolean) | null = null,
): AllocatedGrowth | null {
  const of = ({ sites }: NodeHeapLook): readonly HeapSite[] =>
    isListening === null ? sites : sites.filter(isListening);
  const [first] = looks;
  const last = looks.at(-1);
  if (first === undefined || last === undefined) return null;
  const places = placesOf(of(last));
  const [place] = places;
  if (place === undefined) return null;
  const own = looks.map((look) => of(look).filter((site) => isAt(site, place)));
  const rise = sumOf(own.at(-1) ?? []);
  const samples = (own.at(-1) ?? []).reduce((sum, site) => sum + site.samples, 0);
  const stayed = sumOf(last.sites);
  const limits = isListening === null ? ANYTHING : LISTENERS;
  if (rise < Math.max(limits.rise, first.used * limits.ratio) || samples < limits.samples)
    return null;
  if (isListening === null && rise < stayed * SITE_SHARE) return null;
  const at = looks.map((look) => look.at);
  if (!isSteady(at, own.map(sumOf), limits.steady)) return null;
  const trend = trendOf(looks);
  if (trend === null || trend.last - trend.first < limits.heap) return null;
  const share = Math.min(1, rise / stayed);
  const name = printable(place.function, TEXT_LIMIT);
  const elapsed = last.at - first.at;
  return {
    mechanism: isListening === null ? 'v8-heap' : 'listeners',
    pid,
    owner: { name, rise, share },
    places,
    evidence: {
      kind: 'heap',
      summary:
        `of what was allocated in ${elapsed.toFixed(0)} s ${isListening === null ? `under ${name}` : `for listeners added in ${name}`}, ` +
        `${(rise / 2 ** 20).toFixed(1)} MiB stayed when V8 had collected its heap (${samples} samples), and more in each look`,
      data: { bytes: rise, samples, stayed_bytes: stayed, looks: looks.length },
    },
    trend,
  };
}

/** The innermost place that has half of what stayed, or the one that has most of all. */
function placesOf(sites: readonly Pick<HeapSite, 'frames' | 'bytes'>[]): readonly Place[] {
  const stacks = sites.map(({ frames, bytes }) => ({ frames, weight: bytes }));
  const ranked = rankPlaces(stacks, PLACES);
  const [first] = ranked;
  if (first !== undefined && first.origin.kind !== 'standard-library')
    return ranked.map(({ frame, share }) => placeOf(frame, share));
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
    .map((frame) => placeOf(frame, top.bytes / all));
}

function placeOf(frame: Frame, share: Ratio): Place {
  return {
    function: printable(frame.function, TEXT_LIMIT),
    file: printable(frame.file, 1024),
    line: frame.line,
    module: frameOrigin(frame.file).module,
    thread: null,
    share,
  };
}

const sumOf = (sites: readonly Pick<HeapSite, 'bytes'>[]): Bytes =>
  sites.reduce((sum, { bytes }) => sum + bytes, 0);

const keepsCallbacks = ({ function: name, file }: Frame): boolean =>
  file.startsWith('node:') && KEEPS_CALLBACKS.test(name);

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

/** Of a handful of readings in each of which all was collected; null where one was not higher than the one before. */
function trendOf(looks: readonly NodeHeapLook[]): Trend | null {
  const at = looks.map((look) => look.at);
  const used = looks.map((look) => look.used);
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
