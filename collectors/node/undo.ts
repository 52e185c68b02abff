import { monotonicNow } from '../../src/core/clock.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { CdpConnection, CdpError } from '../../src/platform/cdp.ts';
import { readStat } from '../../src/platform/proc.ts';
import { hasEnded } from '../../src/platform/proc-parse.ts';
import {
  establishedOn,
  type ListeningSocket,
  listeningSockets,
} from '../../src/platform/sockets.ts';
import { evaluateToValue } from '../../src/platform/touch.ts';
import type { UndoEntry } from '../../src/platform/undo-journal.ts';
import { closeExpression } from './agent.ts';
import { askInspector, type OpenInspector } from './inspector.ts';
import { judgeNamespace } from './refusal.ts';

/** Closing an inspector that trace opened and did not close itself: for the guardian, for `trace cleanup`, and for trace when its agent fails. */

/** `undone`: it was open and is closed. `nothing`: there was nothing (any more). `gone`: the process has ended. */
export type UndoOutcome =
  | { readonly kind: 'undone' | 'nothing' | 'gone' }
  | { readonly kind: 'failed'; readonly reason: string; readonly remedy: string | null };

/** Closing takes 0.1 s after the order and then a millisecond or so; a busy loop takes its time. */
const CLOSED_WITHIN: Seconds = 1.5;
const LOOK_EVERY: Seconds = 0.02;
/** A signal may wait this long for a loop that native code holds; Node that has not opened its inspector by then has failed to. */
const SIGNAL_WAITS: Seconds = 600;
/** Between two attempts while the target does not answer. */
const RETRY_EVERY: Seconds = 0.25;

/** Undoes what an entry says, trying again for `patience`. Never throws. */
export async function undoEntry(entry: UndoEntry, patience: Seconds): Promise<UndoOutcome> {
  const end = monotonicNow() + patience;
  for (;;) {
    const outcome = await attempt(entry);
    if (outcome.kind !== 'failed' || monotonicNow() + RETRY_EVERY > end) return outcome;
    await pause(RETRY_EVERY);
  }
}

/** Whether the process of an entry still runs. */
export function isAlive(entry: Pick<UndoEntry, 'pid' | 'startTicks'>): boolean {
  const stat = readStat(entry.pid);
  return stat !== null && stat.startTicks === entry.startTicks && !hasEnded(stat);
}

/** Resolves when the process no longer listens on the port, or when that took too long (false). */
export async function closes(entry: UndoEntry, port: number): Promise<boolean> {
  const end = monotonicNow() + CLOSED_WITHIN;
  for (;;) {
    if (!isAlive(entry) || !listensOn(entry.pid, port)) return true;
    if (monotonicNow() > end) return false;
    await pause(LOOK_EVERY);
  }
}

async function attempt(entry: UndoEntry): Promise<UndoOutcome> {
  if (!isAlive(entry)) return { kind: 'gone' };
  // What is in the target without an open inspector of ours removes itself by its lease.
  if (!entry.opens || entry.stage === 'armed') return { kind: 'nothing' };
  const elsewhere = judgeNamespace(entry.pid);
  if (elsewhere !== null)
    return failed(elsewhere.reason, `nsenter -t ${entry.pid} -n trace cleanup ${entry.pid}`);
  let inspector: OpenInspector | null;
  try {
    inspector = await ourInspector(entry);
  } catch (error) {
    return isAlive(entry) ? failed(String(error), null) : { kind: 'gone' };
  }
  if (inspector === null) {
    // The signal may be waiting still: a loop that is held by native code opens the inspector when it comes back.
    return entry.inspector === null && isRecent(entry)
      ? failed('it was asked to open its inspector and has not done so', null)
      : { kind: 'nothing' };
  }
  if ((establishedOn(entry.pid, inspector.port) ?? 0) > 0)
    return failed(
      `somebody is connected to its inspector on port ${inspector.port}, and closing would wait for them`,
      'Disconnect the debugger first.',
    );
  return close(entry, inspector);
}

async function close(entry: UndoEntry, { url, port, id }: OpenInspector): Promise<UndoOutcome> {
  let connection: CdpConnection | null = null;
  try {
    connection = await CdpConnection.connect(url);
    const done = await evaluateToValue(connection, closeExpression(id), entry);
    if (done !== true) return failed('its inspector cannot be closed from inside', null);
  } catch (error) {
    // Where it closed at once there is no answer.
    const isClosed = error instanceof CdpError && error.reason === 'closed';
    if (!isClosed)
      return failed(printable(error instanceof Error ? error.message : String(error), 200), null);
  } finally {
    // Before the order is carried out: closing waits for whoever is connected.
    connection?.cut();
  }
  return (await closes(entry, port))
    ? { kind: 'undone' }
    : failed(`it still listens on port ${port}`, null);
}

/** The inspector that trace opened: by its name where that was noted, else one on a port that the process did not listen on before. */
async function ourInspector(entry: UndoEntry): Promise<OpenInspector | null> {
  for (const socket of candidates(entry)) {
    const answer = await askInspector(socket);
    if (!answer.ok) continue;
    if (entry.inspector === null || entry.inspector.id === answer.inspector.id)
      return answer.inspector;
  }
  return null;
}

function isRecent({ at }: UndoEntry): boolean {
  return Date.now() - Date.parse(at) < SIGNAL_WAITS * 1e3;
}

function candidates(entry: UndoEntry): readonly ListeningSocket[] {
  const sockets = listeningSockets(entry.pid);
  const { inspector, portsBefore } = entry;
  return inspector === null
    ? sockets.filter(({ port }) => !portsBefore.includes(port))
    : sockets.filter(({ port }) => port === inspector.port);
}

function listensOn(pid: number, port: number): boolean {
  try {
    return listeningSockets(pid).some((socket) => socket.port === port);
  } catch {
    return false;
  }
}

function failed(reason: string, remedy: string | null): UndoOutcome {
  return { kind: 'failed', reason, remedy };
}

function pause(time: Seconds): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, time * 1e3));
}
