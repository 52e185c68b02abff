import type { Bytes, Frame, Ratio, Seconds } from './types.ts';

/** What V8's sampling of allocations says of the growth of a Node process between three moments; pure. */

/** What was allocated by one place since sampling began, and is still there. */
export interface HeapSite {
  /** Innermost first: the program's own frame that allocated, and what called it. Never empty. */
  readonly frames: readonly Frame[];
  /** Estimated by V8 from its samples. */
  readonly bytes: Bytes;
  /** What the estimate rests on. */
  readonly samples: number;
}

/** One look, after a full collection. */
export interface NodeHeapLook {
  readonly at: Seconds;
  /** How long the process was held by it, at most. */
  readonly held: Seconds;
  /** V8's heap in use. */
  readonly used: Bytes;
  /** What V8 has taken for it. */
  readonly committed: Bytes;
  /** Resident memory of the process; null where it could not be read. */
  readonly resident: Bytes | null;
  /** One for each place; in no order. */
  readonly sites: readonly HeapSite[];
  /** What was seen to open files, pipes and connections since the first look, where that was looked for. */
  readonly openers?: readonly HeapOpener[];
}

/** One stack in which something was opened. */
export interface HeapOpener {
  /** Innermost first, from the function of Node's that opens. Never empty. */
  readonly frames: readonly Frame[];
  /** CPU time that was sampled in it. */
  readonly weight: Seconds;
}

/** Where the growth is: a place that allocates what stays; no one place; outside of V8's heap; nowhere. */
export type NodeHeapVerdict = 'site' | 'spread' | 'native' | 'none';

/** One place in the three looks. */
export interface SiteChange extends HeapSite {
  /** What it gained in the second half: of a cache that is full, nothing. */
  readonly addedBytes: Bytes;
}

export interface NodeHeapGrowth {
  readonly elapsed: Seconds;
  readonly verdict: NodeHeapVerdict;
  /** What V8's heap grew by. */
  readonly used: Bytes;
  readonly resident: Bytes | null;
  /** What stayed of all that was allocated meanwhile. */
  readonly stayed: Bytes;
  /** Those of which something stayed, the one that gained most in the second half first. */
  readonly sites: readonly SiteChange[];
}

/**
 * Smaller growth is what every program does between two moments: a cache of 2 MB gained 0.8 when V8 compiled the code that fills it, and
 * laid its objects out otherwise.
 */
const LEAST_GROWTH: Bytes = 2 * 2 ** 20;
/** What grows goes on growing: a heap that gained less than this share in the second half has filled up. */
const SECOND_HALF: Ratio = 0.2;
/** A place explains a growth when it holds this share of it, by so many samples: one stands for 16 KiB on average. */
const SITE_SHARE: Ratio = 0.2;
const LEAST_SAMPLES = 8;
/**
 * V8's young generation takes up to 48 MiB (three semi-spaces of 16, Node 20 to 24 on 64 bits) and touches it little by little: a healthy
 * program gained 8 to 20 MiB of memory so in 4 s. Less growth outside of the heap says nothing.
 */
const LEAST_NATIVE: Bytes = 48 * 2 ** 20;

/** What grew between the first look and the last, the one between them telling growth from what is replaced. */
export function nodeHeapGrowth(
  first: NodeHeapLook,
  middle: NodeHeapLook,
  last: NodeHeapLook,
): NodeHeapGrowth {
  const earlier = new Map(middle.sites.map((site) => [siteKey(site), site.bytes]));
  const sites = last.sites
    .map((site) => ({ ...site, addedBytes: site.bytes - (earlier.get(siteKey(site)) ?? 0) }))
    .toSorted((a, b) => b.addedBytes - a.addedBytes || b.bytes - a.bytes);
  const used = last.used - first.used;
  const resident =
    first.resident === null || last.resident === null ? null : last.resident - first.resident;
  const late = last.used - middle.used;
  const grew = used >= LEAST_GROWTH && late >= used * SECOND_HALF;
  const [most] = sites;
  const explains =
    most !== undefined &&
    most.samples >= LEAST_SAMPLES &&
    most.addedBytes >= late * SITE_SHARE &&
    most.bytes >= used * SITE_SHARE;
  const outside = (growthOutside(first, last) ?? 0) >= LEAST_NATIVE;
  const goesOn = (growthOutside(middle, last) ?? 0) >= LEAST_NATIVE * SECOND_HALF;
  return {
    elapsed: last.at - first.at,
    verdict: grew ? (explains ? 'site' : 'spread') : outside && goesOn ? 'native' : 'none',
    used,
    resident,
    stayed: last.sites.reduce((sum, { bytes }) => sum + bytes, 0),
    sites,
  };
}

/** What memory grew by beyond V8's heap; null where it could not be read. */
function growthOutside(before: NodeHeapLook, after: NodeHeapLook): Bytes | null {
  if (before.resident === null || after.resident === null) return null;
  const heap = Math.max(0, after.used - before.used, after.committed - before.committed);
  return after.resident - before.resident - heap;
}

/** The same place in two looks. */
export function siteKey({ frames }: Pick<HeapSite, 'frames'>): string {
  const [at] = frames;
  return at === undefined ? '' : `${at.function}\n${at.file}\n${at.line}`;
}

/** The same stack in two looks, where sites are told apart by all of their frames. */
export function stackKey(frames: readonly Frame[]): string {
  return frames.map((frame) => `${frame.function}\n${frame.file}\n${frame.line}`).join('\n');
}
