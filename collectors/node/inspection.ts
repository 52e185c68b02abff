import type { Seconds } from '../../src/core/types.ts';
import type { CdpConnection } from '../../src/platform/cdp.ts';
import { establishedOn } from '../../src/platform/sockets.ts';
import { callMethod, type HeldObject, releaseObjects } from '../../src/platform/touch.ts';
import type { UndoEntry, UndoJournal } from '../../src/platform/undo-journal.ts';
import type { AgentReading } from './agent.ts';
import { parseProfileTurn, parseReading } from './agent-reading.ts';
import { GuardianProcess } from './guardian-process.ts';
import { NodeProfiler } from './profiler.ts';
import type { Refusal } from './refusal.ts';
import { closes } from './undo.ts';

/** An inspector that is open for the time of a run, with our agent and V8's profiler in it; and leaving it as it was found. */

/** A third of the lease. */
const RENEW_EVERY: Seconds = 0.4;
/** A guardian that was killed is replaced this often; who kills more of them wants none. */
const GUARDIANS = 3;

/** What `open-inspection.ts` has come to: the agent is in, its lease runs. */
export interface InspectionParts {
  readonly journal: UndoJournal;
  readonly connection: CdpConnection;
  readonly agent: HeldObject;
  readonly guardian: GuardianProcess;
  readonly port: number;
  /** Between two samples of V8's profiler; null where it is not to run. */
  readonly interval: Seconds | null;
}

export type InspectResult = { readonly ok: true; readonly inspection: Inspection } | Refusal;

export class Inspection {
  readonly #profiler: NodeProfiler | null;
  readonly #journal: UndoJournal;
  readonly #connection: CdpConnection;
  readonly #agent: HeldObject;
  readonly #timer: NodeJS.Timeout;
  #guardian: GuardianProcess;
  #guardiansLeft = GUARDIANS;
  #closing: Promise<string | null> | null = null;

  private constructor(
    parts: InspectionParts,
    timer: NodeJS.Timeout,
    profiler: NodeProfiler | null,
  ) {
    this.#journal = parts.journal;
    this.#connection = parts.connection;
    this.#agent = parts.agent;
    this.#guardian = parts.guardian;
    this.#timer = timer;
    this.#profiler = profiler;
    this.#watchGuardian();
  }

  /** Starts V8's profiler beside the agent, where it is wanted; from here on the lease is renewed. Never throws. */
  static async begin(parts: InspectionParts): Promise<InspectResult> {
    const { journal, connection, agent, port } = parts;
    const timer = setInterval(() => {
      callMethod(connection, agent, 'renew').catch(() => {});
    }, RENEW_EVERY * 1e3);
    if (parts.interval === null)
      return { ok: true, inspection: new Inspection(parts, timer, null) };
    journal.update({ stage: 'profiling' });
    const started = await NodeProfiler.start(connection, {
      port,
      interval: parts.interval,
      keepConnection: true,
      turn: async (goOn, timeout) => {
        const method = goOn ? 'rotateProfile' : 'endProfile';
        return parseProfileTurn(await callMethod(connection, agent, method, timeout));
      },
    });
    if (started.ok) return { ok: true, inspection: new Inspection(parts, timer, started.profiler) };
    clearInterval(timer);
    connection.cut();
    return started;
  }

  /** V8's profiler; throws a TypeError where the inspection was begun without it. */
  get profiler(): NodeProfiler {
    if (this.#profiler === null) throw new TypeError('this inspection has no profiler');
    return this.#profiler;
  }

  /** What else is asked of V8 goes through it; it closes with the inspection. */
  get connection(): CdpConnection {
    return this.#connection;
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
    const entry = this.#entryWhenClosing();
    await this.#profiler?.close();
    const problem = await leave({ connection: this.#connection, agent: this.#agent, entry });
    if (problem === null) this.#journal.remove();
    this.#guardian.letGo();
    return problem;
  }

  /** Leaving goes on also where that cannot be written down: what was written covers it. */
  #entryWhenClosing(): UndoEntry {
    try {
      return this.#journal.update({ stage: 'closing' });
    } catch {
      return this.#journal.entry;
    }
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
