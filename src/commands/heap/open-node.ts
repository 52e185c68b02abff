import { snapshotCost } from '../../../collectors/node/heap-snapshot.ts';
import { findOpenInspector } from '../../../collectors/node/inspector.ts';
import { openInspection } from '../../../collectors/node/open-inspection.ts';
import { ENDED_BY_SIGNAL } from '../../../collectors/node/refusal.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { ProcessTarget } from '../../core/types.ts';
import { CdpConnection, CdpError } from '../../platform/cdp.ts';
import { readStat } from '../../platform/proc.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { journalFolder } from '../../platform/undo-journal.ts';
import { formatBytes, formatSeconds } from '../../core/units.ts';
import type { Environment } from '../command-line/command.ts';
import type { HeapOptions } from './options.ts';

/** The way to V8's heap: an inspector that is open, or that `--inspect` opens. */

/** A Node process, and what was asked of it. */
export interface NodeTarget {
  readonly process: ProcessTarget;
  readonly runtime: Runtime;
  readonly options: HeapOptions;
  readonly environment: Environment;
}

export interface OpenedNode {
  readonly connection: CdpConnection;
  /** Leaves the target as it was found; what stays and why, null when nothing does. Never throws. */
  close(): Promise<string | null>;
}

/** Opens it, saying on stderr what will be done (`steps`). Throws a TraceError that says why it cannot. */
export async function openNode(target: NodeTarget, steps: readonly string[]): Promise<OpenedNode> {
  const { options, environment, runtime } = target;
  const { pid } = target.process;
  const say = (title: string, lines: readonly string[]): void => {
    if (!options.quiet) environment.stderr.write([title, ...lines].join('\n  ') + '\n');
  };
  if (options.inspect === null)
    return useOpen(pid, () => say(`On pid ${pid}, in this order:`, steps));
  const opened = await openInspection({
    target: target.process,
    runtime,
    force: options.inspect === 'force',
    instead: steps,
    journalFolder: journalFolder(environment.env),
    announce: (lines) => say(`--inspect changes pid ${pid}. In this order:`, lines),
  });
  if (!opened.ok) throw heapFailed(pid, opened.reason, opened.remedy);
  const { inspection } = opened;
  return { connection: inspection.connection, close: () => inspection.close() };
}

async function useOpen(pid: number, announce: () => void): Promise<OpenedNode> {
  const found = await findOpenInspector(pid);
  if (!found.ok) throw heapFailed(pid, found.reason, found.remedy);
  announce();
  try {
    const connection = await CdpConnection.connect(found.inspector.url);
    return { connection, close: () => connection.close().then(() => null) };
  } catch (error) {
    if (!(error instanceof CdpError)) throw error;
    throw heapFailed(pid, `its inspector failed: ${error.message}`, null);
  }
}

/** Says how long writing down V8's heap will stop the process, now that V8 can be asked. Throws a TraceError where that is longer than allowed. */
export async function saySnapshotCost(
  { connection }: OpenedNode,
  { options, environment, process: { pid } }: NodeTarget,
): Promise<void> {
  const { used, pause } = await snapshotCost(connection, pid);
  const { maxPause } = options;
  const about = `${formatBytes(used)} are in V8's heap: to write them down stops it for about ${formatSeconds(pause)} of CPU, less where objects are large`;
  if (maxPause !== null && pause > maxPause)
    throw heapFailed(
      pid,
      `${about}, and more than ${formatSeconds(maxPause)} is not allowed`,
      'Allow more with --max-pause, or leave it away.',
    );
  if (!options.quiet) environment.stderr.write(`${about}\n`);
}

/** Why a heap cannot be looked at: of a process that is gone, that. */
export function heapFailed(pid: number, reason: string, remedy: string | null): TraceError {
  if (readStat(pid) === null) {
    const how = reason === ENDED_BY_SIGNAL ? `pid ${pid} is gone: ${reason}` : `pid ${pid} ended`;
    return new TraceError('ERR_TARGET_GONE', how, { exitCode: EXIT.notFound });
  }
  return new TraceError(
    'ERR_HEAP_UNREADABLE',
    `the heap of pid ${pid} cannot be looked at: ${printable(reason, 400)}`,
    {
      exitCode: EXIT.unsupported,
      ...(remedy === null ? {} : { remedy: printable(remedy, 400) }),
    },
  );
}
