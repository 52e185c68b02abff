import { setTimeout as delay } from 'node:timers/promises';
import { monotonicNow } from '../../src/core/clock.ts';
import type { Bytes, Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { CdpConnection, CdpError } from '../../src/platform/cdp.ts';
import { readProc } from '../../src/platform/proc.ts';
import type { ProfileTurn } from './agent.ts';
import { CpuProfile, type TimedStack } from './cpu-profile.ts';
import { findOpenInspector } from './inspector.ts';

/**
 * V8's CPU profiler in the target, run through an inspector that is open already. It is not free for the target, so it is started once
 * and stopped seldom: measured figures and their consequences stand in docs/decisions/0007.
 */

/** Ten samples in a block of 50 ms. Being woken to be sampled costs an idle target 4.4 % of a core at 1 ms, 1.9 % at 5 ms. */
const SAMPLING_INTERVAL: Seconds = 0.005;
/** Where the inspector was opened for us, somebody asked for depth: fifty samples in such a block. */
export const FINE_INTERVAL: Seconds = 0.001;

/**
 * Starting makes V8 walk its heap twice on the main thread, once a run. Where the inspector is open already somebody means to debug, and a
 * service of 200 MiB is within this; a longer stop has to be asked for.
 */
export const PAUSE_BUDGET: Seconds = 0.25;
/** Measured on Node 20.20, 22.23 and 24.21 with 8 to 380 MiB, on two busy cores: 0.5 to 0.8 ms a MiB of anonymous memory, 2.5 at worst. */
const PAUSE_BASE: Seconds = 0.01;
const PAUSE_PER_BYTE: number = 0.001 / 2 ** 20;

/** Starting anew costs the same pause again: it may take this share of the time at most. */
const PAUSE_SHARE = 0.005;
/** A window no shorter than a default run, and one of no more samples than keep the profile small (1 MB) and quick to send. */
const SHORTEST_WINDOW: Seconds = 10;
const SAMPLES_A_WINDOW = 60_000;
/** Where the next profile begins before the last one ends, a window costs 0.3 ms: what a target that dies takes along is short. */
const ROTATED_WINDOW: Seconds = 1;
/** A turn of profiles comes when the target's present call into native code returns. */
const TURN_TIMEOUT: Seconds = 60;
/** A target that does not answer by then is blocked itself: it is left alone. */
const FIRST_ANSWER_TIMEOUT: Seconds = 2;
/** Nothing is watched before the profiler runs: far longer than a start may hold the target. */
const START_TIMEOUT: Seconds = 5;
/** How long stopping may take at the end: the target answers when its present call into native code returns. */
const LAST_ANSWER_TIMEOUT: Seconds = 3;

/** A stretch in which we kept the target's loop from turning, at most: from our command to its answer. */
export interface Pause {
  readonly from: Seconds;
  readonly to: Seconds;
  /** `heap`: a look at the heap, through the same connection. */
  readonly what: 'start' | 'stop' | 'heap';
}

export type ProfilerResult =
  | { readonly ok: true; readonly profiler: NodeProfiler }
  | { readonly ok: false; readonly reason: string; readonly remedy: string | null };

/** How to profile through a connection that somebody else made. */
export interface ProfilerOptions {
  /** Where it leads, for the report. */
  readonly port: number;
  readonly interval?: Seconds;
  /** The connection outlives the profiler. */
  readonly keepConnection?: boolean;
  /**
   * Begins the next profile, unless `goOn` is false, and then ends the present one, which V8 sends as an event; see agent.ts. Null, or a
   * result of null, where that cannot be had: then each window begins with a start of its own.
   */
  readonly turn?: TurnProfile | null;
}

/** Rejects with a CdpError. */
export type TurnProfile = (goOn: boolean, timeout: Seconds) => Promise<ProfileTurn | null>;

interface Request {
  readonly from: Seconds;
  readonly to: Seconds;
  readonly resolve: (stacks: readonly TimedStack[]) => void;
}

export class NodeProfiler {
  /** Is given each window as it ends. */
  onWindow: ((profile: CpuProfile) => void) | null = null;
  readonly #connection: CdpConnection;
  readonly #options: Required<ProfilerOptions>;
  readonly #pauses: Pause[] = [];
  /** Answered when the window that covers them is over. */
  #requests: Request[] = [];
  /** The latest two windows: a block may have begun in the one before. */
  #windows: readonly CpuProfile[] = [];
  #windowFrom: Seconds = 0;
  #timer: NodeJS.Timeout | null = null;
  #turn: TurnProfile | null;
  /** The profile that V8 sent last, by its title. */
  #finished: { readonly title: unknown; readonly profile: unknown } | null = null;
  #turnsHeld: Seconds = 0;
  #work: Promise<void> = Promise.resolve();
  #failure: string | null = null;

  private constructor(connection: CdpConnection, options: ProfilerOptions) {
    this.#connection = connection;
    this.#options = { interval: SAMPLING_INTERVAL, keepConnection: false, turn: null, ...options };
    this.#turn = this.#options.turn;
    connection.on('Profiler.consoleProfileFinished', (event) => {
      if (typeof event === 'object' && event !== null && 'title' in event && 'profile' in event)
        this.#finished = { title: event.title, profile: event.profile };
    });
    // Node keeps an ended program alive until the last client has gone.
    connection.on('NodeRuntime.waitingForDisconnect', () => void connection.close());
    void connection.closed.then((error) => {
      this.#failure ??= error.message;
      this.#answer(true);
    });
  }

  /**
   * Connects to the inspector of `pid` that is open already and starts profiling, unless starting would stop the target for longer than
   * `pauseBudget`. Opens no inspector and runs no code in the target. Never throws.
   */
  static async open(
    pid: number,
    options: { readonly pauseBudget?: Seconds; readonly interval?: Seconds } = {},
  ): Promise<ProfilerResult> {
    const found = await findOpenInspector(pid);
    if (!found.ok) return found;
    const tooLong = pauseRefusal(pid, options.pauseBudget);
    if (tooLong !== null) return tooLong;
    try {
      const connection = await CdpConnection.connect(found.inspector.url);
      const interval = options.interval ?? SAMPLING_INTERVAL;
      return await NodeProfiler.start(connection, { port: found.inspector.port, interval });
    } catch (error) {
      if (!(error instanceof CdpError)) throw error;
      return failed(error);
    }
  }

  /** Starts profiling through a connection; closes it when that fails, unless it is to be kept. Never throws. */
  static async start(connection: CdpConnection, options: ProfilerOptions): Promise<ProfilerResult> {
    const profiler = new NodeProfiler(connection, options);
    try {
      await profiler.#begin();
      return { ok: true, profiler };
    } catch (error) {
      if (options.keepConnection !== true) await connection.close();
      if (!(error instanceof CdpError)) throw error;
      return failed(error);
    }
  }

  /** What it is and what it does to the target, for the report. */
  get description(): string {
    const first = this.#pauses[0];
    const held = first === undefined ? '?' : formatSeconds(first.to - first.from);
    return (
      `V8's CPU profiler through the inspector open on port ${this.#options.port}, ${Math.round(1 / this.#options.interval)} samples a second; ` +
      `starting it held the loop for up to ${held}, Node wrote 'Debugger attached.' on the target's stderr, ` +
      'and the loop utilisation the target sees itself is too high meanwhile'
    );
  }

  /** Stretches in which starting or stopping the profiler may have held the target's loop: no fault of its own. */
  get pauses(): readonly Pause[] {
    return this.#pauses;
  }

  get held(): Seconds {
    return this.#pauses.reduce((sum, { from, to }) => sum + to - from, this.#turnsHeld);
  }

  /** Why there are no more stacks; null while there are. */
  get failure(): string | null {
    return this.#failure;
  }

  /**
   * What ran between two CLOCK_MONOTONIC moments that are past. Resolves when the window that covers them ends: in 10 s or so, at
   * `flush()` or at `close()`, whichever is first; empty when the profile has nothing of that time. Never rejects.
   */
  stacksDuring(from: Seconds, to: Seconds): Promise<readonly TimedStack[]> {
    return new Promise((resolve) => {
      this.#requests.push({ from, to, resolve });
      this.#answer(this.#failure !== null);
      if (this.#requests.length > 0) this.#schedule();
    });
  }

  /** Ends the window now and begins another, at the price of a pause. Never rejects. */
  flush(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#turn === null) {
        await this.#endWindow();
        await this.#startWindow();
      } else await this.#turnWindow(this.#turn, { goOn: true, timeout: TURN_TIMEOUT });
      this.#answer(false);
    });
  }

  /** Takes the last profile, answers what was asked, and leaves: V8 drops everything of ours with the connection. Never rejects. */
  async close(): Promise<void> {
    const last = { goOn: false, timeout: LAST_ANSWER_TIMEOUT };
    const turn = this.#turn;
    const ended = this.#enqueue(() =>
      turn === null ? this.#endWindow(LAST_ANSWER_TIMEOUT) : this.#turnWindow(turn, last),
    );
    // What was asked before may be waiting for a target that answers nobody.
    await Promise.race([ended, delay(LAST_ANSWER_TIMEOUT * 1e3, undefined, { ref: false })]);
    this.#failure ??= 'closed';
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#answer(true);
    if (!this.#options.keepConnection) await this.#connection.close();
  }

  async #begin(): Promise<void> {
    const enabled = { enabled: true };
    const farewell = 'NodeRuntime.notifyWhenWaitingForDisconnect';
    await this.#connection.send(farewell, enabled, FIRST_ANSWER_TIMEOUT);
    await this.#connection.send('Profiler.enable', {}, FIRST_ANSWER_TIMEOUT);
    const interval = Math.round(this.#options.interval * 1e6);
    await this.#connection.send('Profiler.setSamplingInterval', { interval }, FIRST_ANSWER_TIMEOUT);
    await this.#startWindow(START_TIMEOUT);
  }

  /** One command sequence at a time; what fails ends the profiler, not the caller. */
  #enqueue(step: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#failure !== null) return;
      try {
        await step();
      } catch (error) {
        if (!(error instanceof CdpError)) throw error;
        this.#failure = error.message;
        this.#answer(true);
      }
    });
    return this.#work;
  }

  async #startWindow(timeout?: Seconds): Promise<void> {
    const turn = this.#turn;
    const turned =
      turn === null ? null : await this.#pausing('start', () => turn(true, TURN_TIMEOUT));
    if (turned !== null) {
      this.#windowFrom = monotonicNow();
      this.#schedule();
      return;
    }
    this.#turn = null;
    this.#windowFrom = await this.#pausing('start', () =>
      this.#connection.send('Profiler.start', {}, timeout).then(monotonicNow),
    );
    this.#schedule();
  }

  async #endWindow(timeout?: Seconds): Promise<void> {
    const result = await this.#pausing('stop', () =>
      this.#connection.send('Profiler.stop', {}, timeout),
    );
    const holds = typeof result === 'object' && result !== null && 'profile' in result;
    this.#keep(holds ? result.profile : null);
  }

  /** The next profile runs before this one is ended. It holds the loop for so short that no block is explained by it. */
  async #turnWindow(
    turn: TurnProfile,
    { goOn, timeout }: { readonly goOn: boolean; readonly timeout: Seconds },
  ): Promise<void> {
    this.#finished = null;
    const turned = await turn(goOn, timeout);
    if (turned === null) throw new CdpError('refused', 'its profiles are no longer to be had');
    this.#turnsHeld += turned.heldMs / 1e3;
    this.#windowFrom = monotonicNow();
    // Sent before the answer: V8 ends a profile and tells of it in one step.
    const finished = this.#finished as {
      readonly title: unknown;
      readonly profile: unknown;
    } | null;
    if (finished?.title !== turned.ended) throw new CdpError('malformed', 'a profile did not come');
    this.#keep(finished?.profile);
    if (goOn) this.#schedule();
  }

  #keep(sent: unknown): void {
    const profile = CpuProfile.parse(sent);
    if (profile === null)
      throw new CdpError('malformed', 'the inspector sent something that is not a CPU profile');
    this.#windows = [...this.#windows.slice(-1), profile];
    this.onWindow?.(profile);
  }

  async #pausing<T>(what: Pause['what'], command: () => Promise<T>): Promise<T> {
    const from = monotonicNow();
    const result = await command();
    this.#pauses.push({ from, to: monotonicNow(), what });
    return result;
  }

  /** Something else of ours that may hold the loop: what it held is counted, and no block of the program's. */
  holding<T>(command: () => Promise<T>): Promise<T> {
    return this.#pausing('heap', command);
  }

  /** The present window ends when somebody waits for it and it has paid for its pause, or when it is long. */
  #schedule(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#failure !== null) return;
    const start = this.#pauses.findLast(({ what }) => what === 'start');
    const paid = (start === undefined ? 0 : start.to - start.from) / PAUSE_SHARE;
    const longest = SAMPLES_A_WINDOW * this.#options.interval;
    const due =
      this.#turn === null ? Math.min(Math.max(SHORTEST_WINDOW, paid), longest) : ROTATED_WINDOW;
    const length = this.#requests.length > 0 ? due : longest;
    const wait = Math.max(0, this.#windowFrom + length - monotonicNow());
    this.#timer = setTimeout(() => void this.flush(), wait * 1e3);
    this.#timer.unref();
  }

  /** Answers every request whose time is over in the windows we have; `all`: the others too, as well as can be. */
  #answer(all: boolean): void {
    const covered = this.#windows.at(-1)?.to ?? 0;
    const waiting: Request[] = [];
    for (const request of this.#requests) {
      if (!all && request.to > covered) waiting.push(request);
      else
        request.resolve(
          this.#windows.flatMap((window) => window.stacksDuring(request.from, request.to)),
        );
    }
    this.#requests = waiting;
  }
}

/** Why profiling a process would hold it for longer than allowed; null when it would not. */
export function pauseRefusal(
  pid: number,
  budget: Seconds = PAUSE_BUDGET,
): Extract<ProfilerResult, { ok: false }> | null {
  const pause = expectedPause(anonymousMemory(pid));
  if (pause <= budget) return null;
  return {
    ok: false,
    reason: `starting V8's profiler would stop it for about ${formatSeconds(pause)}, more than ${formatSeconds(budget)}`,
    remedy: `Allow it with --max-pause ${Math.ceil((pause * 1.2) / 0.05) * 50}ms.`,
  };
}

function failed(error: CdpError): Extract<ProfilerResult, { ok: false }> {
  return { ok: false, reason: `its inspector failed: ${error.message}`, remedy: null };
}

/** How long starting the profiler is likely to stop a process with so much anonymous memory, of which V8's heap is a part. */
export function expectedPause(anonymous: Bytes): Seconds {
  return PAUSE_BASE + anonymous * PAUSE_PER_BYTE;
}

/** Anonymous resident memory; 0 when it cannot be told (the process is gone, and connecting will say so). */
export function anonymousMemory(pid: number): Bytes {
  const match = /^RssAnon:\s*(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`) ?? '');
  return Number(match?.[1] ?? 0) * 1024;
}
