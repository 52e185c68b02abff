import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { Handovers } from './handovers.ts';
import {
  CELL,
  type Command,
  type MemberId,
  type SamplerPlan,
  type WorkerMessage,
} from './messages.ts';
import { type Opening, openProcess } from './opening.ts';
import { OwnCpuTime } from './own-thread.ts';
import type { ProcessSampler } from './process-sampler.ts';
import { endOfSecond, Rounds } from './rounds.ts';
import type { Steps } from './steps.ts';
import type { LoopKind } from './turn-watch.ts';

/**
 * The worker's main loop: rounds of samples, and in the time that is left the opening of processes that join. Blocks its thread; between
 * two rounds it sleeps on a cell that the main thread wakes it by.
 */

/** In one go between two rounds, opening processes may take this long, if their steps are as short as they should be. */
const OPENING_SHARE: Seconds = 0.003;
/** Steps end so long before the next round. */
const SLACK: Seconds = 0.0005;
/** A step this long is named where samples come late by it. */
const NOTABLE_STEP: Seconds = 0.005;

/** How the main thread is spoken to. */
export interface CrewPort {
  /** The next command that has come; undefined when there is none. */
  receive(): Command | undefined;
  post(message: WorkerMessage): void;
}

interface Joining {
  readonly member: MemberId;
  readonly plan: SamplerPlan;
  readonly steps: Steps<Opening>;
  resumeAt: Seconds;
}

export class CrewLoop {
  readonly #cells: Int32Array;
  readonly #port: CrewPort;
  readonly #openProcess: typeof openProcess;
  readonly #rounds: Rounds;
  readonly #warm = new Set<LoopKind>();
  readonly #ownTime = new OwnCpuTime();
  #joining: Joining[] = [];
  /** Opened, and not yet told to go. */
  readonly #ready = new Map<MemberId, ProcessSampler>();
  #nextSecond: Seconds = 0;
  #hasOpened = false;
  #ended = false;

  /** `cells` are those of CELL; `open` is how a process that joins is opened. */
  constructor(cells: Int32Array, port: CrewPort, open: typeof openProcess = openProcess) {
    this.#cells = cells;
    this.#port = port;
    this.#openProcess = open;
    const handovers = new Handovers(cells, (batches) => port.post({ kind: 'handover', batches }));
    this.#rounds = new Rounds(handovers);
  }

  /** Returns when there is nobody left to watch. */
  run(): void {
    let seen = -1;
    for (;;) {
      const commands = Atomics.load(this.#cells, CELL.commands);
      if (commands !== seen) {
        seen = commands;
        this.#obey();
        if (this.#ended) return;
      }
      if (this.#rounds.size > 0) {
        const at = monotonicNow();
        this.#rounds.run(at);
        if (at >= this.#nextSecond) this.#pace(at);
      }
      if (this.#joining.length > 0) this.#open();
      Atomics.wait(this.#cells, CELL.commands, seen, this.#pause() * 1e3);
    }
  }

  #obey(): void {
    for (
      let command = this.#port.receive();
      command !== undefined;
      command = this.#port.receive()
    ) {
      switch (command.kind) {
        case 'open': {
          const { member, plan } = command;
          const steps = this.#openProcess(plan, this.#warm);
          this.#joining.push({ member, plan, steps, resumeAt: 0 });
          break;
        }
        case 'go':
          this.#begin(command.member, command.since);
          break;
        case 'stop':
          this.#rounds.end(command.member, command.at);
          this.#forget(command.member);
          break;
        case 'drop':
          this.#rounds.drop(command.member);
          this.#forget(command.member);
          break;
        case 'end':
          this.#ended = true;
          break;
        default:
          command satisfies never;
      }
    }
  }

  #begin(member: MemberId, since: Seconds): void {
    const sampler = this.#ready.get(member);
    if (sampler === undefined) return;
    this.#ready.delete(member);
    const at = monotonicNow();
    if (this.#rounds.size === 0) {
      this.#nextSecond = endOfSecond(at);
      this.#ownTime.reset(at);
    }
    this.#rounds.add({ member, sampler, since }, at);
  }

  /** One that was never watched. */
  #forget(member: MemberId): void {
    this.#ready.get(member)?.close();
    this.#ready.delete(member);
    for (const joining of this.#joining) {
      // Closes what was opened so far, where there is anything.
      if (joining.member === member) joining.steps.return({ opened: DROPPED, sampler: null });
    }
    this.#joining = this.#joining.filter((one) => one.member !== member);
  }

  #pace(at: Seconds): void {
    this.#nextSecond = endOfSecond(at);
    const share = this.#ownTime.share(at);
    // What opening costs, once, says nothing of the seconds to come.
    if (!this.#hasOpened) this.#rounds.pace(share);
    this.#hasOpened = this.#joining.length > 0;
  }

  /** Takes steps of those that join: all they want while nobody is watched, else what fits between two rounds. */
  #open(): void {
    this.#hasOpened = true;
    const begun = monotonicNow();
    for (const joining of this.#joining) {
      let at = monotonicNow();
      while (at >= joining.resumeAt && !this.#mustWatch(begun, at)) {
        const step = this.#step(joining);
        const after = monotonicNow();
        if (after - at >= NOTABLE_STEP) this.#rounds.delayedBy(`opening pid ${joining.plan.pid}`);
        if (step === null) break;
        joining.resumeAt = after + step;
        at = after;
      }
    }
  }

  #mustWatch(begun: Seconds, at: Seconds): boolean {
    if (this.#rounds.size === 0) return false;
    return at - begun >= OPENING_SHARE || at >= this.#rounds.nextAt() - SLACK;
  }

  /** The pause before the next step; null when there is none. */
  #step(joining: Joining): Seconds | null {
    const { member, steps } = joining;
    try {
      const step = steps.next();
      if (step.done !== true) return step.value;
      const { opened, sampler } = step.value;
      if (sampler !== null) this.#ready.set(member, sampler);
      this.#port.post({ kind: 'opened', member, opened });
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      const opened = {
        kind: 'unavailable',
        reason: `the sampler failed: ${what}`,
        remedy: null,
      } as const;
      this.#port.post({ kind: 'opened', member, opened });
    }
    this.#joining = this.#joining.filter((one) => one !== joining);
    return null;
  }

  /** Infinite when nobody is watched and nobody joins: then only a command wakes us. */
  #pause(): Seconds {
    let wake = this.#rounds.nextAt();
    for (const { resumeAt } of this.#joining) wake = Math.min(wake, resumeAt);
    return Math.max(0, wake - monotonicNow());
  }
}

const DROPPED = { kind: 'unavailable', reason: 'it is no longer wanted', remedy: null } as const;
