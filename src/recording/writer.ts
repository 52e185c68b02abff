import { anchoredClock, takeAnchor } from '../core/clock.ts';
import type { TraceError } from '../core/errors.ts';
import {
  encodeContext,
  encodeMetrics,
  encodeSpans,
  type EncodeContext,
} from '../core/otlp-encode.ts';
import { encodeLogs, type LogSource } from '../core/otlp-log-encode.ts';
import { encodeRootSpan } from '../core/otlp-root-span.ts';
import type { OtlpPayload } from '../core/otlp-types.ts';
import type {
  Attributes,
  Bytes,
  Clock,
  Finding,
  Gap,
  Histogram,
  Metric,
  Observation,
  RunEnd,
  RunStart,
  Sample,
  Seconds,
  Sink,
  Span,
  StackSample,
} from '../core/types.ts';
import {
  callerOwner,
  createRecordingDirectory,
  type IfExists,
  type MadeRecording,
} from './directory.ts';
import type { MadeFolder, OpenFolder } from './folder.ts';
import { FullDisk } from './full-disk.ts';
import { LINE_POINTS, toLine } from './line.ts';
import { LineQueue } from './line-queue.ts';
import { FinishedSegments } from './segment-budget.ts';
import { SegmentFiles } from './segments.ts';
import { stackIdsIn } from './stack-references.ts';
import { writeError } from './write-error.ts';

/**
 * The recording on disk: observations gathered for a second, then one line for each signal. Encoding and writing happen on the
 * flush timer, never in `write`.
 */

/** What is lost at most when the process is killed. */
const FLUSH_INTERVAL: Seconds = 1;
/** A finished segment of this size compresses to about 3 MB in about a second, off the main thread. */
const SEGMENT_BYTES = 64 * 1024 * 1024;
/** Beside what is finished there are the segment being written, the one before it, being compressed, and a quarter of one for what comes of it. */
const UNFINISHED_SEGMENTS = 2.25;
/** With a smaller limit segments are smaller, so that there are still some to be thinned out. */
const SEGMENTS_AT_LEAST = 8;
/** A day of one busy process takes 150 MB, of ten quiet ones 600. */
export const DEFAULT_MAX_SIZE: Bytes = 512 * 1024 * 1024;
/** More readings in a second than any aggregate gives: a collector that sends each raw reading (5 ms: 200/s a thread). */
const POINTS_PER_SECOND = 5_000;
/** Stacks remembered so that a new segment can repeat those it refers to. */
const STACKS_LIMIT = 4096;

/** A sink that writes a recording folder. */
export interface RecordingSink extends Sink {
  /** The folder, which may have got a suffix. */
  readonly directory: string;
  /** By which the folder is known again when it is read back. */
  readonly made: MadeFolder;
  /** Observations that did not get into the file. */
  readonly dropped: number;
  /** What was written, before any of it was compressed or thinned out. */
  readonly written: Bytes;
  /** Puts everything written so far into the file. */
  flush(): Promise<void>;
  /** Writes the findings, the run's end and its root span, and closes. */
  end(end: RunEnd, findings: readonly Finding[]): Promise<{ readonly dropped: number }>;
}

/** How to open a recording. */
export interface RecordingWriterOptions {
  readonly directory: string;
  readonly start: RunStart;
  /** For SUDO_UID and SUDO_GID: the files then belong to the caller. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `fail` (the default) for a folder the user named, `suffix` for a default one. */
  readonly ifExists?: IfExists;
  /** Metrics beyond those of semconv.ts. */
  readonly metrics?: readonly Metric[];
  /** `--raw`: collectors may store single readings; the limit on points a second does not hold. */
  readonly raw?: boolean;
  readonly clock?: Clock;
  /** The most that the recording takes on disk; older parts are thinned out to keep to it. */
  readonly maxSize?: Bytes;
  readonly segmentBytes?: Bytes;
  /** Called when writing had to stop. What is on disk until then stays readable. */
  readonly onFailure?: (error: TraceError) => void;
  /** Called when a disk that was full has room again, with what could not be written meanwhile. */
  readonly onResume?: (gap: Gap) => void;
}

/** Creates the folder and writes its first line. Throws a `TraceError` when that is not possible; later trouble does not throw. */
export async function openRecordingWriter(options: RecordingWriterOptions): Promise<RecordingSink> {
  const owner = callerOwner(options.env);
  const { ifExists = 'fail' } = options;
  const made = await createRecordingDirectory(options.directory, { ifExists, owner });
  const writer = new RecordingWriter(made, options);
  await writer.begin();
  return writer;
}

class RecordingWriter implements RecordingSink {
  readonly name = 'recording';
  readonly directory: string;
  readonly made: MadeFolder;
  readonly #folder: OpenFolder;
  readonly #queue: LineQueue;
  readonly #options: RecordingWriterOptions;
  readonly #context: EncodeContext;
  readonly #clock: Clock;
  readonly #fullDisk: FullDisk;
  readonly #stacks = new Map<string, StackSample>();
  readonly #stacksInSegment = new Set<string>();
  #points: (Sample | Histogram)[] = [];
  #spans: Span[] = [];
  #logs: LogSource[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #refused = 0;
  #pointsThisSecond = 0;
  /** Points over the limit since the last flush, and when that flush was. */
  #shed = 0;
  #flushedAt: Seconds;

  constructor({ folder, owner, made }: MadeRecording, options: RecordingWriterOptions) {
    const directory = folder.path;
    const { maxSize = DEFAULT_MAX_SIZE } = options;
    const segmentBytes =
      options.segmentBytes ?? Math.min(SEGMENT_BYTES, Math.floor(maxSize / SEGMENTS_AT_LEAST));
    this.directory = directory;
    this.made = made;
    this.#folder = folder;
    this.#options = options;
    this.#context = encodeContext(options.start, { metrics: options.metrics ?? [] });
    this.#clock = options.clock ?? anchoredClock(takeAnchor());
    this.#flushedAt = this.#clock.now();
    this.#fullDisk = new FullDisk(directory, this.#clock);
    const finished = new FinishedSegments({
      directory: folder.opened,
      owner,
      bytes: Math.max(0, maxSize - UNFINISHED_SEGMENTS * segmentBytes),
      context: this.#context,
    });
    this.#queue = new LineQueue(new SegmentFiles(folder.opened, owner, finished), {
      segmentBytes,
      header: () =>
        toLine(encodeLogs([{ kind: 'run-start', start: options.start }], this.#context)),
      onRoll: () => this.#stacksInSegment.clear(),
      onFailure: (cause) => {
        this.#fullDisk.began(this.dropped);
        options.onFailure?.(writeError(directory, cause));
      },
    });
  }

  get dropped(): number {
    return this.#refused + this.#queue.dropped;
  }

  get written(): Bytes {
    return this.#queue.written;
  }

  async begin(): Promise<void> {
    try {
      await this.#queue.begin();
    } catch (cause) {
      await this.#queue.close();
      await this.#folder.close();
      throw writeError(this.directory, cause);
    }
    this.#timer = setInterval(() => void this.flush(), FLUSH_INTERVAL * 1e3);
    this.#timer.unref();
  }

  write(observation: Observation): void {
    if (this.#closed || this.#queue.state !== 'writing') {
      this.#refused++;
      return;
    }
    switch (observation.kind) {
      case 'sample':
      case 'histogram':
        if (++this.#pointsThisSecond > POINTS_PER_SECOND && this.#options.raw !== true) {
          this.#shed++;
          this.#refused++;
          return;
        }
        if (this.#points.push(observation) >= LINE_POINTS) this.#encodePending();
        return;
      case 'span':
        this.#repeatStacks(observation.attributes);
        if (this.#spans.push(observation) >= LINE_POINTS) this.#encodePending();
        return;
      case 'stack':
        if (this.#stacks.size < STACKS_LIMIT) this.#stacks.set(observation.id, observation);
        if (this.#stacksInSegment.has(observation.id)) return;
        this.#stacksInSegment.add(observation.id);
        this.#log(observation);
        return;
      case 'event':
        this.#repeatStacks(observation.attributes);
        this.#log(observation);
        return;
      case 'snapshot':
      case 'gap':
        this.#log(observation);
    }
  }

  async flush(): Promise<void> {
    const now = this.#clock.now();
    if (this.#queue.state === 'paused' && (await this.#fullDisk.mayBeOver())) await this.#resume();
    if (this.#shed > 0) this.#log(this.#shedGap(now));
    this.#shed = 0;
    this.#pointsThisSecond = 0;
    this.#flushedAt = now;
    this.#encodePending();
    return this.#queue.idle();
  }

  async end(end: RunEnd, findings: readonly Finding[]): Promise<{ readonly dropped: number }> {
    // The end is short: it may fit where no second did.
    if (!this.#closed && this.#queue.state === 'paused') await this.#resume();
    if (!this.#closed && this.#queue.state === 'writing') {
      for (const finding of findings) this.#log({ kind: 'finding', finding, at: end.endedAt });
      await this.flush();
      this.#put(encodeRootSpan(end, findings, this.#context), 0);
      // Last, so that a recording with an end is a complete one.
      this.#put(encodeLogs([{ kind: 'run-end', end }], this.#context), 0);
    }
    return this.close();
  }

  async close(): Promise<{ readonly dropped: number }> {
    if (!this.#closed) {
      clearInterval(this.#timer);
      const flushed = this.flush();
      this.#closed = true;
      await flushed;
    }
    await this.#queue.close();
    await this.#folder.close();
    return { dropped: this.dropped };
  }

  async #resume(): Promise<void> {
    const gap = this.#fullDisk.gap(this.dropped);
    const isOver = await this.#queue.resume(toLine(encodeLogs([gap], this.#context)));
    if (!isOver) return this.#fullDisk.goesOn();
    // What stacks were written may have been among what was lost.
    this.#stacksInSegment.clear();
    this.#options.onResume?.(gap);
  }

  #log(source: LogSource): void {
    if (this.#logs.push(source) >= LINE_POINTS) this.#encodePending();
  }

  /** Each segment can be read alone, so it repeats the stacks that its spans and events refer to. */
  #repeatStacks(attributes: Attributes | undefined): void {
    for (const id of stackIdsIn(attributes)) {
      if (this.#stacksInSegment.has(id)) continue;
      const stack = this.#stacks.get(id);
      if (stack !== undefined) this.write(stack);
    }
  }

  #shedGap(now: Seconds): Gap {
    const detail = `${this.#shed} readings over the limit of ${POINTS_PER_SECOND} a second`;
    const from = this.#flushedAt;
    return { kind: 'gap', from, to: now, collector: 'recording', reason: 'dropped', detail };
  }

  /** Stacks before the spans that name them: a file that ends in between still explains its spans. */
  #encodePending(): void {
    const [logs, points, spans] = [this.#logs, this.#points, this.#spans];
    [this.#logs, this.#points, this.#spans] = [[], [], []];
    if (logs.length > 0) this.#put(encodeLogs(logs, this.#context), logs.length);
    if (points.length > 0) this.#put(encodeMetrics(points, this.#context), points.length);
    if (spans.length > 0) this.#put(encodeSpans(spans, this.#context), spans.length);
  }

  #put(payload: OtlpPayload, observations: number): void {
    this.#queue.put(toLine(payload), observations);
  }
}
