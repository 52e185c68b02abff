import type { Bytes, Seconds } from '../../src/core/types.ts';
import type { CdpConnection } from '../../src/platform/cdp.ts';
import { anonymousMemory } from './profiler.ts';

/** V8's heap as a whole, in the form that Chrome's DevTools read: the process is stopped while V8 walks and sends it. */

/** Measured on Node 20.20: 0.3, 1.35 and 3.2 s of CPU where 7, 22 and 42 MiB were anonymous memory (n = 3; small objects, the worst case). */
const PAUSE_BASE: Seconds = 0.1;
const PAUSE_PER_BYTE: number = 0.08 / 2 ** 20;
/** A loop that is blocked answers when it is not. */
const USAGE_TIMEOUT: Seconds = 60;
/** A heap of some GiB takes minutes. */
const TIMEOUT: Seconds = 600;

/** How long taking a snapshot may stop a process, from outside: all its memory may be V8's heap. */
export function expectedSnapshotPause(pid: number): Seconds {
  return PAUSE_BASE + anonymousMemory(pid) * PAUSE_PER_BYTE;
}

/** What is in V8's heap, and how long it is likely to take to write it down. */
export interface SnapshotCost {
  readonly used: Bytes;
  readonly pause: Seconds;
}

/**
 * The same from what is in V8's heap, of a process that can be asked: what is free in it, buffers and Node's own memory cost nothing. Still an
 * upper limit, as of a heap of small objects only. Rejects with a CdpError.
 */
export async function snapshotCost(
  connection: Pick<CdpConnection, 'send'>,
  pid: number,
): Promise<SnapshotCost> {
  const usage = await connection.send('Runtime.getHeapUsage', {}, USAGE_TIMEOUT);
  const isRecord = typeof usage === 'object' && usage !== null && 'usedSize' in usage;
  const stated = isRecord && typeof usage.usedSize === 'number' ? usage.usedSize : Infinity;
  const used = Math.min(stated >= 0 ? stated : Infinity, anonymousMemory(pid));
  return { used, pause: PAUSE_BASE + used * PAUSE_PER_BYTE };
}

/** Gives each piece of the snapshot to `write` as it comes; how many bytes of text there were. Rejects with a CdpError, or what `write` threw. */
export async function takeHeapSnapshot(
  connection: CdpConnection,
  write: (chunk: string) => void,
): Promise<Bytes> {
  let bytes = 0;
  let failure: unknown = null;
  connection.on('HeapProfiler.addHeapSnapshotChunk', (event) => {
    if (failure !== null || typeof event !== 'object' || event === null) return;
    if (!('chunk' in event) || typeof event.chunk !== 'string') return;
    try {
      write(event.chunk);
      bytes += Buffer.byteLength(event.chunk);
    } catch (error) {
      // A full disk: nothing more is wanted.
      failure = error ?? new Error('the snapshot could not be written');
      connection.cut();
    }
  });
  try {
    await connection.send('HeapProfiler.takeHeapSnapshot', {}, TIMEOUT);
  } catch (error) {
    throw failure ?? error;
  }
  return bytes;
}
