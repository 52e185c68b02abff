import { monotonicNow } from '../../src/core/clock.ts';
import { printable } from '../../src/core/text.ts';
import type { ProcessTarget, Seconds } from '../../src/core/types.ts';
import { CdpConnection } from '../../src/platform/cdp.ts';
import type { Runtime } from '../../src/platform/runtime.ts';
import { establishedOn, listeningSockets } from '../../src/platform/sockets.ts';
import {
  callMethod,
  evaluateToObject,
  type HeldObject,
  releaseObjects,
  type SignalRefusal,
  signalToOpen,
} from '../../src/platform/touch.ts';
import {
  hasLivingOwner,
  removeEntry,
  UndoJournal,
  type UndoEntry,
} from '../../src/platform/undo-journal.ts';
import { type AgentReading, agentExpression } from './agent.ts';
import { parseReading } from './agent-reading.ts';
import { GuardianProcess } from './guardian-process.ts';
import { askInspector, findOpenInspector, type OpenInspector } from './inspector.ts';
import {
  anonymousMemory,
  expectedPause,
  FINE_INTERVAL,
  NodeProfiler,
  pauseRefusal,
} from './profiler.ts';
import { judgeOpening, refused, type Refusal } from './refusal.ts';
import { closes, undoEntry } from './undo.ts';

/**
 * `--inspect`: a Node process whose inspector is open for the time of a run, with our agent and V8's profiler in it, and a guardian beside.
 * What is done, in which order, and what undoes it: docs/decisions/0009.
 */

const LEASE_TICK_MS = 250;
/**
 * 1.25 s where we opened the inspector: gone within two seconds when trace and guardian are. A trace that is only late loses nothing by it,
 * since the agent stays while we are connected. In an inspector of somebody else's it cannot tell who is connected, and waits for longer.
 */
const LEASE_TICKS = { ours: 5, foreign: 8 } as const;
const RENEW_EVERY: Seconds = 0.4;
/** Node opens it within 0.2 s; a loop that blocks when the signal comes opens it afterwards. */
const OPENS_WITHIN: Seconds = 3;
const LOOK_EVERY: Seconds = 0.01;
/** Where the text of the agent can be read, below the package. */
const AGENT_FILE = 'dist/collectors/node/agent.js';
/** A guardian that was killed is replaced this often; who kills more of them wants none. */
const GUARDIANS = 3;
/** Taking up what an earlier trace left. */
const UNDO_PATIENCE: Seconds = 3;

export interface InspectRequest {
  readonly target: ProcessTarget;
  readonly runtime: Runtime;
  /** Go on where it cannot be read whether the application handles the signal itself. */
  readonly force: boolean;
  /** How long starting V8's profiler may hold the loop. */
  readonly pauseBudget?: Seconds;
  readonly journalFolder: string;
  /** Told what will be done to the target, before any of it is. */
  announce(lines: readonly string[]): void;
}

export type InspectResult = { readonly ok: true; readonly inspection: Inspection } | Refusal;

export class Inspection {
  readonly profiler: NodeProfiler;
  readonly #journal: UndoJournal;
  readonly #connection: CdpConnection;
  readonly #agent: HeldObject;
  readonly #timer: NodeJS.Timeout;
  #guardian: GuardianProcess;
  #guardiansLeft = GUARDIANS;
  #closing: Promise<string | null> | null = null;

  private constructor(parts: {
    journal: UndoJournal;
    connection: CdpConnection;
    agent: HeldObject;
    guardian: GuardianProcess;
    timer: NodeJS.Timeout;
    profiler: NodeProfiler;
  }) {
    this.#journal = parts.journal;
    this.#connection = parts.connection;
    this.#agent = parts.agent;
    this.#guardian = parts.guardian;
    this.#timer = parts.timer;
    this.profiler = parts.profiler;
    this.#watchGuardian();
  }

  /** Opens the inspector of a process, or says why not; one that is open already is used, and left open. Never throws. */
  static async open(request: InspectRequest): Promise<InspectResult> {
    const { target } = request;
    const found = await findOpenInspector(target.pid);
    const opening = found.ok ? null : judgeOpening(target, request.runtime, request);
    if (opening !== null && !opening.ok) return opening;
    const tooLong = pauseRefusal(target.pid, request.pauseBudget);
    if (tooLong !== null) return tooLong;
    const journal = await beginJournal(request, !found.ok);
    if (!(journal instanceof UndoJournal)) return journal;
    request.announce(plan(target.pid, found.ok ? found.inspector : null, opening?.port ?? null));
    const guardian = await GuardianProcess.start(journal.path);
    if (guardian === null) {
      journal.remove();
      return refused('the guardian, which would undo it after us, could not be started', null);
    }
    journal.update({ guardian: guardian.pid });
    const attempt = await attach(request, {
      journal,
      guardian,
      inspector: found.ok ? found.inspector : null,
    });
    if (!attempt.ok) {
      // What it has come to is undone by the guardian, which has more patience than a person.
      guardian.letGo();
    }
    return attempt;
  }

  /** @internal The last steps of opening, once the agent is in. */
  static async begin(parts: {
    journal: UndoJournal;
    connection: CdpConnection;
    agent: HeldObject;
    guardian: GuardianProcess;
    port: number;
  }): Promise<InspectResult> {
    const { journal, connection, agent, port } = parts;
    const timer = setInterval(() => {
      callMethod(connection, agent, 'renew').catch(() => {});
    }, RENEW_EVERY * 1e3);
    journal.update({ stage: 'profiling' });
    const started = await NodeProfiler.start(connection, {
      port,
      interval: FINE_INTERVAL,
      keepConnection: true,
    });
    if (!started.ok) {
      clearInterval(timer);
      connection.cut();
      return started;
    }
    return {
      ok: true,
      inspection: new Inspection({ ...parts, timer, profiler: started.profiler }),
    };
  }

  /** What the process says of its heap, and its garbage collector's pauses since the last reading; null when it does not answer. */
  async read(): Promise<AgentReading | null> {
    try {
      return parseReading(await callMethod(this.#connection, this.#agent, 'read'));
    } catch {
      return null;
    }
  }

  /** Whether trace opened the inspector, and so closes it. */
  get opened(): boolean {
    return this.#journal.entry.opens;
  }

  /** Takes everything out of the target again. What stays and why, in words; null when nothing does. Never throws. */
  close(): Promise<string | null> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<string | null> {
    clearInterval(this.#timer);
    const entry = this.#journal.update({ stage: 'closing' });
    await this.profiler.close();
    const problem = await leave({ ...this.#parts(), entry });
    if (problem === null) this.#journal.remove();
    this.#guardian.letGo();
    return problem;
  }

  #parts(): { connection: CdpConnection; agent: HeldObject } {
    return { connection: this.#connection, agent: this.#agent };
  }

  #watchGuardian(): void {
    this.#guardian.onLost(() => {
      if (this.#closing !== null || this.#guardiansLeft-- <= 0) return;
      void GuardianProcess.start(this.#journal.path).then((guardian) => {
        if (guardian === null) return;
        this.#guardian = guardian;
        if (this.#closing === null) {
          this.#journal.update({ guardian: guardian.pid });
          this.#watchGuardian();
        } else void this.#closing.finally(() => guardian.letGo());
      });
    });
  }
}

/** What will be done to the target, a line each, in the order in which it is done. */
function plan(pid: number, open: OpenInspector | null, port: number | null): readonly string[] {
  const where = port === null ? 'on a port of its choice' : `on port ${port}`;
  const hold = Math.round(expectedPause(anonymousMemory(pid)) * 1e3);
  return [
    ...(open === null
      ? [
          `SIGUSR1 to pid ${pid}: Node opens its inspector ${where} and says so on its standard error`,
        ]
      : [`connect to its inspector, which is open already on port ${open.port} and stays so`]),
    `evaluate an agent (all of it: ${AGENT_FILE}): a lease, an observer of garbage collections; nothing global`,
    `start V8's CPU profiler, ${Math.round(1 / FINE_INTERVAL)} samples a second: holds its loop for about ${hold} ms`,
    'call the agent once a second: sizes of its heap, pauses of the garbage collector',
    open === null
      ? 'at the end remove both and close the inspector'
      : 'at the end remove both again',
    `if trace dies, its guardian does that within 2 s; what stays nevertheless: trace cleanup ${pid}`,
  ];
}

/** The journal of this target, after what an earlier trace left has been undone. */
async function beginJournal(
  { target, journalFolder }: InspectRequest,
  opens: boolean,
): Promise<UndoJournal | Refusal> {
  let portsBefore: readonly number[];
  try {
    portsBefore = listeningSockets(target.pid).map(({ port }) => port);
    for (let tries = 0; tries < 2; tries++) {
      const journal = UndoJournal.begin(target, journalFolder, { opens, portsBefore });
      if (journal instanceof UndoJournal) return journal;
      if (journal !== null && hasLivingOwner(journal))
        return refused(
          `trace ${journal.owner.pid} is inspecting it already`,
          'Wait until that run is over.',
        );
      const outcome = journal === null ? null : await undoEntry(journal, UNDO_PATIENCE);
      if (outcome?.kind === 'failed')
        return refused(
          `an earlier trace left its inspector open: ${outcome.reason}`,
          outcome.remedy ?? `Undo it: trace cleanup ${target.pid}`,
        );
      removeEntry(`${journalFolder}/${target.pid}-${target.startTicks}.json`);
    }
    return refused('its undo journal is being written by somebody else', null);
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

async function attach(request: InspectRequest, parts: Parts): Promise<InspectResult> {
  const { journal, guardian } = parts;
  let connection: CdpConnection | null = null;
  try {
    const inspector = parts.inspector ?? (await openBySignal(request.target, journal));
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
    return await Inspection.begin({ journal, connection, agent, guardian, port: inspector.port });
  } catch (error) {
    connection?.cut();
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
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY * 1e3));
  }
  return refused(
    `it was asked to open its inspector and did not within ${OPENS_WITHIN} s: it blocks, or its port was taken (its standard error says)`,
    `If it opens later: trace cleanup ${target.pid}`,
  );
}

const REFUSALS: Readonly<Record<SignalRefusal, string>> = {
  gone: 'it has just ended',
  'not-caught': 'it has just stopped catching the signal that opens its inspector',
  'not-journalled': 'the undo journal speaks of another process',
  'not-allowed': 'it may not be signalled by this user',
};

/** Takes the agent out and, where it is ours, closes the inspector. */
async function leave(parts: {
  connection: CdpConnection;
  agent: HeldObject;
  entry: UndoEntry;
}): Promise<string | null> {
  const { connection, agent, entry } = parts;
  const { pid, opens, inspector } = entry;
  const later = `trace cleanup ${pid} closes it`;
  try {
    if (!opens || inspector === null) {
      await callMethod(connection, agent, 'remove');
      await releaseObjects(connection);
      await connection.close();
      return null;
    }
    // One is ours. Closing would cut the others off, and wait for one that is stopped.
    if ((establishedOn(pid, inspector.port) ?? 0) > 1) {
      await callMethod(connection, agent, 'remove');
      connection.cut();
      return `somebody else is connected to the inspector of pid ${pid}, so it stays open: ${later}`;
    }
    await callMethod(connection, agent, 'leave');
    connection.cut();
  } catch {
    // It answers late, or the lease was over and everything is gone already: the port tells.
    connection.cut();
  }
  if (inspector !== null && opens && !(await closes(entry, inspector.port)))
    return `pid ${pid} does not answer, so its inspector is still open: it closes when its loop turns, or ${later}`;
  return null;
}
