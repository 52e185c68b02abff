import { fileURLToPath } from 'node:url';
import type { Frame, Seconds } from '../../src/core/types.ts';
import { isRecord } from '../../src/core/record.ts';

/**
 * A V8 CPU profile as `Profiler.stop` returns it (Chrome DevTools Protocol 1.3, type Profiler.Profile; Node 20 to 24), turned into stacks
 * between two moments. It comes from the target: form and sizes are checked, text is cut.
 */

/** Stacks with the time each stands for, innermost frame first. */
export interface TimedStack {
  readonly frames: readonly Frame[];
  readonly weight: Seconds;
}

/** Samples in a row that found the same. */
export interface Stretch {
  /** Innermost first. */
  readonly frames: readonly Frame[];
  readonly isIdle: boolean;
  /** CLOCK_MONOTONIC. */
  readonly from: Seconds;
  readonly to: Seconds;
  readonly count: number;
}

/**
 * The file of frames that have no script: V8's own functions, the garbage collector, native code that no JavaScript called. The `node:`
 * makes it part of the standard library, where a place is sought last.
 */
export const NATIVE_FILE: string = 'node:(native)';

/** Samples in which nothing ran. */
const IDLE = '(idle)';
const ROOT = '(root)';
/** A profile with more of either would take the target seconds to send; what is beyond is not one of ours. */
const NODE_LIMIT = 1_000_000;
const SAMPLE_LIMIT = 2_000_000;
/** V8 itself records 255 frames of a stack (kMaxFramesCount in src/profiler/tick-sample.h). */
const DEPTH_LIMIT = 256;
const NAME_LIMIT = 200;
const FILE_LIMIT = 1024;

interface Node {
  readonly frame: Frame;
  parent: Node | null;
}

export class CpuProfile {
  readonly from: Seconds;
  readonly to: Seconds;
  readonly samples: number;
  readonly #nodes: ReadonlyMap<number, Node>;
  readonly #sampleNode: Uint32Array;
  /** When each sample was taken, CLOCK_MONOTONIC; ascending. */
  readonly #sampleAt: Float64Array;

  private constructor(options: {
    readonly from: Seconds;
    readonly to: Seconds;
    readonly nodes: ReadonlyMap<number, Node>;
    readonly sampleNode: Uint32Array;
    readonly sampleAt: Float64Array;
  }) {
    this.from = options.from;
    this.to = options.to;
    this.samples = options.sampleNode.length;
    this.#nodes = options.nodes;
    this.#sampleNode = options.sampleNode;
    this.#sampleAt = options.sampleAt;
  }

  /** Null when it is not a profile, or not a plausible one. */
  static parse(profile: unknown): CpuProfile | null {
    if (!isRecord(profile)) return null;
    const { startTime, endTime, samples, timeDeltas } = profile;
    if (!isFinite(startTime) || !isFinite(endTime)) return null;
    if (!Array.isArray(samples) || !Array.isArray(timeDeltas)) return null;
    if (samples.length !== timeDeltas.length || samples.length > SAMPLE_LIMIT) return null;
    const nodes = parseNodes(profile['nodes']);
    if (nodes === null) return null;
    const sampleNode = new Uint32Array(samples.length);
    const sampleAt = new Float64Array(samples.length);
    let at = startTime;
    for (let index = 0; index < samples.length; index++) {
      const id: unknown = samples[index];
      const delta: unknown = timeDeltas[index];
      if (!isFinite(id) || !isFinite(delta)) return null;
      // A signal delivered late can come after its successor's: V8 then gives a negative delta.
      at += Math.max(0, delta);
      sampleNode[index] = id;
      sampleAt[index] = at / 1e6;
    }
    return new CpuProfile({
      from: startTime / 1e6,
      to: endTime / 1e6,
      nodes,
      sampleNode,
      sampleAt,
    });
  }

  /** Everything that was sampled, in its order, waiting in the poll (a frame `(idle)`) too: a stretch for samples alike. */
  *stretches(): Generator<Stretch, void> {
    const at = this.#sampleAt;
    for (let first = 0; first < at.length;) {
      const id = this.#sampleNode[first] ?? 0;
      let after = first + 1;
      while (after < at.length && this.#sampleNode[after] === id) after++;
      const from = ((at[first - 1] ?? this.from) + (at[first] ?? 0)) / 2;
      const to = ((at[after - 1] ?? 0) + (at[after] ?? this.to)) / 2;
      const frames = framesOf(this.#nodes.get(id));
      const isIdle = frames[0]?.function === IDLE;
      if (frames.length > 0 && to > from) yield { frames, isIdle, from, to, count: after - first };
      first = after;
    }
  }

  /**
   * What ran between two moments, most first. A sample stands for the time half-way to its neighbours. Waiting in the poll is left
   * out; `(garbage collector)` and `(program)`, native code that no JavaScript called, are frames of their own.
   */
  stacksDuring(from: Seconds, to: Seconds): readonly TimedStack[] {
    const weights = new Map<number, Seconds>();
    const at = this.#sampleAt;
    for (let index = firstAfter(at, from) - 1; index < at.length; index++) {
      if (index < 0) continue;
      const begin = ((at[index - 1] ?? this.from) + (at[index] ?? 0)) / 2;
      const end = ((at[index] ?? 0) + (at[index + 1] ?? this.to)) / 2;
      if (begin >= to) break;
      const weight = Math.min(end, to) - Math.max(begin, from);
      const id = this.#sampleNode[index] ?? 0;
      if (weight > 0) weights.set(id, (weights.get(id) ?? 0) + weight);
    }
    const stacks: TimedStack[] = [];
    for (const [id, weight] of weights) {
      const frames = framesOf(this.#nodes.get(id));
      if (frames.length > 0 && frames[0]?.function !== IDLE) stacks.push({ frames, weight });
    }
    return stacks.toSorted((a, b) => b.weight - a.weight);
  }
}

function framesOf(leaf: Node | undefined): readonly Frame[] {
  const frames: Frame[] = [];
  for (let node = leaf ?? null; node !== null && frames.length < DEPTH_LIMIT; node = node.parent) {
    if (node.frame.function !== ROOT) frames.push(node.frame);
  }
  return frames;
}

function parseNodes(list: unknown): ReadonlyMap<number, Node> | null {
  if (!Array.isArray(list) || list.length > NODE_LIMIT) return null;
  const nodes = new Map<number, Node>();
  const items: readonly unknown[] = list;
  for (const item of items) {
    if (!isRecord(item) || !isFinite(item['id']) || !isRecord(item['callFrame'])) return null;
    nodes.set(item['id'], {
      frame: parseFrame(item['callFrame'], item['positionTicks']),
      parent: null,
    });
  }
  for (const item of items) {
    if (!isRecord(item) || !isFinite(item['id']) || !Array.isArray(item['children'])) continue;
    const parent = nodes.get(item['id']) ?? null;
    const children: readonly unknown[] = item['children'];
    for (const id of children) {
      const child = isFinite(id) ? nodes.get(id) : undefined;
      if (child !== undefined) child.parent = parent;
    }
  }
  return nodes;
}

/**
 * The line is the one most samples of this node fell on, where the node was innermost in any; else the one its function begins on, for
 * a profile does not say which line a call was made from.
 */
export function parseFrame(callFrame: Readonly<Record<string, unknown>>, ticks: unknown): Frame {
  const { functionName, url, lineNumber } = callFrame;
  const name = typeof functionName === 'string' ? functionName.slice(0, NAME_LIMIT) : '';
  const file = scriptPath(typeof url === 'string' ? url.slice(0, FILE_LIMIT) : '');
  const definition = isFinite(lineNumber) && lineNumber >= 0 ? lineNumber + 1 : null;
  return {
    function: name === '' ? '(anonymous)' : name,
    file,
    line: file === NATIVE_FILE ? null : (busiestLine(ticks) ?? definition),
  };
}

function busiestLine(ticks: unknown): number | null {
  if (!Array.isArray(ticks)) return null;
  let line: number | null = null;
  let most = 0;
  const items: readonly unknown[] = ticks;
  for (const item of items) {
    if (!isRecord(item) || !isFinite(item['line']) || !isFinite(item['ticks'])) continue;
    if (item['ticks'] > most && item['line'] > 0) [line, most] = [item['line'], item['ticks']];
  }
  return line;
}

/** A script's URL as a path where it is a file; `node:` names and the like stay as they are. */
function scriptPath(url: string): string {
  if (url === '') return NATIVE_FILE;
  if (!url.startsWith('file://')) return url;
  try {
    return fileURLToPath(url);
  } catch {
    return url;
  }
}

/** Index of the first value above `limit`; the length when there is none. */
function firstAfter(values: Float64Array, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isFinite(value: unknown): value is number {
  return Number.isFinite(value);
}
