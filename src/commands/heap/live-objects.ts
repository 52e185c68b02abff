import { setTimeout as sleep } from 'node:timers/promises';
import { expectedSnapshotPause, takeHeapSnapshot } from '../../../collectors/node/heap-snapshot.ts';
import { monotonicNow } from '../../core/clock.ts';
import { type LiveObjects, readLiveObjects } from '../../core/live-objects.ts';
import { printable } from '../../core/text.ts';
import type { Bytes } from '../../core/types.ts';
import { type CdpConnection, CdpError } from '../../platform/cdp.ts';
import { formatSeconds } from '../../core/units.ts';
import { renderLiveObjects } from '../../report/live-objects.ts';
import { heapFailed, type NodeTarget, openNode, saySnapshotCost } from './open-node.ts';

/** V8 gives no string beyond 512 MiB, and a snapshot is read as one. */
const TEXT_LIMIT: Bytes = 400 * 2 ** 20;

/** `trace heap --live-objects`: two snapshots of V8's heap, compared. Null when it was stopped in between; throws a TraceError. */
export async function compareLiveObjects(
  target: NodeTarget,
  signal: AbortSignal,
): Promise<string | null> {
  const { pid } = target.process;
  const { interval, rows } = target.options;
  const most = expectedSnapshotPause(pid);
  const opened = await openNode(target, [
    `have V8 write down its whole heap twice: stops it for about ${formatSeconds(most)} each time at most, and it may need ten times its memory meanwhile`,
  ]);
  let left: string | null = null;
  let text: string | null = null;
  try {
    await saySnapshotCost(opened, target);
    const from = monotonicNow();
    const before = await look(opened.connection, pid);
    await sleep(interval * 1e3, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) {
      const after = await look(opened.connection, pid);
      text = renderLiveObjects({ before, after, elapsed: monotonicNow() - from, rows });
    }
  } catch (error) {
    if (!(error instanceof CdpError)) throw error;
    throw heapFailed(pid, `its inspector failed: ${error.message}`, null);
  } finally {
    left = await opened.close();
  }
  if (text === null) return null;
  return left === null ? text : `${text}Note: ${printable(left, 400)}.\n`;
}

async function look(connection: CdpConnection, pid: number): Promise<LiveObjects> {
  const chunks: string[] = [];
  let length = 0;
  await takeHeapSnapshot(connection, (chunk) => {
    length += chunk.length;
    if (length <= TEXT_LIMIT) chunks.push(chunk);
  });
  const live = length > TEXT_LIMIT ? null : readLiveObjects(parsed(chunks.join('')));
  if (live === null)
    throw heapFailed(
      pid,
      length > TEXT_LIMIT
        ? 'its heap written down is more than 400 MiB of text'
        : 'what V8 wrote down is in no form that trace knows',
      'Use --heap-snapshot and open the file in DevTools.',
    );
  return live;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
