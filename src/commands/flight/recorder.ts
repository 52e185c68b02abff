import { type Firing, TriggerWatch } from '../../analysis/trigger.ts';
import { toTargetInfo } from '../../core/otlp-records.ts';
import { EVENT, SNAPSHOT } from '../../core/semconv.ts';
import { printable } from '../../core/text.ts';
import type {
  Bytes,
  Finding,
  Gap,
  Observation,
  RecordingView,
  RunEnd,
  Seconds,
  Sink,
  Snapshot,
} from '../../core/types.ts';
import { memoryRecording } from '../../recording/memory.ts';
import { momentOf, ObservationRing } from '../../recording/ring.ts';
import { KnownStacks } from '../../recording/stack-references.ts';
import { firingText, type Flight, type FlightEvent } from '../../report/flight.ts';
import { DistinctFindings } from './findings.ts';
import { FlightWindow, type WindowSetup } from './window.ts';
import type { TriggerOptions } from './trigger-options.ts';

/**
 * A sink that keeps the last stretch in memory and writes it when a trigger fires, with what comes after: what leaving trace on costs is the
 * watching alone. Time is that of the observations, so what is decided here is decided by them.
 */

/** Of what is kept: a minute of fifty busy processes takes a quarter of it. */
const RING_BYTES: Bytes = 32 * 1024 * 1024;
/** Some spans come late: V8's profiler is asked every ten seconds. What led to them must still be there then. */
const LATE_SPANS: Seconds = 12;
/** As many as one process's sampler tells apart. */
const STACKS_KNOWN = 20_000;
/** Events that a report lists, also where the disk took none of them. */
const EVENTS_LISTED = 10_000;
/** A condition whose metric was not seen by then is said to be idle: every collector reads once a second. */
const SILENT_AFTER: Seconds = 10;

/** What a flight recorder is opened with. */
export interface FlightSetup extends Omit<WindowSetup, 'number' | 'after' | 'onOpen'> {
  readonly trigger: TriggerOptions;
  /** How it goes on: one line for each event. */
  readonly onNote: (text: string) => void;
  /** For tests; otherwise 32 MiB. */
  readonly ringBytes?: Bytes;
}

export class FlightRecorder implements Sink {
  readonly name = 'flight-recorder';
  readonly #setup: FlightSetup;
  readonly #watch: TriggerWatch;
  readonly #ring: ObservationRing;
  readonly #stacks = new KnownStacks(STACKS_KNOWN);
  readonly #findings = new DistinctFindings();
  readonly #ended: Promise<FlightEvent>[] = [];
  /** What stands for the whole run and was told once: the processes that joined, by pid, and the last anchor of the clocks. */
  readonly #joined = new Map<number, Snapshot>();
  /** When those of them ended that did: once that is no longer in memory, neither need they be. */
  readonly #left = new Map<number, Seconds>();
  #anchor: Observation | null = null;
  #window: FlightWindow | null = null;
  #quietUntil: Seconds = Number.NEGATIVE_INFINITY;
  #notWritten = 0;
  /** Events that the disk did not take. */
  #unrecorded = 0;
  #keptBytes: Bytes = 0;
  #firstAt: Seconds | null = null;
  /** Stretches that could not be observed, and how long they were together. */
  #gaps = { count: 0, total: 0 };
  #closed = false;
  #late = 0;

  constructor(setup: FlightSetup) {
    this.#setup = setup;
    this.#watch = new TriggerWatch(setup.trigger.conditions);
    const span = setup.trigger.before + LATE_SPANS;
    this.#ring = new ObservationRing({ span, bytes: setup.ringBytes ?? RING_BYTES });
  }

  /** About what has been kept in memory at most. */
  get keptBytes(): Bytes {
    return this.#keptBytes;
  }

  write(observation: Observation): void {
    if (this.#closed) {
      this.#late++;
      return;
    }
    if (observation.kind === 'stack') {
      this.#stacks.add(observation);
      return;
    }
    this.#ring.push(observation);
    this.#keptBytes = Math.max(this.#keptBytes, this.#ring.bytes);
    const { latest } = this.#ring;
    if (this.#window?.isOver(latest) === true) this.#end(null);
    if (this.#window !== null)
      for (const one of this.#withStacks(observation)) this.#window.write(one);
    for (const firing of this.#watch.take(observation)) this.#fire(firing);
    this.#keep(observation);
    this.#sayWhatIsSilent(latest);
  }

  /** What is in memory, as a recording of the run's last stretch. */
  tail(end: RunEnd): RecordingView {
    const memory = memoryRecording(this.#setup.start, { metrics: this.#setup.metrics });
    const contents = this.#contents(Number.NEGATIVE_INFINITY);
    const standing = this.#standing(beginningOf(contents) ?? end.endedAt);
    for (const observation of [...standing, ...contents]) memory.write(observation);
    return memory.view(end);
  }

  /** Ends what is being written, and gives all events with the findings of their recordings, each once. */
  async finish(end: RunEnd): Promise<{ flight: Flight; findings: readonly Finding[] }> {
    this.#closed = true;
    if (this.#window !== null) this.#end(end.reason);
    const events = await Promise.all(this.#ended);
    const { conditions, before, after } = this.#setup.trigger;
    const flight: Flight = {
      expressions: conditions.map(({ expression }) => expression),
      before,
      after,
      events: events.map((event) => ({
        ...event,
        findings: this.#findings.idsOf(event.number),
      })),
      notWritten: this.#notWritten,
      gaps: this.#gaps,
      keptBytes: this.#keptBytes,
    };
    return { flight, findings: this.#findings.all() };
  }

  close(): Promise<{ readonly dropped: number }> {
    this.#closed = true;
    return Promise.resolve({ dropped: this.#ring.dropped + this.#late });
  }

  #fire(firing: Firing): void {
    if (this.#window !== null) {
      this.#window.fire(firing);
      return;
    }
    const { trigger } = this.#setup;
    const number = this.#ended.length + 1;
    const isFull = number > EVENTS_LISTED || number - this.#unrecorded > trigger.most;
    if (isFull || firing.at < this.#quietUntil) {
      this.#notWritten++;
      return;
    }
    const { start } = this.#setup;
    const from = firing.at - trigger.before;
    const contents = this.#contents(from);
    // What lasted is recorded whole, also when it began before that; what memory could not hold is part of it too, as a gap.
    const first = Math.min(
      firing.at,
      beginningOf(contents) ?? firing.at,
      this.#ring.lostUntil > from ? from : firing.at,
    );
    const startedAt = Math.max(start.startedAt, first);
    this.#window = new FlightWindow(
      {
        ...this.#setup,
        number,
        start: { ...start, startedAt },
        after: trigger.after,
        onOpen: (event) => this.#announce(event),
      },
      firing,
      [...this.#standing(startedAt), ...this.#lost(startedAt), ...contents],
    );
  }

  #end(reason: string | null): void {
    const window = this.#window;
    if (window === null) return;
    this.#window = null;
    const { latest } = this.#ring;
    this.#quietUntil = latest + this.#setup.trigger.cooldown;
    const ended = window.end(latest, reason).then(({ event, findings }) => {
      this.#findings.add(event.number, findings);
      return event;
    });
    // A bug in there is thrown where the end of the run waits for it.
    ended.catch(() => {});
    this.#ended.push(ended);
  }

  /** What the ring holds since then, stacks before what refers to them. */
  #contents(from: Seconds): readonly Observation[] {
    return this.#ring.since(from).flatMap((observation) => this.#withStacks(observation));
  }

  #withStacks(observation: Observation): readonly Observation[] {
    if (observation.kind !== 'span' && observation.kind !== 'event') return [observation];
    return [...this.#stacks.referredBy(observation.attributes), observation];
  }

  #keep(observation: Observation): void {
    if (observation.kind === 'event' && observation.name === EVENT.clockAnchor)
      this.#anchor = observation;
    else if (observation.kind === 'gap') this.#keepGap(observation);
    else if (observation.kind === 'snapshot' && observation.of === SNAPSHOT.target) {
      const pid = toTargetInfo(observation.body)?.pid;
      if (pid === undefined) return;
      this.#forgetLeft();
      this.#left.delete(pid);
      this.#joined.set(pid, observation);
    }
  }

  #keepGap({ from, to, reason, pid }: Gap): void {
    if (reason !== 'target-gone') {
      const { count, total } = this.#gaps;
      this.#gaps = { count: count + 1, total: total + to - from };
    } else if (pid !== undefined) this.#left.set(pid, to);
  }

  #forgetLeft(): void {
    const from = this.#ring.latest - this.#setup.trigger.before - LATE_SPANS;
    for (const [pid, at] of this.#left) {
      // In the order in which they ended.
      if (at >= from) return;
      this.#left.delete(pid);
      this.#joined.delete(pid);
    }
  }

  #standing(before: Seconds): readonly Observation[] {
    const joined = [...this.#joined].flatMap(([pid, snapshot]) =>
      snapshot.at < before && (this.#left.get(pid) ?? before) >= before ? snapshot : [],
    );
    return this.#anchor !== null && momentOf(this.#anchor) < before
      ? [...joined, this.#anchor]
      : joined;
  }

  /** What the ring could not keep, as a gap. */
  #lost(from: Seconds): readonly Gap[] {
    const { dropped, lostUntil } = this.#ring;
    if (lostUntil <= from) return [];
    const detail = `the memory for what comes before an event was full: ${dropped} observations were dropped since the start`;
    return [{ kind: 'gap', from, to: lostUntil, collector: this.name, reason: 'dropped', detail }];
  }

  #announce(event: FlightEvent): void {
    const { recording } = event;
    const where = recording === null ? 'not recorded' : `→ ${printable(recording, 4096)}`;
    this.#setup.onNote(`${firingText(event)}  ${where}`);
    // What the disk did not take counts for nothing: there may be room again later.
    if (recording === null) this.#unrecorded++;
    else if (event.number - this.#unrecorded === this.#setup.trigger.most)
      this.#setup.onNote(
        `that was the last recording that --trigger-max ${this.#setup.trigger.most} allows; what fires from now on is counted`,
      );
  }

  #sayWhatIsSilent(latest: Seconds): void {
    this.#firstAt ??= latest;
    if (latest - this.#firstAt < SILENT_AFTER) return;
    this.#firstAt = Number.POSITIVE_INFINITY;
    for (const condition of this.#watch.unread()) {
      const what =
        condition.kind === 'delay'
          ? 'no event loop could be watched so far'
          : condition.kind === 'exit'
            ? ''
            : `no reading of ${condition.metric} came so far`;
      this.#setup.onProblem(`--trigger '${condition.expression}' has nothing to fire on: ${what}`);
    }
  }
}

/** When the first of it began; what lasted may have begun long before it was told. */
function beginningOf(contents: readonly Observation[]): Seconds | null {
  let first: Seconds | null = null;
  for (const one of contents) {
    if (one.kind === 'stack') continue;
    const from = 'from' in one ? one.from : one.at;
    if (first === null || from < first) first = from;
  }
  return first;
}
