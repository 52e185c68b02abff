import { detectAll } from '../../analysis/detectors.ts';
import type { Firing } from '../../analysis/trigger.ts';
import { TraceError } from '../../core/errors.ts';
import { newTraceId } from '../../core/ids.ts';
import { ATTR, EVENT, METRIC } from '../../core/semconv.ts';
import type {
  Bytes,
  Clock,
  Finding,
  Metric,
  Observation,
  RunEnd,
  RunStart,
  Seconds,
  Sink,
} from '../../core/types.ts';
import { type MemoryRecording, memoryRecording } from '../../recording/memory.ts';
import { weightOf } from '../../recording/ring.ts';
import type { RecordingSink } from '../../recording/writer.ts';
import type { FlightEvent } from '../../report/flight.ts';
import type { Export } from '../watching/run-export.ts';
import { ownCpuTime } from '../watching/watch.ts';

/** The recording of one event: what stood in the ring, and what comes until the time after it is over. */

/** Of one recording, as it takes memory; on disk about as much. A minute of one process is about 1 MB. */
const WINDOW_BYTES: Bytes = 64 * 1024 * 1024;
/** A trigger that goes on firing extends its recording to this; the next firing begins another. */
const WINDOW_LONGEST: Seconds = 600;
/** Observations handed to the disk at once, between two of its writes. */
const SLICE = 1000;
/** Triggers and firings told apart within one event. */
const ALSO_LISTED = 20;

/** What a window is opened with. */
export interface WindowSetup {
  /** Counted from 1. */
  readonly number: number;
  readonly start: RunStart;
  /** Metrics beyond those of semconv.ts. */
  readonly metrics: readonly Metric[];
  readonly clock: Clock;
  readonly after: Seconds;
  /** Throws a TraceError that says why no recording can be written. */
  readonly openDisk: (start: RunStart, number: number) => Promise<RecordingSink>;
  readonly openExport: (start: RunStart) => Promise<Export | null>;
  /** Said once the folder is there. */
  readonly onOpen: (event: FlightEvent) => void;
  readonly onProblem: (text: string) => void;
}

/** What a window became. */
export interface WrittenWindow {
  readonly event: FlightEvent;
  readonly findings: readonly Finding[];
}

export class FlightWindow {
  readonly #setup: WindowSetup;
  readonly #start: RunStart;
  readonly #memory: MemoryRecording;
  readonly #first: Firing;
  readonly #ownCpu: Seconds = ownCpuTime();
  readonly #openedAt: Seconds;
  readonly #opening: Promise<void>;
  readonly #also = new Set<string>();
  /** What came before the disk was open; null once it has been written. */
  #pending: Observation[] | null = [];
  #sinks: Sink[] = [];
  #disk: RecordingSink | null = null;
  #export: Export | null = null;
  #bytes: Bytes = 0;
  #until: Seconds;
  #worst: number | null;
  #count = 0;
  #samples = 0;
  #late = 0;

  /** `contents` is what the recording begins with. */
  constructor(setup: WindowSetup, first: Firing, contents: readonly Observation[]) {
    this.#setup = setup;
    this.#first = first;
    this.#worst = first.value;
    this.#openedAt = setup.clock.mono();
    this.#start = {
      ...setup.start,
      traceId: newTraceId(),
      settings: { ...setup.start.settings, trigger: first.condition.expression },
    };
    this.#memory = memoryRecording(this.#start, { metrics: setup.metrics });
    this.#until = first.at + setup.after;
    for (const observation of contents) this.write(observation);
    this.fire(first);
    this.#opening = this.#open();
    // A bug in there is thrown where the end waits for it.
    this.#opening.catch(() => {});
  }

  /** Whether what happens at this moment is no longer of this event. */
  isOver(at: Seconds): boolean {
    return at >= this.#until || this.#bytes >= WINDOW_BYTES;
  }

  write(observation: Observation): void {
    this.#bytes += weightOf(observation);
    if (observation.kind === 'histogram' && observation.metric === METRIC.loopDelay.name)
      this.#samples += observation.buckets.count;
    if (observation.kind === 'gap' && observation.reason === 'late') this.#late++;
    this.#memory.write(observation);
    if (this.#pending !== null) this.#pending.push(observation);
    else for (const sink of this.#sinks) sink.write(observation);
  }

  /** Marks a firing, and goes on for the time after it. */
  fire(firing: Firing): void {
    const { condition, at, value, pid, detail } = firing;
    const { expression } = condition;
    if (expression !== this.#first.condition.expression) {
      if (this.#also.size < ALSO_LISTED) this.#also.add(expression);
    } else {
      if (firing.isWhole) this.#count++;
      if (value !== null) this.#worst = worse(condition, this.#worst, value);
    }
    const longest = this.#start.startedAt + WINDOW_LONGEST;
    this.#until = Math.max(this.#until, Math.min(at + this.#setup.after, longest));
    this.write({
      kind: 'event',
      at,
      name: EVENT.trigger,
      severity: 'warn',
      body: detail === null ? expression : `${expression}: ${detail}`,
      attributes: {
        [ATTR.triggerExpression]: expression,
        ...(value === null ? {} : { [ATTR.triggerValue]: value }),
        ...(pid === null ? {} : { [ATTR.pid]: pid }),
      },
    });
  }

  /** Writes the findings and the end, and closes. `reason` is why it ends before its time, null when it does not. */
  async end(at: Seconds, reason: string | null): Promise<WrittenWindow> {
    await this.#opening;
    const elapsed = Math.max(this.#setup.clock.mono() - this.#openedAt, 1e-9);
    const end: RunEnd = {
      endedAt: Math.max(this.#start.startedAt, Math.min(at, this.#until)),
      interrupted: reason === 'interrupted',
      reason: reason ?? 'trigger',
      ownCpuRatio: (ownCpuTime() - this.#ownCpu) / elapsed,
      startupCpu: 0,
      targetPaused: 0,
      samples: this.#samples,
      late: this.#late,
      dropped: this.#memory.dropped,
    };
    const findings = detectAll(this.#memory.view(end));
    await this.#disk?.end(end, findings);
    const traceUrl = (await this.#export?.finish(end, findings)) ?? null;
    await this.#memory.close();
    return { event: { ...this.#event(), to: end.endedAt, traceUrl }, findings };
  }

  async #open(): Promise<void> {
    const { openDisk, openExport, onOpen, onProblem, number } = this.#setup;
    try {
      this.#disk = await openDisk(this.#start, number);
    } catch (error) {
      if (!(error instanceof TraceError)) throw error;
      onProblem(`event ${number} is not recorded: ${error.message}`);
    }
    onOpen(this.#event());
    this.#export = await openExport(this.#start);
    this.#sinks = [this.#disk, this.#export?.sink ?? null].filter((sink) => sink !== null);
    for (let slice; (slice = this.#pending?.splice(0, SLICE)) !== undefined;) {
      if (slice.length === 0) break;
      for (const observation of slice) for (const sink of this.#sinks) sink.write(observation);
      await this.#disk?.flush();
    }
    this.#pending = null;
  }

  #event(): FlightEvent {
    const { condition, at, value, pid, detail } = this.#first;
    return {
      number: this.#setup.number,
      expression: condition.expression,
      at,
      value,
      worst: this.#worst,
      dimension:
        condition.kind === 'exit' ? null : condition.kind === 'delay' ? 's' : condition.dimension,
      pid,
      detail,
      count: Math.max(1, this.#count),
      also: [...this.#also],
      from: this.#start.startedAt,
      to: this.#until,
      recording: this.#disk?.directory ?? null,
      findings: [],
      traceId: this.#start.traceId,
      traceUrl: null,
    };
  }
}

/** Of two values the one farther beyond the condition's limit. */
function worse(condition: Firing['condition'], one: number | null, other: number): number {
  if (one === null || condition.kind === 'exit') return other;
  return condition.operator.startsWith('<') ? Math.min(one, other) : Math.max(one, other);
}
