import type { Bytes, Seconds } from '../../src/core/types.ts';
import type { CdpConnection } from '../../src/platform/cdp.ts';
import { anonymousMemory } from './profiler.ts';

/** V8's heap as a whole, in the form that Chrome's DevTools read: the process is stopped while V8 walks and sends it. */

/** Measured on Node 20.20: 0.3, 1.35 and 3.2 s of CPU where 7, 22 and 42 MiB were anonymous memory (n = 3; small objects, the worst case). */
const PAUSE_BASE: Seconds = 0.1;
const PAUSE_PER_BYTE: number = 0.08 / 2 ** 20;
/** A heap of some GiB takes minutes. */
const TIMEOUT: Seconds = 600;

/** How long taking a snapshot is likely to stop a process. */
export function expectedSnapshotPause(pid: number): Seconds {
  return PAUSE_BASE + anonymousMemory(pid) * PAUSE_PER_BYTE;
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
