import type { FileHandle } from 'node:fs/promises';
import { errorCode, TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { isOverNested } from '../core/nesting.ts';
import { looksLikeOtlp, type OtlpLineDecoder, otlpLineDecoder } from '../core/otlp-decode.ts';
import { NO_TRACE_ID } from '../core/otlp-records.ts';
import { printable } from '../core/text.ts';
import { ATTR, EVENT } from '../core/semconv.ts';
import type {
  Finding,
  Observation,
  RecordingView,
  RunEnd,
  RunStart,
  Seconds,
} from '../core/types.ts';
import { openOutside } from '../platform/outside-file.ts';
import { type ContentsLimits, RecordingContents } from './contents.ts';
import { describeContent } from './foreign.ts';
import { openOwned } from './files.ts';
import { type MadeFolder, openMade } from './folder.ts';
import { RECORDING_SCHEMA_VERSION } from './format.ts';
import { readLines } from './lines.ts';
import { type Segment, locateSegments } from './locate.ts';

/** A recording read from disk. */
export interface StoredRecording extends RecordingView {
  /** The findings as they were when the run ended; empty for a run that was killed. */
  readonly findings: readonly Finding[];
  /** False for OTLP that another program wrote: `start` is then made up from the times seen. */
  readonly ours: boolean;
}

/** 32 MB of readings; what is more is thinned out, however large the recording is. */
const READ_POINTS = 2_000_000;
/** Most of them are the requests of a load run, about 500 bytes each. */
const READ_RECORDS = 1_000_000;
/** Blocks, and seconds of busy threads, about 1.5 kB each. */
const READ_ALIKE = 50_000;
/** A file that claims a longer one is broken: no run lasts a month. */
const LONGEST_WINDOW: Seconds = 31 * 86_400;
/** A file whose first lines hold no OTLP at all is given up: it may be a log of many gigabytes. */
const LINES_BEFORE_GIVING_UP = 100;
/** And one that holds some is read no further than so many lines of something else. */
const OTHER_LINES = 100_000;
const HEAD_BYTES = 4096;

/** Reads the recording at `path`: a folder, one of its files, or a file of the OpenTelemetry Collector's file exporter. */
export async function openRecording(
  path: string,
  options: { readonly limits?: Partial<ContentsLimits> } = {},
): Promise<StoredRecording> {
  return readAll(path, { ...options, segments: await locateSegments(path), open: openOutside });
}

/**
 * Reads a recording that this process wrote, and nothing else in its place: under sudo its folder
 * is the caller's, who may exchange a name for a link to what they may not read.
 */
export async function readRecordingBack(path: string, made: MadeFolder): Promise<StoredRecording> {
  const folder = await openMade(path, made);
  try {
    const segments = await locateSegments(folder.opened);
    return await readAll(path, { segments, open: (file) => openOwned(file, made.uid) });
  } finally {
    await folder.close();
  }
}

interface ReadOptions {
  readonly limits?: Partial<ContentsLimits>;
  readonly segments: readonly Segment[];
  readonly open: (path: string) => Promise<FileHandle>;
}

async function readAll(
  path: string,
  { limits, segments, open }: ReadOptions,
): Promise<StoredRecording> {
  const reading = new Reading(printable(path), {
    points: READ_POINTS,
    records: READ_RECORDS,
    alike: READ_ALIKE,
    ...limits,
  });
  for (const [index, segment] of segments.entries()) {
    if (reading.holds(segment)) continue;
    const file = await open(segment.path).catch((cause: unknown) => {
      throw unreadable(segment.path, cause);
    });
    await reading.segment({ file, gzipped: segment.gzipped }, index === segments.length - 1);
  }
  return reading.result();
}

class Reading {
  readonly #shown: string;
  readonly #contents: RecordingContents;
  readonly #decoder: OtlpLineDecoder;
  readonly #unreadable = new Map<string, number>();
  readonly #problems: string[] = [];
  readonly #findings: Finding[] = [];
  #start: RunStart | null = null;
  #end: RunEnd | null = null;
  #otherRuns = 0;
  #otlpLines = 0;
  #otherLines = 0;
  #cutBytes = 0;
  /** Why a file was read in part; null where none was. */
  #leftOff: string | null = null;
  /** The last segment that a joined one holds. */
  #through = -1;
  /** Observations that the writer let go of to keep to its size. */
  #droppedBefore = 0;
  #head: Buffer = Buffer.alloc(0);

  constructor(shown: string, limits: ContentsLimits) {
    this.#shown = shown;
    this.#contents = new RecordingContents(limits);
    this.#decoder = otlpLineDecoder({
      observation: (observation) => this.#observe(observation),
      metric: (metric) => this.#contents.describe(metric),
      runStart: (start) => this.#runStart(start),
      runEnd: (end) => (this.#end = end),
      finding: (finding) => this.#findings.push(finding),
      unreadable: (what) => this.#count(what),
    });
  }

  /**
   * Whether a segment is in one before it: a writer killed between joining two and removing the
   * second leaves both.
   */
  holds({ index }: Segment): boolean {
    return index !== null && index <= this.#through;
  }

  async segment(
    { file, gzipped }: { readonly file: FileHandle; readonly gzipped: boolean },
    isLast: boolean,
  ): Promise<void> {
    const { tail, tooLong, error, leftOff } = await readLines(file, gzipped, (line) => {
      this.#line(line);
      return this.#otherLines < (this.#otlpLines > 0 ? OTHER_LINES : LINES_BEFORE_GIVING_UP);
    });
    if (tail.length > 0) this.#tail(tail, isLast);
    if (tooLong > 0) this.#count('lines that are too long', tooLong);
    if (error !== null) this.#problems.push(`a compressed file is damaged: ${printable(error)}`);
    if (leftOff !== null) {
      this.#leftOff = leftOff;
      this.#problems.push(`a file was read in part: ${leftOff}`);
    }
  }

  /** A last line without its newline: whole when another program wrote it, cut when the writer was killed. */
  #tail(tail: Buffer, isLast: boolean): void {
    if (parse(tail) !== undefined) this.#line(tail);
    else if (this.#otlpLines === 0 && !isCutOtlp(tail)) this.#line(tail);
    else {
      this.#cutBytes += tail.length;
      const where = isLast ? 'the last line is cut' : 'the last line of an earlier segment is cut';
      this.#problems.push(`${where}: ${tail.length} bytes ignored, the writer was probably killed`);
    }
  }

  #line(line: Buffer): void {
    if (line.length === 0) return;
    if (this.#head.length === 0) this.#head = Buffer.from(line.subarray(0, HEAD_BYTES));
    if (isOverNested(line)) {
      this.#otherLines++;
      this.#count('lines that are too deep or too wide');
      return;
    }
    if (this.#decoder.line(line)) {
      this.#otlpLines++;
      return;
    }
    const payload = parse(line);
    if (payload === undefined && isBlank(line)) return;
    if (payload === undefined) this.#count('corrupted lines');
    if (looksLikeOtlp(payload)) {
      this.#otlpLines++;
      this.#decoder.payload(payload);
      return;
    }
    this.#otherLines++;
    if (payload !== undefined) this.#count('lines that are not OTLP');
  }

  /** A file that was thinned out says by how much; all of the recording is then read so, or its trends would lean to its end. */
  #observe(observation: Observation): void {
    if (observation.kind === 'event' && observation.name === EVENT.downsampled) {
      const { attributes } = observation;
      const window = Number(attributes?.[ATTR.downsampledWindow]);
      if (window > 0 && window <= LONGEST_WINDOW) this.#contents.downsample(window);
      this.#through = Number(attributes?.[ATTR.downsampledThrough] ?? this.#through);
      this.#droppedBefore += Number(attributes?.[ATTR.downsampledDropped] ?? 0);
    } else this.#contents.add(observation);
  }

  #runStart(start: RunStart): void {
    if (start.schemaVersion > RECORDING_SCHEMA_VERSION) {
      const version = printable(start.toolVersion, 40);
      throw new TraceError(
        'ERR_RECORDING_TOO_NEW',
        `the recording ${this.#shown} has schema version ${start.schemaVersion}, written by tracewright ${version}; this version reads up to ${RECORDING_SCHEMA_VERSION}`,
        { exitCode: EXIT.unsupported, remedy: `Read it with tracewright ${version} or newer.` },
      );
    }
    // Each segment repeats the start of its run.
    if (this.#start === null) this.#start = start;
    else if (start.traceId !== this.#start.traceId) this.#otherRuns++;
  }

  #count(what: string, n = 1): void {
    this.#unreadable.set(what, (this.#unreadable.get(what) ?? 0) + n);
  }

  result(): StoredRecording {
    if (this.#otlpLines === 0) throw this.#noOtlp();
    const start = this.#start ?? this.#synthesised();
    const view = this.#contents.view({ start, end: this.#end, problems: this.#allProblems() });
    return { ...view, findings: this.#findings, ours: this.#start !== null };
  }

  #noOtlp(): TraceError {
    const exitCode = EXIT.notFound;
    if (this.#leftOff !== null)
      return new TraceError(
        'ERR_NOT_A_RECORDING',
        `${this.#shown} holds no telemetry as far as it was read: ${this.#leftOff}`,
        { exitCode, remedy: 'Name a recording folder, or a file of OTLP/JSON Lines.' },
      );
    if (this.#otherLines === 0) {
      const what = this.#cutBytes > 0 ? 'holds no complete line' : 'is empty';
      return new TraceError('ERR_RECORDING_EMPTY', `the recording ${this.#shown} ${what}`, {
        exitCode,
        remedy: 'Its writer was killed before the first second was over; record again.',
      });
    }
    const content = describeContent(this.#head);
    return new TraceError(
      'ERR_NOT_A_RECORDING',
      `${this.#shown} is not a recording: it looks like ${content}`,
      {
        exitCode,
        remedy: 'Name a recording folder, or a file of OTLP/JSON Lines.',
      },
    );
  }

  #synthesised(): RunStart {
    return {
      schemaVersion: RECORDING_SCHEMA_VERSION,
      toolVersion: 'unknown',
      command: 'unknown',
      startedAt: this.#contents.firstAt ?? 0,
      traceId: NO_TRACE_ID,
      targets: [],
      collectors: [],
      settings: {},
    };
  }

  #allProblems(): string[] {
    const problems = [...this.#problems];
    if (this.#start === null) {
      const { metrics, spans, events } = this.#contents.names();
      problems.push(
        `not written by tracewright (no run-start record): ${metrics.length} metrics, ${spans.length} span names, ${events.length} event names`,
      );
    } else if (this.#end === null)
      problems.push('the run has no end: its writer was killed or is still running');
    for (const [what, n] of this.#unreadable) problems.push(`${what} ignored: ${n}`);
    if (this.#otherLines >= OTHER_LINES)
      problems.push(`a file was read in part: it holds ${OTHER_LINES} lines of something else`);
    if (this.#otherRuns > 0) problems.push('more than one run in this recording: they are mixed');
    problems.push(...this.#contents.problems());
    if (this.#droppedBefore > 0)
      problems.push(
        `${this.#droppedBefore} observations were not kept: the recording reached its size`,
      );
    const { dropped } = this.#contents;
    if (dropped > 0)
      problems.push(`${dropped} observations were not read: the recording is too large`);
    return problems;
  }
}

function unreadable(path: string, cause: unknown): TraceError {
  const why = `${printable(path)} cannot be read: ${errorCode(cause)}`;
  return new TraceError('ERR_RECORDING_NOT_FOUND', why, {
    exitCode: EXIT.notFound,
    remedy: 'A recording holds regular files only; name another one.',
    cause,
  });
}

/** The parsed line, or undefined when it is not JSON. */
function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

function isBlank(line: Buffer): boolean {
  return line.toString('utf8').trim() === '';
}

function isCutOtlp(tail: Buffer): boolean {
  const text = tail.subarray(0, 32).toString('utf8').trimStart();
  return ['{"resourceLogs"', '{"resourceMetrics"', '{"resourceSpans"'].some(
    (opening) => text.startsWith(opening) || opening.startsWith(text),
  );
}
