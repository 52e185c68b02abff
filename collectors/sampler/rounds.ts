import { monotonicNow } from '../../src/core/clock.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';
import type { Handovers } from './handovers.ts';
import type { MemberId } from './messages.ts';
import type { ProcessSampler } from './process-sampler.ts';
import { FOLLOW_PERIOD, RoundTurns, samplingPeriod } from './sampling-period.ts';

/**
 * The processes that are sampled: a round of samples every 12 ms, between rounds those of turns that last, and once a second a batch of
 * each process.
 */

const SECOND: Seconds = 1;
/** A second shorter than this would be too few samples: it is joined to the next. */
const SHORTEST_SECOND: Seconds = 0.5;
/** A round that is due within this is taken now: a wake-up costs more than all its samples. */
const SLACK: Seconds = 0.0005;
/** In one round the seconds of so many processes end as fit into this, so that the next round is not held up. */
const SECONDS_SHARE: Seconds = 0.003;

interface Watched {
  readonly member: MemberId;
  readonly sampler: ProcessSampler;
  nextSecond: Seconds;
}

export class Rounds {
  readonly #handovers: Handovers;
  readonly #turns = new RoundTurns();
  #watched: readonly Watched[] = [];
  #period: Seconds = 0;
  #round = 0;
  #nextRound: Seconds = 0;
  #delayedBy: string | null = null;

  constructor(handovers: Handovers) {
    this.#handovers = handovers;
  }

  get size(): number {
    return this.#watched.length;
  }

  /** Samples a process from `at` on; that nobody looked from `since` until then is a gap. */
  add(
    one: { readonly member: MemberId; readonly sampler: ProcessSampler; readonly since: Seconds },
    at: Seconds,
  ): void {
    const { member, sampler, since } = one;
    sampler.begin(at, since);
    if (this.#watched.length === 0) {
      this.#period = samplingPeriod(sampler.plan.threshold);
      this.#nextRound = at;
    }
    this.#watched = [...this.#watched, { member, sampler, nextSecond: endOfSecond(at) }];
    this.#setPeriods();
  }

  /** Ends one with its last batch; what it did not see before `at` is a gap. */
  end(member: MemberId, at: Seconds): void {
    const one = this.#watched.find((watched) => watched.member === member);
    if (one !== undefined) this.#end(one, false, at);
  }

  /** Ends one without. */
  drop(member: MemberId): void {
    const one = this.#watched.find((watched) => watched.member === member);
    if (one === undefined) return;
    this.#remove(one);
    one.sampler.close();
  }

  /** Names what takes so long that the next samples may come late. */
  delayedBy(what: string): void {
    this.#delayedBy = what;
  }

  /** Samples what is due at `at`, which is now, and ends a second where one has. */
  run(at: Seconds): void {
    const isRound = at >= this.#nextRound - SLACK;
    if (isRound) {
      this.#nextRound = at + this.#period;
      this.#round++;
    }
    const watched = this.#watched;
    const delayedBy = this.#delayedBy;
    for (let place = 0; place < watched.length; place++) {
      const one = watched[place];
      if (one === undefined || !this.#isDue(one.sampler, place, isRound)) continue;
      try {
        // The first is sampled at the moment just read, the further ones when it is their turn.
        one.sampler.sample(place === 0 ? at : monotonicNow(), delayedBy);
      } catch (error) {
        this.#fail(one, error);
      }
    }
    if (isRound) this.#delayedBy = null;
    for (const one of this.#watched) this.#handOver(one, at);
    this.#handovers.flush(at, this.#watched.length);
  }

  /** The next sample's moment: infinite when nobody is watched. */
  nextAt(): Seconds {
    if (this.#watched.length === 0) return Number.POSITIVE_INFINITY;
    for (const { sampler } of this.#watched) {
      if (sampler.following) return Math.min(this.#nextRound, monotonicNow() + FOLLOW_PERIOD);
    }
    return this.#nextRound;
  }

  /** Has idle processes take turns where sampling them all costs too much: `share` of a core in the last second. */
  pace(share: Ratio): void {
    const { turns } = this.#turns;
    this.#turns.note(share, this.#watched.length);
    if (turns !== this.#turns.turns) this.#setPeriods();
  }

  /** Runs as many rounds on end as fit into `limit`, so that V8 compiles them, and ends a second now and then. */
  rehearse(rounds: number, limit: Seconds): number {
    const from = monotonicNow();
    let at = from;
    let done = 0;
    for (; done < rounds && at - from < limit; done++) {
      this.#nextRound = at;
      this.run(at);
      at = monotonicNow();
    }
    for (const one of this.#watched) one.nextSecond = at;
    this.run(at);
    return done + 1;
  }

  #isDue(sampler: ProcessSampler, place: number, isRound: boolean): boolean {
    if (!isRound) return sampler.following;
    return this.#turns.isDue(place, this.#round) || sampler.busy;
  }

  #handOver(one: Watched, at: Seconds): void {
    try {
      if (at >= one.nextSecond && monotonicNow() - at < SECONDS_SHARE) {
        one.nextSecond = endOfSecond(at);
        const batch = one.sampler.second(at);
        if (batch === null) this.#end(one, true);
        else this.#handovers.add(one, batch, at);
        return;
      }
      const blocks = one.sampler.takeBlocks(at);
      if (blocks !== null) this.#handovers.add(one, blocks, at);
    } catch (error) {
      this.#fail(one, error);
    }
  }

  #end(one: Watched, gone: boolean, at: Seconds = monotonicNow()): void {
    try {
      this.#handovers.addLast(one, one.sampler.finish(at, gone));
      this.#remove(one);
      one.sampler.close();
    } catch (error) {
      this.#fail(one, error);
    }
  }

  /** What goes wrong with one process ends its sampling, and nothing else. */
  #fail(one: Watched, error: unknown): void {
    this.#handovers.addLast(one, one.sampler.fail(monotonicNow(), error));
    this.#remove(one);
    try {
      one.sampler.close();
    } catch {
      // It is given up either way.
    }
  }

  #remove(one: Watched): void {
    this.#watched = this.#watched.filter((watched) => watched !== one);
    this.#setPeriods();
  }

  #setPeriods(): void {
    for (const [place, { sampler }] of this.#watched.entries())
      sampler.period = this.#period * (place === 0 ? 1 : this.#turns.turns);
  }
}

/**
 * The end of the second that begins now: on the grid of whole seconds, on which the process collector reads too, so that the main thread
 * wakes up once for everything.
 */
export function endOfSecond(at: Seconds): Seconds {
  const next = Math.floor(at / SECOND) * SECOND + SECOND;
  return next - at < SHORTEST_SECOND ? next + SECOND : next;
}
