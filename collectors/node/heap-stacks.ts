import { stackKey, type HeapOpener } from '../../src/core/node-heap.ts';
import type { Frame, Seconds } from '../../src/core/types.ts';
import type { TimedStack } from './cpu-profile.ts';

/** What V8's CPU profile adds to its heap profile: functions that were inlined, and who opens descriptors, of which nothing need stay in the heap. */

export type Opener = HeapOpener;

/** Functions of Node's library that open something; what they are called from is what one wants to know. */
const OPENS =
  /^(?:open|openSync|opendir|opendirSync|createReadStream|createWriteStream|ReadStream|WriteStream|FileHandle|connect|createConnection|Socket|spawn|fork|watch|mkstemp)$/;
const OPENS_IN = /^node:(?:internal\/)?(?:fs|net|tls|dgram|child_process)(?:\/|$)/;
const OPENERS_KEPT = 64;
const FRAMES = 8;

/** Whether a function of Node's library opens a file, a pipe or a connection. */
export function isOpening({ function: name, file }: Frame): boolean {
  return OPENS_IN.test(file) && OPENS.test(name);
}

/** The stacks in which something is opened, from the outermost function of Node's that does it on. */
export function openersIn(stacks: readonly TimedStack[]): readonly Opener[] {
  return stacks.flatMap(({ frames, weight }) => {
    const outside = frames.findIndex(
      (frame, i) => isProgram(frame) && frames.slice(0, i).some(isOpening),
    );
    const inner = frames.findIndex((frame) => isProgram(frame));
    // Node calls itself in between: only what the program calls directly counts.
    return outside > 0 && outside === inner
      ? [{ frames: frames.slice(outside - 1, outside - 1 + FRAMES), weight }]
      : [];
  });
}

/** Two lists of them as one. */
export function mergeOpeners(some: readonly Opener[], more: readonly Opener[]): readonly Opener[] {
  const all = new Map<string, { frames: readonly Frame[]; weight: Seconds }>();
  for (const { frames, weight } of [...some, ...more]) {
    const key = stackKey(frames);
    all.set(key, { frames, weight: (all.get(key)?.weight ?? 0) + weight });
  }
  return [...all.values()].toSorted((a, b) => b.weight - a.weight).slice(0, OPENERS_KEPT);
}

/**
 * The frames of an allocation with those that V8 inlined into the first function of the program: the heap profile leaves them out, the CPU
 * profile knows them. Of several ways from the one to the other the heaviest.
 */
export function withInlined(
  frames: readonly Frame[],
  stacks: readonly TimedStack[],
): readonly Frame[] {
  const [inner, outer] = frames;
  if (inner === undefined || outer === undefined || isProgram(inner) || !isProgram(outer))
    return frames;
  const ways = new Map<string, { way: readonly Frame[]; weight: Seconds }>();
  for (const { frames: stack, weight } of stacks) {
    const to = stack.findIndex((frame) => isSame(frame, outer));
    const from = stack.slice(0, Math.max(0, to)).findLastIndex((frame) => isSame(frame, inner));
    if (from < 0) continue;
    const way = stack.slice(from + 1, to).filter((frame) => isProgram(frame));
    const key = stackKey(way);
    ways.set(key, { way, weight: (ways.get(key)?.weight ?? 0) + weight });
  }
  const [heaviest] = [...ways.values()].toSorted((a, b) => b.weight - a.weight);
  return heaviest === undefined || heaviest.way.length === 0
    ? frames
    : [inner, ...heaviest.way, ...frames.slice(1)].slice(0, FRAMES);
}

const isProgram = ({ file }: Frame): boolean => file !== '' && !file.startsWith('node:');

const isSame = (a: Frame, b: Frame): boolean => a.function === b.function && a.file === b.file;
