import { monotonicNow } from '../../src/core/clock.ts';
import { printable } from '../../src/core/text.ts';
import type { ProcessTarget, Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { CdpConnection } from '../../src/platform/cdp.ts';
import type { Runtime } from '../../src/platform/runtime.ts';
import { listeningSockets } from '../../src/platform/sockets.ts';
import { evaluateToObject, type SignalRefusal, signalToOpen } from '../../src/platform/touch.ts';
import {
  hasLivingOwner,
  journalPath,
  readEntry,
  removeEntry,
  UndoJournal,
} from '../../src/platform/undo-journal.ts';
import { agentExpression } from './agent.ts';
import { GuardianProcess } from './guardian-process.ts';
import { Inspection, type InspectResult } from './inspection.ts';
import { askInspector, findOpenInspector, type OpenInspector } from './inspector.ts';
import { anonymousMemory, expectedPause, FINE_INTERVAL, pauseRefusal } from './profiler.ts';
import { ENDED_BY_SIGNAL, judgeOpening, refused, type Refusal } from './refusal.ts';
import { isAlive, undoEntry } from './undo.ts';

/**
 * `--inspect`: opening a Node process's inspector, or using the one that is open. What is done, in which order, and what undoes it:
 * docs/decisions/0009.
 */

const LEASE_TICK_MS = 250;
/**
 * 1.25 s where we opened the inspector: gone within two seconds when trace and guardian are. A trace that is only late loses nothing by it,
 * since the agent stays while we are connected. In an inspector of somebody else's it cannot tell who is connected, and waits for longer.
 */
const LEASE_TICKS = { ours: 5, foreign: 8 } as const;
/** Node opens it within 0.2 s; a loop that blocks when the signal comes opens it afterwards. */
const OPENS_WITHIN: Seconds = 3;
const LOOK_EVERY: Seconds = 0.01;
/** Where the text of the agent can be read, below the package. */
const AGENT_FILE = 'dist/collectors/node/agent.js';
/** Taking up what an earlier trace left. */
const UNDO_PATIENCE: Seconds = 3;

export interface InspectRequest {
  readonly target: ProcessTarget;
  readonly runtime: Runtime;
  /** Go on where it cannot be read whether the application handles the signal itself. */
  readonly force: boolean;
  /** How long starting V8's profiler may hold the loop. */
  readonly pauseBudget?: Seconds;
  /** Between two samples of V8's profiler, {@link FINE_INTERVAL} unless told otherwise. */
  readonly interval?: Seconds;
  /** What is done in place of V8's profiler, a line each; the caller has judged its pauses. */
  readonly instead?: readonly string[];
  readonly journalFolder: string;
  /** Told what will be done to the target, before any of it is. */
  announce(lines: readonly string[]): void;
}

/** Opens the inspector of a process, or says why not; one that is open already is used, and left open. Never throws. */
export async function openInspection(request: InspectRequest): Promise<InspectResult> {
  const { target, journalFolder } = request;
  // First: what an earlier trace left open is not "open already".
  const earlier = await settleEarlier(target, journalFolder);
  if (earlier !== null) return earlier;
  const found = await findOpenInspector(target.pid);
  const opening = found.ok ? null : judgeOpening(target, request.runtime, request);
  if (opening !== null && !opening.ok) return opening;
  const { instead } = request;
  const tooLong = instead ? null : pauseRefusal(target.pid, request.pauseBudget);
  if (tooLong !== null) return tooLong;
  const inspector = found.ok ? found.inspector : null;
  const journal = beginJournal(request, inspector === null);
  if (!(journal instanceof UndoJournal)) return journal;
  const interval = request.interval ?? FINE_INTERVAL;
  request.announce(
    plan({ pid: target.pid, open: inspector, port: opening?.port ?? null, interval, instead }),
  );
  const guardian = await GuardianProcess.start(journal.path);
  if (guardian === null) {
    journal.remove();
    return refused('the guardian, which would undo it after us, could not be started', null);
  }
  const attempt = await attach(request, { journal, guardian, inspector });
  // What a failed one has come to is undone by the guardian, which has more patience than a person.
  if (!attempt.ok) guardian.letGo();
  return attempt;
}

/** What will be done to the target, a line each, in the order in which it is done. */
function plan({
  pid,
  open,
  port,
  interval,
  instead,
}: {
  pid: number;
  open: OpenInspector | null;
  port: number | null;
  interval: Seconds;
  instead: readonly string[] | undefined;
}): readonly string[] {
  const where = port === null ? 'on a port of its choice' : `on port ${port}`;
  const hold = formatSeconds(expectedPause(anonymousMemory(pid)));
  return [
    ...(open === null
      ? [
          `SIGUSR1 to pid ${pid}: Node opens its inspector ${where} and says so on its standard error`,
        ]
      : [`connect to its inspector, which is open already on port ${open.port} and stays so`]),
    `evaluate an agent (all of it: ${AGENT_FILE}): a lease, an observer of garbage collections; nothing global`,
    ...(instead ?? [
      `start V8's CPU profiler, ${Math.round(1 / interval)} samples a second: holds its loop for about ${hold}`,
      'call the agent once a second: sizes of its heap, pauses of the garbage collector',
      'while it grows: a stack for every 32 KiB allocated, and now and then a collection of the whole heap, where that holds its loop for no more than 0.1 s',
    ]),
    open === null
      ? 'at the end remove both and close the inspector'
      : 'at the end remove both again',
    `if trace dies, its guardian does that within 2 s; what stays nevertheless: trace cleanup ${pid}`,
  ];
}

/** Undoes what a killed trace left in the target; why that cannot be done, or another trace is at it, null otherwise. */
async function settleEarlier(target: ProcessTarget, folder: string): Promise<Refusal | null> {
  const path = journalPath(folder, target);
  const entry = readEntry(path);
  if (entry === null) return null;
  if (hasLivingOwner(entry))
    return refused(
      `trace ${entry.owner.pid} is inspecting it already`,
      'Wait until that run is over.',
    );
  const outcome = await undoEntry(entry, UNDO_PATIENCE);
  if (outcome.kind === 'failed')
    return refused(
      `an earlier trace left its inspector open: ${outcome.reason}`,
      outcome.remedy ?? `Undo it: trace cleanup ${target.pid}`,
    );
  removeEntry(path);
  return null;
}

function beginJournal(
  { target, journalFolder }: InspectRequest,
  opens: boolean,
): UndoJournal | Refusal {
  try {
    const portsBefore = listeningSockets(target.pid).map(({ port }) => port);
    const journal = UndoJournal.begin(target, journalFolder, { opens, portsBefore });
    if (journal instanceof UndoJournal) return journal;
    return refused('another trace has just begun to inspect it', 'Wait until that run is over.');
  } catch (error) {
    const why = printable(error instanceof Error ? error.message : String(error), 200);
    return refused(
      `the undo journal cannot be written (${why}), and without it nothing is done to a process`,
      `Make ${printable(journalFolder, 200)} writable, or set XDG_STATE_HOME.`,
    );
  }
}

interface Parts {
  readonly journal: UndoJournal;
  readonly guardian: GuardianProcess;
  /** Null: still to be opened. */
  readonly inspector: OpenInspector | null;
}

async function attach(request: InspectRequest, given: Parts): Promise<InspectResult> {
  const { journal, guardian } = given;
  let connection: CdpConnection | null = null;
  try {
    journal.update({ guardian: guardian.pid });
    const inspector = given.inspector ?? (await openBySignal(request.target, journal));
    if ('ok' in inspector) return inspector;
    const ours = { port: inspector.port, id: inspector.id };
    const entry = journal.update({ stage: 'open', inspector: ours });
    connection = await CdpConnection.connect(inspector.url);
    const expression = agentExpression({
      inspector: entry.opens ? ours : null,
      tickMs: LEASE_TICK_MS,
      leaseTicks: entry.opens ? LEASE_TICKS.ours : LEASE_TICKS.foreign,
    });
    const agent = await evaluateToObject(connection, expression, entry);
    if (agent === null) {
      connection.cut();
      return refused('it did not take our agent: its modules are not to be had', null);
    }
    journal.update({ stage: 'leased' });
    const interval = request.instead ? null : (request.interval ?? FINE_INTERVAL);
    const parts = { journal, connection, agent, guardian, interval };
    return await Inspection.begin({ ...parts, port: inspector.port });
  } catch (error) {
    connection?.cut();
    if (hasEndedSince(journal)) return refused(ENDED_BY_SIGNAL, null);
    const why = printable(error instanceof Error ? error.message : String(error), 200);
    return refused(`its inspector failed: ${why}`, null);
  }
}

async function openBySignal(
  target: ProcessTarget,
  journal: UndoJournal,
): Promise<OpenInspector | Refusal> {
  const entry = journal.update({ stage: 'signalling' });
  const refusal = signalToOpen(target, entry);
  if (refusal !== null) {
    journal.remove();
    return refused(REFUSALS[refusal], null);
  }
  const end = monotonicNow() + OPENS_WITHIN;
  while (monotonicNow() < end) {
    const fresh = listeningSockets(target.pid).filter(
      ({ port }) => !entry.portsBefore.includes(port),
    );
    for (const socket of fresh) {
      const answer = await askInspector(socket);
      if (answer.ok) return answer.inspector;
    }
    if (hasEndedSince(journal)) return refused(ENDED_BY_SIGNAL, null);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY * 1e3));
  }
  return refused(
    `it was asked to open its inspector and did not within ${formatSeconds(OPENS_WITHIN)}: it blocks, or its port was taken (its standard error says)`,
    `If it opens later: trace cleanup ${target.pid}`,
  );
}

/**
 * Whether a process ended after it was sent the signal, and before it could be watched: then that
 * ended it.
 */
function hasEndedSince({ entry }: UndoJournal): boolean {
  return entry.opens && entry.stage !== 'armed' && !isAlive(entry);
}

const REFUSALS: Readonly<Record<SignalRefusal, string>> = {
  gone: 'it has just ended',
  'no-room': 'it has just come to have too few descriptors to open its inspector',
  'not-caught': 'it has just stopped catching the signal that opens its inspector',
  'not-journalled': 'the undo journal speaks of another process',
  'not-allowed': 'it may not be signalled by this user',
};
