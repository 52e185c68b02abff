import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { expectedSnapshotPause, takeHeapSnapshot } from '../../../collectors/node/heap-snapshot.ts';
import { monotonicNow } from '../../core/clock.ts';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import { CdpError } from '../../platform/cdp.ts';
import { formatBytes, formatSeconds } from '../../core/units.ts';
import { heapFailed, type NodeTarget, openNode, saySnapshotCost } from './open-node.ts';

/** `trace heap --heap-snapshot`: V8's whole heap, into a file. Gives what there is to say; throws a TraceError where it cannot be had. */
export async function writeHeapSnapshot(target: NodeTarget, name: string): Promise<string> {
  const { pid } = target.process;
  const most = expectedSnapshotPause(pid);
  const path = resolve(target.environment.cwd, name);
  const file = create(path, name);
  let whole = false;
  try {
    const opened = await openNode(target, [
      `have V8 write down its whole heap: stops it for about ${formatSeconds(most)} at most, and it may need ten times its memory meanwhile`,
    ]);
    let began = monotonicNow();
    let left: string | null = null;
    let bytes = 0;
    try {
      await saySnapshotCost(opened, target);
      began = monotonicNow();
      bytes = await takeHeapSnapshot(opened.connection, (chunk) => writeSync(file, chunk));
    } finally {
      left = await opened.close();
    }
    whole = true;
    const held = formatSeconds(monotonicNow() - began);
    const note = left === null ? '' : `Note: ${printable(left, 400)}.\n`;
    return `${formatBytes(bytes)} written to ${printable(path, 1024)}; the process was held for at most ${held}.\nOpen it in Chrome's DevTools (Memory, Load profile). It holds every text of the program, secrets too.\n${note}`;
  } catch (error) {
    if (error instanceof CdpError)
      throw heapFailed(pid, `its inspector failed: ${error.message}`, null);
    if (error instanceof TraceError) throw error;
    throw notWritten(name, error);
  } finally {
    closeSync(file);
    if (!whole) unlinkSync(path);
  }
}

/** Never over what is there: the file of an earlier look is what a later one is compared to. */
function create(path: string, name: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    throw notWritten(name, error);
  }
}

function notWritten(name: string, error: unknown): TraceError {
  return new TraceError(
    'ERR_OUTPUT',
    `${printable(name)} cannot be written (${errorCode(error)})`,
    { exitCode: EXIT.usage, remedy: 'Name a new file in a folder that is there.', cause: error },
  );
}
