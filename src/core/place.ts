import { printable } from './text.ts';
import type { Frame, Place, Ratio } from './types.ts';

/**
 * Which frame to blame: from stacks with weights to one place in the program. The text of frames is the target's and only compared
 * here, never opened or run.
 */

/** How V8's CPU profiler names the time in its collector, in which the thread computes or waits for those that help it. */
export const V8_COLLECTOR = '(garbage collector)';

/** Whose code a file is. */
export interface Origin {
  readonly kind: 'standard-library' | 'package' | 'application';
  /** Distribution folder under site-packages or node_modules; null otherwise. */
  readonly module: string | null;
}

const STANDARD_LIBRARY: Origin = { kind: 'standard-library', module: null };
const APPLICATION: Origin = { kind: 'application', module: null };

/** `…/site-packages/fastapi/routing.py`, `/usr/lib/python3/dist-packages/six.py`. */
const PYTHON_PACKAGE = /\/(?:site|dist)-packages\/([^/]+)/;
/** `…/lib/python3.11/asyncio/events.py`, `…/python311.zip/json/decoder.py`; checked after packages. */
const PYTHON_STANDARD_LIBRARY = /\/lib(?:64)?\/python\d\.\d+t?\/|\/python\d+\.zip\//;
const NODE_PACKAGE = /\/node_modules\/(@[^/]+\/[^/]+|[^/@][^/]*)(?=\/)/g;

/** Files whose origin is remembered: the frames of thousands of tasks and stacks are in a few hundred. */
const KNOWN_FILES = 4096;
const known = new Map<string, Origin>();

/** Classifies a file as the runtimes name it: CPython's co_filename, V8's script URL turned into a path. */
export function frameOrigin(file: string): Origin {
  let origin = known.get(file);
  if (origin === undefined) {
    origin = classify(file);
    if (known.size >= KNOWN_FILES) known.clear();
    known.set(file, origin);
  }
  return origin;
}

function classify(file: string): Origin {
  const python = PYTHON_PACKAGE.exec(file);
  if (python !== null) return { kind: 'package', module: (python[1] ?? '').replace(/\.py$/, '') };
  if (file.startsWith('node:') || file.startsWith('<frozen ')) return STANDARD_LIBRARY;
  if (PYTHON_STANDARD_LIBRARY.test(file)) return STANDARD_LIBRARY;
  // The innermost folder names the package that holds the file: a/node_modules/b/node_modules/c is c.
  let module: string | null = null;
  for (const match of file.matchAll(NODE_PACKAGE)) module = match[1] ?? null;
  return module === null ? APPLICATION : { kind: 'package', module };
}

/** Of names and files, which are the target's. */
const NAME_LIMIT = 200;
const FILE_LIMIT = 1024;

/** A frame as the place of a finding, of no thread in particular; its text made printable and bounded. */
export function placeAt(frame: Frame, share: Ratio): Place {
  return {
    function: printable(frame.function, NAME_LIMIT),
    file: printable(frame.file, FILE_LIMIT),
    line: frame.line,
    module: frameOrigin(frame.file).module,
    thread: null,
    share,
  };
}

/** A stack (innermost frame first) and the time or number of samples it stands for. */
export interface WeightedStack {
  readonly frames: readonly Frame[];
  readonly weight: number;
}

/** A frame that accounts for `share` of the weight, whatever it called. */
export interface RankedPlace {
  readonly frame: Frame;
  readonly origin: Origin;
  readonly share: Ratio;
}

/** A place must hold at least half of the time it is blamed for: with less, another place would be as good a name for it. */
export const PLACE_SHARE: Ratio = 0.5;

/**
 * The innermost frame outside the standard library that holds at least half of the weight, then the frames outside the library that
 * called it, innermost first and at most `limit` in all. Without any frame of the program's, the innermost of the library's.
 */
export function rankPlaces(stacks: readonly WeightedStack[], limit = 5): readonly RankedPlace[] {
  const total = stacks.reduce((sum, stack) => sum + stack.weight, 0);
  if (total <= 0) return [];
  const ranked = functionWeights(stacks)
    .filter((held) => held.weight / total >= PLACE_SHARE)
    // Any two that hold half or more share a stack, so their mean depth orders them as caller and callee.
    .sort((a, b) => b.depth / b.weight - a.depth / a.weight)
    .map((held) => ({
      frame: { ...held.frame, line: commonestLine(held.lines) },
      origin: frameOrigin(held.frame.file),
      share: Math.min(1, held.weight / total),
    }));
  const ours = ranked.filter((place) => place.origin.kind !== 'standard-library');
  return (ours.length > 0 ? ours : ranked.slice(0, 1)).slice(0, limit);
}

interface FunctionWeight {
  readonly frame: Frame;
  weight: number;
  /** Sum of weight times distance from the outermost frame. */
  depth: number;
  readonly lines: Map<number | null, number>;
}

function functionWeights(stacks: readonly WeightedStack[]): readonly FunctionWeight[] {
  const weights = new Map<string, FunctionWeight>();
  for (const { frames, weight } of stacks) {
    const counted = new Set<string>();
    frames.forEach((frame, index) => {
      const key = `${frame.function}\n${frame.file}`;
      // A recursive function counts once a stack, by its innermost call.
      if (counted.has(key)) return;
      counted.add(key);
      const held = weights.get(key) ?? { frame, weight: 0, depth: 0, lines: new Map() };
      weights.set(key, held);
      held.weight += weight;
      held.depth += weight * (frames.length - index);
      held.lines.set(frame.line, (held.lines.get(frame.line) ?? 0) + weight);
    });
  }
  return [...weights.values()];
}

function commonestLine(lines: ReadonlyMap<number | null, number>): number | null {
  let best: number | null = null;
  let most = -1;
  for (const [line, weight] of lines) {
    if (weight > most) [best, most] = [line, weight];
  }
  return best;
}
