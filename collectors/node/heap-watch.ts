import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../../src/core/clock.ts';
import { COLLECTOR } from '../../src/core/collector-name.ts';
import { nodeHeapSnapshot } from '../../src/core/node-heap-snapshot.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type {
  Availability,
  Bytes,
  Collector,
  Frame,
  Gap,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Ratio,
  Seconds,
} from '../../src/core/types.ts';
import { type CdpConnection, CdpError } from '../../src/platform/cdp.ts';
import { descriptorsBySize } from '../../src/platform/descriptor-count.ts';
import { HeapSampling, lookPause } from './heap-sampling.ts';
import { mergeOpeners, type Opener, openersIn, withInlined } from './heap-stacks.ts';
import { anonymousMemory, type NodeProfiler, PAUSE_BUDGET } from './profiler.ts';

/** What a Node process allocates and keeps, looked at while its memory or its descriptors grow, and only then. */

const READ_EVERY: Seconds = 1;
/** V8's own default, with which services are profiled all day; at 1 MiB/s a look 6 s after the last one rests on 190 samples more. */
const SAMPLE_EVERY: Bytes = 32 * 1024;
/** Any program that does something gains so much within seconds; one that does nothing gains nothing. */
const LEAST_RISE: Bytes = 512 * 1024;
const LEAST_DESCRIPTORS = 8;
/** More descriptors than that are not counted here. */
const COUNTED_DESCRIPTORS = 20_000;
/** Four intervals alike within half a minute tell a leak from what fills up. */
const CLOSE_LOOKS = 5;
const CLOSE: Seconds = 6;
/** From then on. */
const APART: Seconds = 30;
/** Looks hold the process for no more than this share of the time. */
const PAUSE_SHARE: Ratio = 0.01;
const FRAMES = 8;

/** What the watch has to do with in a target: `Inspection` is one. */
export interface Inspected {
  readonly connection: CdpConnection;
  readonly profiler: Pick<NodeProfiler, 'holding' | 'stacksDuring'>;
}

/** Observes as long as the run lasts; what V8 does not answer is a gap, once. No look is taken that would hold it for longer than `budget`. */
export function nodeHeapWatch(
  inspected: Inspected,
  budget: Seconds = PAUSE_BUDGET,
): Collector<ProcessTarget> {
  return {
    name: COLLECTOR.nodeHeap,
    metrics: [] as readonly Metric[],
    probe: (): Promise<Availability> => Promise.resolve({ available: true }),
    observe: (target, context) => {
      const { connection, profiler } = inspected;
      return observe({ connection, profiler, budget }, target, context);
    },
  };
}

async function* observe(
  { connection, profiler, budget }: Inspected & { readonly budget: Seconds },
  { pid }: ProcessTarget,
  { signal, clock }: ObserveContext,
): AsyncGenerator<Observation> {
  const growth = new Growth(pid);
  let sampling: HeapSampling | null = null;
  let looks = 0;
  let due: Seconds = 0;
  let profiledTo: Seconds = monotonicNow();
  let openers: readonly Opener[] = [];
  const aborted = new Promise<readonly []>((resolve) => {
    signal.addEventListener('abort', () => resolve([]), { once: true });
  });
  try {
    for (;;) {
      await sleep(READ_EVERY * 1e3, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const now = clock.mono();
      if (now < due || (sampling === null && !growth.isSeen())) continue;
      if ((await lookPause(connection)) > budget) continue;
      const options = { clock, every: SAMPLE_EVERY, cut: fromProgram, isShared: true };
      sampling ??= await HeapSampling.start(connection, pid, options);
      const from: HeapSampling = sampling;
      const look = await profiler.holding(() => from.look());
      due = now + Math.max(++looks < CLOSE_LOOKS ? CLOSE : APART, look.held / PAUSE_SHARE);
      // What a look took is no time of the program's. The answer comes when a window of the profile ends, within a second or so.
      const profiled = monotonicNow();
      const stacks = await Promise.race([profiler.stacksDuring(profiledTo, profiled), aborted]);
      profiledTo = profiled;
      openers = mergeOpeners(openers, openersIn(stacks));
      const sites = look.sites.map((site) => ({
        ...site,
        frames: withInlined(site.frames, stacks),
      }));
      const body = nodeHeapSnapshot(pid, { ...look, sites, openers });
      yield { kind: 'snapshot', at: look.at, of: SNAPSHOT.nodeHeap, body };
    }
  } catch (error) {
    if (!(error instanceof CdpError)) throw error;
    if (!signal.aborted) yield failed(clock.now(), error.message);
  } finally {
    // V8 drops it with the connection, where it does not answer.
    await sampling?.stop().catch(() => undefined);
  }
}

/** Whether a process has gained memory or descriptors since it was first asked for. */
class Growth {
  readonly #pid: number;
  readonly #memory: Bytes;
  readonly #descriptors: number;

  constructor(pid: number) {
    this.#pid = pid;
    this.#memory = anonymousMemory(pid);
    this.#descriptors = descriptorsOf(pid);
  }

  isSeen(): boolean {
    return (
      anonymousMemory(this.#pid) - this.#memory >= LEAST_RISE ||
      (this.#descriptors < COUNTED_DESCRIPTORS &&
        descriptorsOf(this.#pid) - this.#descriptors >= LEAST_DESCRIPTORS)
    );
  }
}

function descriptorsOf(pid: number): number {
  try {
    return descriptorsBySize(pid) ?? readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** From the last function of Node's that the program's code, a package's included, called; all of them where there is no such code. */
function fromProgram(frames: readonly Frame[]): readonly Frame[] {
  const first = frames.findIndex(({ file }) => file !== '' && !file.startsWith('node:'));
  return frames.slice(Math.max(0, first - 1), Math.max(0, first - 1) + FRAMES);
}

function failed(at: Seconds, detail: string): Gap {
  return { kind: 'gap', from: at, to: at, collector: COLLECTOR.nodeHeap, reason: 'failed', detail };
}
