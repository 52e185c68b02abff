import { type HeapSite, type NodeHeapLook, siteKey, stackKey } from '../../src/core/node-heap.ts';
import type { Bytes, Clock, Frame, Seconds } from '../../src/core/types.ts';
import { type CdpConnection, CdpError } from '../../src/platform/cdp.ts';
import { readStatus } from '../../src/platform/proc.ts';
import { parseFrame } from './cpu-profile.ts';
import { anonymousMemory } from './profiler.ts';
import { refused, type Refusal } from './refusal.ts';
import { isRecord } from '../../src/core/record.ts';
import { formatSeconds } from '../../src/core/units.ts';

/**
 * V8's sampling heap profiler: a stack for an allocation every so many bytes, kept for as long as the object lives. Reading it makes V8
 * collect the whole heap first, so what it says has stayed. V8 drops it with our connection, however that ends.
 */

/** A sample for so many bytes on average; V8's own default is 32 KiB, which says too little of seconds. */
const SAMPLE_EVERY: Bytes = 16 * 1024;

/** How sampling is done. */
export interface SamplingOptions {
  readonly clock: Clock;
  /** Bytes between two samples, 16 KiB unless told otherwise. */
  readonly every?: Bytes;
  /** Which of an allocation's frames stand for it, {@link ownFrames} unless told otherwise. */
  readonly cut?: CutStack;
  /** Whether somebody else has seen to it that an ended program is not kept alive by the connection. */
  readonly isShared?: boolean;
}

/** From a stack, innermost first, the frames by which its allocations are counted; never empty where the stack is not. */
export type CutStack = (frames: readonly Frame[]) => readonly Frame[];
/** A collection of everything, measured on Node 20.20 with 3 to 180 MiB in use: 1.6 to 2.1 ms a MiB of heap on a busy core (n = 9). */
const PAUSE_BASE: Seconds = 0.01;
const PAUSE_PER_BYTE: number = 0.002 / 2 ** 20;
/** How long one look may hold a process that nobody has said more of: as a profile's start. */
const PAUSE_BUDGET: Seconds = 0.25;
/** A target that does not answer by then is blocked itself. */
const FIRST_ANSWER_TIMEOUT: Seconds = 2;
/** A collection of some GiB takes seconds. */
const LOOK_TIMEOUT: Seconds = 60;
/** V8 keeps 128 frames of a stack unless told otherwise. */
const DEPTH_LIMIT = 128;
/** More would take the target seconds to send, and is not one of ours. */
const NODE_LIMIT = 500_000;

/** How long one look is likely to hold a process; V8's heap is a part of its anonymous memory. */
export function expectedLookPause(pid: number): Seconds {
  return PAUSE_BASE + anonymousMemory(pid) * PAUSE_PER_BYTE;
}

/** The same of a process that can be asked how large V8's heap is. */
export async function lookPause(connection: CdpConnection): Promise<Seconds> {
  const usage = await connection.send('Runtime.getHeapUsage', {}, LOOK_TIMEOUT);
  const used = isRecord(usage) && isFinite(usage['usedSize']) ? usage['usedSize'] : Infinity;
  return PAUSE_BASE + used * PAUSE_PER_BYTE;
}

/** Why looking would hold a process for longer than allowed; null when it would not. */
export function lookRefusal(pid: number, budget: Seconds = PAUSE_BUDGET): Refusal | null {
  const pause = expectedLookPause(pid);
  if (pause <= budget) return null;
  return refused(
    `each look makes V8 collect its whole heap, which would stop it for about ${formatSeconds(pause)}, more than ${formatSeconds(budget)}`,
    `Allow it with --max-pause ${Math.ceil((pause * 1.2) / 0.05) * 50}ms.`,
  );
}

/** Sampling in one process, through a connection that belongs to the caller. Methods reject with a CdpError. */
export class HeapSampling {
  readonly #connection: CdpConnection;
  readonly #pid: number;
  readonly #clock: Clock;
  readonly #cut: CutStack;

  private constructor(connection: CdpConnection, pid: number, { clock, cut }: SamplingOptions) {
    this.#connection = connection;
    this.#pid = pid;
    this.#clock = clock;
    this.#cut = cut ?? ownFrames;
  }

  static async start(
    connection: CdpConnection,
    pid: number,
    options: SamplingOptions,
  ): Promise<HeapSampling> {
    if (options.isShared !== true) {
      // Node keeps an ended program alive until the last client has gone.
      connection.on('NodeRuntime.waitingForDisconnect', () => void connection.close());
      const farewell = 'NodeRuntime.notifyWhenWaitingForDisconnect';
      await connection.send(farewell, { enabled: true }, FIRST_ANSWER_TIMEOUT);
    }
    const samplingInterval = options.every ?? SAMPLE_EVERY;
    await connection.send('HeapProfiler.startSampling', { samplingInterval });
    return new HeapSampling(connection, pid, options);
  }

  /** Has V8 collect everything, and says what has stayed since the start. */
  async look(): Promise<NodeHeapLook> {
    const began = this.#clock.now();
    const sent = await this.#connection.send('HeapProfiler.getSamplingProfile', {}, LOOK_TIMEOUT);
    const at = this.#clock.now();
    const sites = parseSites(isRecord(sent) ? sent['profile'] : undefined, this.#cut);
    const usage = await this.#connection.send('Runtime.getHeapUsage', {}, LOOK_TIMEOUT);
    const { usedSize: used, totalSize: committed } = isRecord(usage) ? usage : {};
    if (sites === null || !isFinite(used) || !isFinite(committed))
      throw new CdpError('malformed', 'the inspector sent something that is not a heap profile');
    const resident = readStatus(this.#pid)?.residentBytes ?? null;
    return { at, held: Math.max(0, at - began), used, committed, resident, sites };
  }

  /** Ends sampling. */
  async stop(): Promise<void> {
    await this.#connection.send('HeapProfiler.stopSampling', {}, LOOK_TIMEOUT);
  }
}

interface Open {
  readonly node: unknown;
  readonly above: Stack | null;
}

interface Stack {
  readonly frame: Frame;
  readonly above: Stack | null;
  readonly depth: number;
}

/**
 * A `HeapProfiler.SamplingHeapProfile` (Chrome DevTools Protocol 1.3; Node 20 to 24) by the program's own places: what Node's library or a
 * package allocates counts for the code of the program that called it, where there is any. Null when it is not one, or not plausible.
 */
export function parseSites(
  profile: unknown,
  cut: CutStack = ownFrames,
): readonly HeapSite[] | null {
  if (!isRecord(profile) || !isRecord(profile['head']) || !Array.isArray(profile['samples']))
    return null;
  const samples = countSamples(profile['samples']);
  const sites = new Map<string, { frames: readonly Frame[]; bytes: number; samples: number }>();
  const open: Open[] = [{ node: profile['head'], above: null }];
  let seen = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, above } = next;
    if (!isRecord(node) || !isRecord(node['callFrame'])) return null;
    if (++seen > NODE_LIMIT) return null;
    const { selfSize, id, children } = node;
    if (!isFinite(selfSize) || selfSize < 0 || !Array.isArray(children)) return null;
    const frame = parseFrame(node['callFrame'], undefined);
    const depth = (above?.depth ?? 0) + 1;
    const stack: Stack | null =
      frame.function === ROOT || depth > DEPTH_LIMIT ? above : { frame, above, depth };
    if (selfSize > 0 && stack !== null) {
      const frames = cut(framesOf(stack));
      const key = cut === ownFrames ? siteKey({ frames }) : stackKey(frames);
      const site = sites.get(key) ?? { frames, bytes: 0, samples: 0 };
      site.bytes += selfSize;
      site.samples += isFinite(id) ? (samples.get(id) ?? 0) : 0;
      sites.set(key, site);
    }
    const below: readonly unknown[] = children;
    for (const child of below) open.push({ node: child, above: stack });
  }
  return [...sites.values()];
}

const ROOT = '(root)';

function countSamples(list: readonly unknown[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const sample of list) {
    const id = isRecord(sample) ? sample['nodeId'] : undefined;
    if (isFinite(id)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

function framesOf(leaf: Stack): readonly Frame[] {
  const frames: Frame[] = [];
  for (let stack: Stack | null = leaf; stack !== null; stack = stack.above)
    frames.push(stack.frame);
  return frames;
}

/** From the innermost frame of the program on; all of them where it has none in the stack. */
function ownFrames(frames: readonly Frame[]): readonly Frame[] {
  const own = frames.findIndex(({ file }) => isOwn(file));
  return own > 0 ? frames.slice(own) : frames;
}

function isOwn(file: string): boolean {
  return !file.startsWith('node:') && !file.includes('/node_modules/');
}

function isFinite(value: unknown): value is number {
  return Number.isFinite(value);
}
