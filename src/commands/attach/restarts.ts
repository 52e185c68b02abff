import { setTimeout as sleep } from 'node:timers/promises';
import { ATTR, EVENT } from '../../core/semconv.ts';
import type { Clock, Event, Gap, ObserveContext, Observation, Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { ageOf, clockTicks, readStat, uptime } from '../../platform/proc.ts';
import { hasEnded } from '../../platform/proc-parse.ts';
import { describeService, findSuccessor, type Service } from '../../platform/service.ts';
import type { AttachOptions } from './options.ts';
import type { AttachScreen } from './screen.ts';
import type { ProcessTreeWatch } from './tree.ts';
import type { Source } from '../watching/watch.ts';

/** `--follow-restarts`: when the target ends, the service it belongs to is waited for and joined again. */

/** Time between two looks at whether it lives; also what the times of an end are known to. */
const LOOK_EVERY: Seconds = 0.25;
/** Time between two looks at what it calls itself and where it listens. */
const DESCRIBE_EVERY: Seconds = 5;

/** Which process is the service now, and what it is known by. */
interface Current {
  readonly pid: number;
  readonly startTicks: number;
  readonly service: Service;
}

/** Where it was last seen, on the run's clock, and when that was in clock ticks since boot. */
interface Away {
  readonly since: Seconds;
  readonly ticks: number;
}

export class RestartWatch implements Source {
  readonly name = 'restarts';
  readonly #tree: Pick<ProcessTreeWatch, 'adopt'>;
  readonly #screen: Pick<AttachScreen, 'note'>;
  readonly #limit: Seconds;
  #current: Current;
  #isOver = false;

  /** `first` is the target that was attached to; `limit` is how long a service may be away. */
  constructor(
    first: { readonly pid: number; readonly startTicks: number },
    options: {
      readonly target: AttachOptions['target'];
      readonly limit: Seconds;
      readonly tree: Pick<ProcessTreeWatch, 'adopt'>;
      readonly screen: Pick<AttachScreen, 'note'>;
    },
  ) {
    const { target, limit, tree, screen } = options;
    const pattern = target.by === 'match' ? target.pattern : null;
    this.#current = { ...first, service: describeService(first.pid, { pattern }) };
    this.#tree = tree;
    this.#screen = screen;
    this.#limit = limit;
  }

  /** Whether the service stayed away. */
  isOver(): boolean {
    return this.#isOver;
  }

  /** An event for each time it came back; a gap, the last thing, when it did not. */
  async *observe({ signal, clock }: ObserveContext): AsyncGenerator<Observation> {
    let seen: Away = { since: clock.now(), ticks: ticksNow() };
    let described = clock.mono();
    while (!signal.aborted) {
      await sleep(LOOK_EVERY * 1e3, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      if (this.#lives()) {
        seen = { since: clock.now(), ticks: ticksNow() };
        if (clock.mono() - described < DESCRIBE_EVERY) continue;
        described = clock.mono();
        this.#describe();
      } else {
        this.#screen.note(`pid ${this.#current.pid} ended; waiting for it to come back`);
        const event = await this.#await(seen, { signal, clock });
        if (event === null && signal.aborted) return;
        yield event ?? this.#giveUp(seen, clock.now());
        if (event === null) return;
        described = 0;
      }
    }
  }

  #lives(): boolean {
    const stat = readStat(this.#current.pid);
    return stat !== null && stat.startTicks === this.#current.startTicks && !hasEnded(stat);
  }

  #describe(): void {
    const { pid, service } = this.#current;
    this.#current = { ...this.#current, service: describeService(pid, service) };
  }

  /** The event of its coming back; null when that took too long, or the run is over. */
  async #await(
    { since, ticks }: Away,
    { signal, clock }: { signal: AbortSignal; clock: Clock },
  ): Promise<Event | null> {
    const { pid, startTicks, service } = this.#current;
    let isUnclear = false;
    while (!signal.aborted && clock.now() - since < this.#limit) {
      const successor = findSuccessor(service, ticks);
      if (successor.kind === 'one') {
        const { stat } = successor;
        const lived = (ticks - startTicks) / clockTicks();
        const away = Math.max(0, clock.now() - ageOf(stat) - since);
        this.#current = {
          pid: stat.pid,
          startTicks: stat.startTicks,
          service: { ...service, parent: stat.parent },
        };
        this.#tree.adopt(stat.pid);
        this.#screen.note(`it came back as pid ${stat.pid} after ${formatSeconds(away)}`);
        return restartEvent(clock.now(), { pid: stat.pid, previous: pid, lived, away });
      }
      if (successor.kind === 'several' && !isUnclear) {
        isUnclear = true;
        this.#screen.note(
          `pids ${successor.pids.slice(0, 8).join(', ')} could each be it: waiting for one that surely is`,
        );
      }
      await sleep(LOOK_EVERY * 1e3, undefined, { signal }).catch(() => {});
    }
    return null;
  }

  #giveUp({ since }: Away, now: Seconds): Gap {
    const { pid } = this.#current;
    const detail = `what ended as pid ${pid} did not come back within ${formatSeconds(this.#limit)}`;
    this.#screen.note(detail);
    this.#isOver = true;
    return {
      kind: 'gap',
      from: since,
      to: now,
      collector: this.name,
      reason: 'target-gone',
      detail,
      pid,
    };
  }
}

function restartEvent(
  at: Seconds,
  restart: {
    readonly pid: number;
    readonly previous: number;
    readonly lived: Seconds;
    readonly away: Seconds;
  },
): Event {
  const { pid, previous, lived, away } = restart;
  return {
    kind: 'event',
    at,
    name: EVENT.targetRestart,
    severity: 'warn',
    body: `pid ${previous} ended and came back as pid ${pid} after ${formatSeconds(away)}`,
    attributes: {
      [ATTR.pid]: pid,
      [ATTR.restartPrevious]: previous,
      [ATTR.restartLived]: lived,
      [ATTR.restartAway]: away,
    },
  };
}

function ticksNow(): number {
  return Math.floor(uptime() * clockTicks());
}
