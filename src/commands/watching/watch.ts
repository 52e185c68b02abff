import { setMaxListeners } from 'node:events';
import { maskText } from '../../core/secrets/mask.ts';
import { ATTR } from '../../core/semconv.ts';
import type {
  Attributes,
  Clock,
  Collector,
  Gap,
  Observation,
  ObserveContext,
  Ratio,
  RunEnd,
  Seconds,
  Sink,
  Target,
} from '../../core/types.ts';
import { ClockWatch } from './clock-watch.ts';
import { HeapTidy } from './heap-tidy.ts';

/** Running collectors into sinks until the time is over, somebody stops it, or the target is gone. */

/** A collector with what it looks at. */
export interface Source {
  readonly name: string;
  observe(context: ObserveContext): AsyncIterable<Observation>;
}

/** Binds a collector to its target. */
export function sourceOf<T extends Target>(collector: Collector<T>, target: T): Source {
  return { name: collector.name, observe: (context) => collector.observe(target, context) };
}

/** The same source, with everything it yields marked as seen of process `pid`. */
export function ofProcess(source: Source, pid: number): Source {
  // Samplers reuse their attribute objects, and sinks know them by that.
  const marked = new WeakMap<Attributes, Attributes>();
  const whole: Attributes = { [ATTR.pid]: pid };
  const mark = (attributes: Attributes | undefined): Attributes => {
    if (attributes === undefined) return whole;
    let known = marked.get(attributes);
    if (known === undefined) {
      known = ATTR.pid in attributes ? attributes : { ...attributes, ...whole };
      marked.set(attributes, known);
    }
    return known;
  };
  return {
    name: source.name,
    async *observe(context) {
      for await (const observation of source.observe(context)) {
        switch (observation.kind) {
          case 'sample':
          case 'histogram':
          case 'span':
          case 'event':
            yield { ...observation, attributes: mark(observation.attributes) };
            break;
          case 'gap':
            yield { ...observation, pid };
            break;
          case 'stack':
          case 'snapshot':
            yield observation;
            break;
          default:
            observation satisfies never;
        }
      }
    },
  };
}

export interface WatchOptions {
  readonly sources: readonly Source[];
  /** Called once when the run begins, with what adds a source to it while it goes on: a process that appeared meanwhile. */
  readonly joining?: (add: (source: Source) => void, signal: AbortSignal) => void;
  /** Whether the run ends with the process that this `target-gone` gap is about; without it, with the first that is gone. */
  readonly endsWith?: (gap: Gap) => boolean;
  readonly sinks: readonly Sink[];
  readonly clock: Clock;
  /** When the run began, by its recording: from then on, what was not seen is a gap. */
  readonly since: Seconds;
  /** Null: until stopped, or until what is watched is gone. A promise: until it is settled, whatever is gone. */
  readonly duration: Seconds | Promise<unknown> | null;
  /** Calls `stop` when somebody ends the run; the result ends that. */
  onStop(stop: () => void): () => void;
  /** Called about once a second, for a status line. */
  onTick(elapsed: Seconds): void;
}

export interface Watched {
  readonly from: Seconds;
  readonly to: Seconds;
  readonly reason: 'duration' | 'interrupted' | 'target-gone';
  readonly ownCpu: Ratio;
  /** Time in which the sampler came late: nobody looked. Of several processes, the one that was looked at least. */
  readonly unseen: Seconds;
  /** Readings of the target that reached the sinks. */
  readonly observed: number;
}

/**
 * Once start-up is over: the first second compiles our own hot paths, and is counted as start-up.
 */
const SETTLED_AFTER: Seconds = 1;

/** Unix seconds in a double resolve 0.2 µs: times this close together are one. */
const CLOCK_GRAIN: Seconds = 1e-6;

/** Seconds between two clock anchors. */
const ANCHOR_EVERY = 60;

/** Never throws on account of a collector: what fails becomes a gap. */
export async function watch(options: WatchOptions): Promise<Watched> {
  const { clock, duration, since: from } = options;
  const controller = new AbortController();
  // Each source of each process listens to it.
  setMaxListeners(0, controller.signal);
  let reason: Watched['reason'] = 'duration';
  let observed = 0;
  const unseen = new Map<number | undefined, Seconds>();
  const meter = new CpuMeter(clock);
  const clocks = new ClockWatch(clock);
  const heap = new HeapTidy(clock.mono());
  // What the sources hand over after that was seen before it.
  let to: Seconds | null = null;
  controller.signal.addEventListener('abort', () => (to = clock.now()), { once: true });
  const release = options.onStop(() => {
    reason = 'interrupted';
    controller.abort();
  });
  const timer =
    typeof duration === 'number' ? setTimeout(() => controller.abort(), duration * 1e3) : null;
  const until = duration instanceof Promise ? duration : null;
  let anchorDue = 0;
  const ticker = setInterval(() => {
    meter.tick();
    for (const seen of clocks.tick()) emit(seen);
    if (++anchorDue % ANCHOR_EVERY === 0) for (const one of clocks.anchor()) emit(one);
    options.onTick(clock.now() - from);
    heap.tick(clock.mono());
  }, 1000);
  const emit = (observation: Observation): void => {
    if (isReading(observation)) observed++;
    for (const sink of options.sinks) sink.write(observation);
    if (
      observation.kind === 'gap' &&
      observation.reason === 'late' &&
      observation.collector === 'event-loop'
    ) {
      const { pid, from: since, to: until } = observation;
      // What passed before the first sample says nothing of how the sampler fares.
      if (since - from > CLOCK_GRAIN) unseen.set(pid, (unseen.get(pid) ?? 0) + until - since);
    }
    if (
      observation.kind === 'gap' &&
      observation.reason === 'target-gone' &&
      until === null &&
      !controller.signal.aborted &&
      (options.endsWith?.(observation) ?? true)
    ) {
      reason = 'target-gone';
      controller.abort();
    }
  };
  for (const one of clocks.anchor()) emit(one);
  try {
    const context = { signal: controller.signal, clock };
    const watching = new Set<Promise<void>>();
    const add = (source: Source, since: Seconds = clock.now()): void => {
      const watched = drain(source, { ...context, since }, emit).finally(() =>
        watching.delete(watched),
      );
      watching.add(watched);
    };
    for (const source of options.sources) add(source, from);
    options.joining?.((source) => add(source), controller.signal);
    const ended = until?.finally(() => controller.abort()).catch(() => {});
    // What joins while the others are waited for is waited for too.
    while (watching.size > 0) await Promise.all(watching);
    await ended;
  } finally {
    if (timer !== null) clearTimeout(timer);
    clearInterval(ticker);
    release();
  }
  return {
    from,
    to: to ?? clock.now(),
    reason,
    ownCpu: meter.ratio(),
    unseen: Math.max(0, ...unseen.values()),
    observed,
  };
}

/** Everything a source yields; what it throws becomes a gap. */
async function drain(
  source: Source,
  context: ObserveContext,
  emit: (observation: Observation) => void,
): Promise<void> {
  try {
    for await (const observation of source.observe(context)) emit(observation);
  } catch (error) {
    emit(failure(source.name, context.clock, error));
  }
}

/** Whether an observation shows something of the target, unlike gaps and notes about the run itself. */
function isReading({ kind }: Observation): boolean {
  return kind === 'sample' || kind === 'histogram' || kind === 'span';
}

/** What the end of a run says, from what was watched and what the sampler counted. */
export function runEnd(
  watched: Watched,
  counts: {
    startupCpu: Seconds;
    targetPaused: Seconds;
    samples: number;
    late: number;
    dropped: number;
    unbounded: boolean;
  },
): RunEnd {
  return {
    endedAt: watched.to,
    // Ctrl-C is how a run without a duration is meant to end.
    interrupted: watched.reason === 'interrupted' && !counts.unbounded,
    reason: watched.reason,
    ownCpuRatio: watched.ownCpu,
    startupCpu: counts.startupCpu,
    targetPaused: counts.targetPaused,
    samples: counts.samples,
    late: counts.late,
    dropped: counts.dropped,
  };
}

/** CPU of this whole process, worker included, over wall time since it settled; over everything in shorter runs. */
class CpuMeter {
  readonly #clock: Clock;
  readonly #began: Seconds;
  #from: { readonly at: Seconds; readonly cpu: Seconds };
  #settled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#began = clock.mono();
    this.#from = { at: this.#began, cpu: ownCpuTime() };
  }

  tick(): void {
    if (this.#settled || this.#clock.mono() - this.#began < SETTLED_AFTER) return;
    this.#settled = true;
    this.#from = { at: this.#clock.mono(), cpu: ownCpuTime() };
  }

  ratio(): Ratio {
    const elapsed = this.#clock.mono() - this.#from.at;
    return elapsed <= 0 ? 0 : (ownCpuTime() - this.#from.cpu) / elapsed;
  }
}

/** User and system time of all our threads so far. */
export function ownCpuTime(): Seconds {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function failure(collector: string, clock: Clock, error: unknown): Observation {
  const at = clock.now();
  const detail = maskText(error instanceof Error ? error.message : String(error));
  return { kind: 'gap', from: at, to: at, collector, reason: 'failed', detail };
}
