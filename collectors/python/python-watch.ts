import type {
  Availability,
  Clock,
  Collector,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Seconds,
} from '../../src/core/types.ts';
import { nextMoment, untilMoment } from '../../src/platform/common-moment.ts';
import type { PythonReader } from './reader.ts';
import type { SharedPython } from './shared-python.ts';

/** The frame of everything that looks at a Python process now and then: one reader for all, and one wake-up of trace. */

/** All looks wait for points of this grid, on which the process is read too. */
const GRID: Seconds = 1;

/** What a look is taken with. */
export interface LookContext {
  readonly pid: number;
  readonly reader: PythonReader;
  readonly shared: SharedPython;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** When it is. */
export interface LookMoment {
  /** On the monotonic clock. */
  readonly now: Seconds;
  /** Whether the run is over: what stands by then stood for longest. */
  readonly isLast: boolean;
}

/** Yields what was seen; returns how long to wait before the next turn, in seconds, or null when there is nothing more to see. */
export type LookTurn = AsyncGenerator<Observation, Seconds | null, void>;

/** A look under way: called once a turn, and once more when the run is over. */
export type Looking = (moment: LookMoment) => LookTurn;

/** Something to look at in a Python process. */
export interface Look {
  readonly name: string;
  readonly metrics: readonly Metric[];
  /** Before the first turn. */
  readonly firstAfter: Seconds;
  /** Null where there is nothing that it could see. */
  begin(context: LookContext): Looking | null;
}

export class PythonWatch implements Collector<ProcessTarget> {
  readonly name: string;
  readonly metrics: readonly Metric[];
  readonly #look: Look;
  readonly #shared: SharedPython;
  #reader: PythonReader | null = null;

  /** `shared` by all looks at one process. */
  constructor(look: Look, shared: SharedPython) {
    this.name = look.name;
    this.metrics = look.metrics;
    this.#look = look;
    this.#shared = shared;
  }

  async probe({ pid }: ProcessTarget): Promise<Availability> {
    const opened = this.#shared.open(pid);
    if (!opened.ok) return { available: false, reason: opened.reason, remedy: opened.remedy };
    this.#reader = opened.reader;
    return { available: true };
  }

  async *observe(
    { pid }: ProcessTarget,
    { signal, clock }: ObserveContext,
  ): AsyncIterable<Observation> {
    const reader = this.#reader;
    if (reader === null) return;
    try {
      const looking = this.#look.begin({ pid, reader, shared: this.#shared, clock, signal });
      for (let pause: Seconds | null = this.#look.firstAfter; looking !== null;) {
        if (pause > 0) await until(clock.mono() + pause, { clock, signal });
        const isLast = signal.aborted;
        pause = yield* looking({ now: clock.mono(), isLast });
        if (pause === null || isLast) return;
      }
    } finally {
      this.#reader = null;
      this.#shared.close();
    }
  }
}

/** Until the point of the grid that is nearest to a moment. */
async function until(
  at: Seconds,
  { clock, signal }: Pick<ObserveContext, 'clock' | 'signal'>,
): Promise<void> {
  const now = clock.mono();
  await untilMoment(nextMoment(at - GRID, GRID), { now, signal });
}
