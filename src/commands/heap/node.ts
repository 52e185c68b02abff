import { setTimeout as sleep } from 'node:timers/promises';
import {
  expectedLookPause,
  HeapSampling,
  lookRefusal,
} from '../../../collectors/node/heap-sampling.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { type NodeHeapGrowth, type NodeHeapLook, nodeHeapGrowth } from '../../core/node-heap.ts';
import { printable } from '../../core/text.ts';
import type { Clock } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { CdpError } from '../../platform/cdp.ts';
import { readStat } from '../../platform/proc.ts';
import { heapFailed, type NodeTarget, openNode } from './open-node.ts';

/** Looks at a Node process three times: at the begin, half-way, and at the end. */

/** What it came to. */
export interface NodeHeapResult {
  readonly looks: readonly [NodeHeapLook, NodeHeapLook, NodeHeapLook];
  readonly growth: NodeHeapGrowth;
  /** What stays in the target and why, in words; null when nothing does. */
  readonly left: string | null;
}

/** Null when it was stopped in between. Throws a TraceError that says why it cannot be had. */
export async function sampleNodeHeap(
  target: NodeTarget,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<NodeHeapResult | null> {
  const { pid } = target.process;
  const { interval, maxPause } = target.options;
  const tooLong = lookRefusal(pid, maxPause ?? undefined);
  if (tooLong !== null) throw heapFailed(pid, tooLong.reason, tooLong.remedy);
  const pause = formatSeconds(expectedLookPause(pid));
  const opened = await openNode(target, [
    "start V8's sampling heap profiler: a stack for every 16 KiB allocated, dropped when the object is",
    `read it three times: V8 collects its whole heap first, which holds its loop for about ${pause} each`,
  ]);
  let looks: NodeHeapResult['looks'] | null;
  let left: string | null = null;
  try {
    const sampling = await HeapSampling.start(opened.connection, pid, { clock });
    const half = (): Promise<unknown> =>
      sleep((interval / 2) * 1e3, undefined, { signal }).catch(() => undefined);
    const first = await sampling.look();
    await half();
    const middle = signal.aborted ? null : await sampling.look();
    await half();
    const last = signal.aborted ? null : await sampling.look();
    looks = middle === null || last === null ? null : [first, middle, last];
    await sampling.stop();
  } catch (error) {
    if (!(error instanceof CdpError)) throw error;
    throw readStat(pid) === null
      ? new TraceError('ERR_TARGET_GONE', `pid ${pid} ended meanwhile`, { exitCode: EXIT.notFound })
      : heapFailed(pid, `its inspector failed: ${printable(error.message)}`, null);
  } finally {
    left = await opened.close();
  }
  return looks === null ? null : { looks, growth: nodeHeapGrowth(...looks), left };
}
