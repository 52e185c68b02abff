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
import { FOLLOW_PERIOD, RoundTurns, samplingPeriod } from './sampling-period.ts';
import type { Steps } from './steps.ts';
import type { LoopKind } from './turn-watch.ts';

/**
 * The worker's main loop: a round of samples every 12 ms, between rounds those of turns that last, once a second a batch of each process,
 * and in the time that is left the opening of those that join. Blocks its thread.
 */

const SECOND: Seconds = 1;
/** A first second shorter than this would be too few samples: it is joined to the next. */
const SHORTEST_SECOND: Seconds = 0.5;
/** A round that is due within this is taken now: a wake-up costs more than all its samples. */
const SLACK: Seconds = 0.0005;
/** In one round the seconds of so many processes end as fit into this, so that the next round is not held up. */
const SECONDS_SHARE: Seconds = 0.003;
/** In one go between two rounds, opening processes may take this long, if their steps are as short as they should be. */
const OPENING_SHARE: Seconds = 0.003;
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

interface Watched {
  readonly member: MemberId;
  readonly sampler: ProcessSampler;
  nextSecond: Seconds;
}

export class CrewLoop {
  readonly #cells: Int32Array;
  readonly #port: CrewPort;
  readonly #openProcess: typeof openProcess;
  readonly #handovers: Handovers;
  readonly #turns = new RoundTurns();
  readonly #warm = new Set<LoopKind>();
  readonly #ownTime = new OwnCpuTime();
  #joining: Joining[] = [];
  /** Opened, and not yet told to go. */
  readonly #ready = new Map<MemberId, ProcessSampler>();
  #watched: Watched[] = [];
  #period: Seconds = 0;
  #round = 0;
  #nextRound: Seconds = 0;
  #nextSecond: Seconds = 0;
  #delayedBy: string | null = null;
  #hasOpened = false;
  #ended = false;

  /** `cells` are those of CELL; `open` is how a process that joins is opened. */
  constructor(cells: Int32Array, port: CrewPort, open: typeof openProcess = openProcess) {
    this.#cells = cells;
    this.#port = port;
    this.#openProcess = open;
    this.#handovers = new Handovers(cells, (batches) => port.post({ kind: 'handover', batches }));
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
      if (this.#watched.length > 0) this.#watch();
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
          this.#begin(command.member);
          break;
        case 'stop':
          this.#stop(command.member);
          break;
        case 'drop':
          this.#drop(command.member);
          break;
        case 'end':
          this.#ended = true;
          break;
        default:
          command satisfies never;
      }
    }
  }

  #begin(member: MemberId): void {
    const sampler = this.#ready.get(member);
    if (sampler === undefined) return;
    this.#ready.delete(member);
    const at = monotonicNow();
    sampler.begin(at);
    if (this.#watched.length === 0) {
      this.#period = samplingPeriod(sampler.plan.threshold);
      this.#nextRound = at;
      // At the moments when the process collector reads, too.
      this.#nextSecond = nextWhole(at);
      this.#ownTime.reset(at);
    }
    // Seconds end together, so that the main thread is woken once for all of them.
    this.#watched = [...this.#watched, { member, sampler, nextSecond: nextWhole(at) }];
    this.#setPeriods();
  }

  #stop(member: MemberId): void {
    const watched = this.#watched.find((one) => one.member === member);
    if (watched === undefined) this.#drop(member);
    else this.#end(watched, false);
  }

  #drop(member: MemberId): void {
    this.#ready.get(member)?.close();
    this.#ready.delete(member);
    for (const joining of this.#joining) {
      // Closes what was opened so far, where there is anything.
      if (joining.member === member) joining.steps.return({ opened: DROPPED, sampler: null });
    }
    this.#joining = this.#joining.filter((one) => one.member !== member);
    for (const one of this.#watched) if (one.member === member) one.sampler.close();
    this.#remove(member);
  }

  #remove(member: MemberId): void {
    this.#watched = this.#watched.filter((one) => one.member !== member);
    this.#setPeriods();
  }

  /** Samples what is due, and ends a second where one has. */
  #watch(): void {
    const at = monotonicNow();
    const isRound = at >= this.#nextRound - SLACK;
    if (isRound) {
      this.#nextRound = at + this.#period;
      this.#round++;
    }
    const watched = this.#watched;
    const delayedBy = this.#delayedBy;
    for (let place = 0; place < watched.length; place++) {
      const one = watched[place];
      if (one === undefined || !this.#isDue(one, place, isRound)) continue;
      try {
        // The first is sampled at the moment just read, the further ones when it is their turn.
        one.sampler.sample(place === 0 ? at : monotonicNow(), delayedBy);
      } catch (error) {
        this.#fail(one, error);
      }
    }
    if (isRound) this.#delayedBy = null;
    this.#endSeconds(at);
    this.#handovers.flush(at, this.#watched.length);
  }

  #isDue({ sampler }: Watched, place: number, isRound: boolean): boolean {
    if (!isRound) return sampler.following;
    return this.#turns.isDue(place, this.#round) || sampler.busy;
  }

  /** Ends seconds that are due, and hands over blocks of all. */
  #endSeconds(at: Seconds): void {
    for (const one of this.#watched) {
      try {
        if (at >= one.nextSecond && monotonicNow() - at < SECONDS_SHARE) {
          one.nextSecond = nextWhole(at);
          const batch = one.sampler.second(at);
          if (batch === null) this.#end(one, true);
          else this.#handovers.add(one, batch, at);
          continue;
        }
        const blocks = one.sampler.takeBlocks(at);
        if (blocks !== null) this.#handovers.add(one, blocks, at);
      } catch (error) {
        this.#fail(one, error);
      }
    }
    if (at < this.#nextSecond) return;
    this.#nextSecond = nextWhole(at);
    this.#pace(at);
  }

  /** Has idle processes take turns where sampling them all costs too much. */
  #pace(at: Seconds): void {
    const share = this.#ownTime.share(at);
    const { turns } = this.#turns;
    // What opening costs, once, says nothing of the seconds to come.
    if (!this.#hasOpened) this.#turns.note(share, this.#watched.length);
    this.#hasOpened = this.#joining.length > 0;
    if (turns !== this.#turns.turns) this.#setPeriods();
  }

  #setPeriods(): void {
    for (const [place, { sampler }] of this.#watched.entries())
      sampler.period = this.#period * (place === 0 ? 1 : this.#turns.turns);
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
        if (after - at >= NOTABLE_STEP) this.#delayedBy = `opening pid ${joining.plan.pid}`;
        if (step === null) break;
        joining.resumeAt = after + step;
        at = after;
      }
    }
  }

  #mustWatch(begun: Seconds, at: Seconds): boolean {
    if (this.#watched.length === 0) return false;
    return at - begun >= OPENING_SHARE || at >= this.#nextWake() - SLACK;
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
      const reason = `the sampler failed: ${what}`;
      this.#port.post({
        kind: 'opened',
        member,
        opened: { kind: 'unavailable', reason, remedy: null },
      });
    }
    this.#joining = this.#joining.filter((one) => one !== joining);
    return null;
  }

  #end(one: Watched, gone: boolean): void {
    try {
      this.#handovers.addLast(one, one.sampler.finish(monotonicNow(), gone));
      one.sampler.close();
      this.#remove(one.member);
    } catch (error) {
      this.#fail(one, error);
    }
  }

  /** What goes wrong with one process ends its sampling, and nothing else. */
  #fail(one: Watched, error: unknown): void {
    const at = monotonicNow();
    this.#handovers.addLast(one, one.sampler.fail(at, error));
    this.#remove(one.member);
    try {
      one.sampler.close();
    } catch {
      // It is given up either way.
    }
  }

  #nextWake(): Seconds {
    if (this.#watched.length === 0) return Number.POSITIVE_INFINITY;
    for (const { sampler } of this.#watched) {
      if (sampler.following) return Math.min(this.#nextRound, monotonicNow() + FOLLOW_PERIOD);
    }
    return this.#nextRound;
  }

  /** Infinite when nobody is watched and nobody joins: then only a command wakes us. */
  #pause(): Seconds {
    let wake = this.#nextWake();
    for (const { resumeAt } of this.#joining) wake = Math.min(wake, resumeAt);
    return Math.max(0, wake - monotonicNow());
  }
}

/** The end of the second that begins now: on the grid of whole seconds, unless that would make it a short one. */
function nextWhole(at: Seconds): Seconds {
  const next = Math.floor(at / SECOND) * SECOND + SECOND;
  return next - at < SHORTEST_SECOND ? next + SECOND : next;
}

const DROPPED = { kind: 'unavailable', reason: 'it is no longer wanted', remedy: null } as const;
