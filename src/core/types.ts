import type { FindingKind, MechanismOf } from './catalogue/catalogue.ts';
import type { LoadErrorClass } from './load-types.ts';

export type { FindingKind, MechanismOf } from './catalogue/catalogue.ts';

/**
 * The vocabulary every other module speaks: what is watched, what is seen, what is said about it.
 * Base units throughout (seconds, bytes, ratios 0 to 1); people's units exist only in
 * `src/core/units.ts`.
 */

/** A duration or a point in time, in seconds. Points in time are Unix time unless a name says `mono`. */
export type Seconds = number;
/** A size in bytes. */
export type Bytes = number;
/** A share, 0 to 1. */
export type Ratio = number;

export type AttributeValue = string | number | boolean | readonly string[];
/** OpenTelemetry attributes: keys are semantic-convention names, values are scalars or lists of strings. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** A process, identified so that a reused pid is never mistaken for it. */
export interface ProcessTarget {
  readonly kind: 'process';
  readonly pid: number;
  /** Field 22 of `/proc/<pid>/stat`, clock ticks since boot: with the pid it names one process for ever. */
  readonly startTicks: number;
}
/** A server that answers HTTP. */
export interface EndpointTarget {
  readonly kind: 'endpoint';
  readonly url: string;
}
export type Target = ProcessTarget | EndpointTarget;

/** What a number means: its OpenTelemetry name, UCUM unit and instrument. */
export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly instrument: 'gauge' | 'counter' | 'updowncounter' | 'histogram';
  readonly description: string;
}

/** One reading of one metric. */
export interface Sample {
  readonly kind: 'sample';
  readonly at: Seconds;
  readonly metric: string;
  readonly value: number;
  readonly attributes?: Attributes;
}

/** The buckets of a base-2 exponential histogram (OTLP's own form), mergeable without error. */
export interface HistogramBuckets {
  /** Bucket i covers (base^(offset+i), base^(offset+i+1)], base = 2^(2^-scale). */
  readonly scale: number;
  readonly zeroCount: number;
  readonly offset: number;
  readonly counts: readonly number[];
  readonly count: number;
  readonly sum: number;
  readonly min: number;
  readonly max: number;
}

/** A distribution gathered between two times. */
export interface Histogram {
  readonly kind: 'histogram';
  readonly from: Seconds;
  readonly to: Seconds;
  readonly metric: string;
  readonly buckets: HistogramBuckets;
  readonly attributes?: Attributes;
}

/** Something that lasted. */
export interface Span {
  readonly kind: 'span';
  readonly name: string;
  readonly from: Seconds;
  readonly to: Seconds;
  readonly attributes: Attributes;
  /** Of a span that others know by its id: a request that carried it in its `traceparent`. Others get an id when they are stored. */
  readonly context?: SpanContext;
}

/** What a span is to the rest of its trace. Its parent is the run's root span. */
export interface SpanContext {
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  readonly role: 'client' | 'server' | 'producer' | 'consumer';
  /** Whether what it stands for failed; why is in `error.type`. */
  readonly failed: boolean;
  /** The flag that was sent with it: one that is not sampled is recorded and never exported. */
  readonly sampled: boolean;
}

/** One frame of a stack, as the runtime names it. `file` and `function` come from the target: untrusted. */
export interface Frame {
  readonly function: string;
  readonly file: string;
  /** 1-based; null where the runtime has none for this instruction. */
  readonly line: number | null;
}

/** A stack, innermost frame first, named by an id that spans and profiles refer to. */
export interface StackSample {
  readonly kind: 'stack';
  readonly at: Seconds;
  readonly id: string;
  readonly frames: readonly Frame[];
}

/** The whole of something at one moment (tasks, heap, locks). */
export interface Snapshot {
  readonly kind: 'snapshot';
  readonly at: Seconds;
  readonly of: string;
  readonly body: unknown;
}

/** Something that happened at a moment: the target exited, a clock anchor, a collector's note. */
export interface Event {
  readonly kind: 'event';
  readonly at: Seconds;
  readonly name: string;
  readonly severity: 'info' | 'warn' | 'error';
  readonly body: string;
  readonly attributes?: Attributes;
}

/** A stretch of time that could not be observed, and why. Trouble while observing is data. */
export interface Gap {
  readonly kind: 'gap';
  readonly from: Seconds;
  readonly to: Seconds;
  readonly collector: string;
  readonly reason: 'late' | 'failed' | 'dropped' | 'suspended' | 'target-gone';
  readonly detail: string;
  /** The process that could not be observed, in a run that watches several; the first target's where there is none. */
  readonly pid?: number;
}

export type Observation = Sample | Histogram | Span | StackSample | Snapshot | Event | Gap;

/** Whether a collector can see what it is for, and if not: why, and what would make it visible. */
export type Availability =
  | { readonly available: true; readonly detail?: string }
  | { readonly available: false; readonly reason: string; readonly remedy: string | null };

/** What a collector is given while it observes. */
export interface ObserveContext {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** When the run began; what is not seen from then on is a gap. Absent: from the first look on. */
  readonly since?: Seconds;
}

/** Wall and monotonic time, injectable so that tests need no sleeping. */
export interface Clock {
  /** Unix time, never stepping backwards within a run: the monotonic clock on an anchor taken at the start. */
  now(): Seconds;
  /** CLOCK_MONOTONIC, the time base the kernel, libuv and CPython stamp with. */
  mono(): Seconds;
}

/** Looks at one thing and yields what it sees. `probe` changes nothing; `observe` never throws: it yields gaps. */
export interface Collector<T extends Target = Target> {
  readonly name: string;
  readonly metrics: readonly Metric[];
  probe(target: T): Promise<Availability>;
  observe(target: T, context: ObserveContext): AsyncIterable<Observation>;
}

/** Where observations go. `write` never blocks and never throws; what could not be kept is counted. */
export interface Sink {
  readonly name: string;
  write(observation: Observation): void;
  close(): Promise<{ readonly dropped: number }>;
}

export type Severity = 'critical' | 'warning' | 'note';
export type Confidence = 'confirmed' | 'likely' | 'inconclusive';

/** A place in a program. All text comes from the target: untrusted. */
export interface Place {
  readonly function: string;
  readonly file: string;
  readonly line: number | null;
  /** The package (distribution folder under site-packages or node_modules), null for the application's own code. */
  readonly module: string | null;
  readonly thread: string | null;
  /** Share of the finding's time that this place accounts for. */
  readonly share: Ratio;
}

/** Something that can be checked: what was seen, in words, with its numbers. */
export interface Evidence {
  readonly kind: string;
  readonly summary: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** What every finding has, whatever its kind. */
interface FindingBase {
  /** `F1`, `F2`, … by rank within one report. */
  readonly id: string;
  /** `TRC101`, … */
  readonly code: string;
  readonly severity: Severity;
  readonly confidence: Confidence;
  readonly pid: number | null;
  /** All processes it was found in, where these are several; `pid`, the one its numbers are of, is among them. */
  readonly pids?: readonly number[];
  /** For people, and made of what else is here: nothing is ever read out of it. */
  readonly summary: string;
  readonly where: readonly Place[];
  readonly evidence: readonly [Evidence, ...Evidence[]];
  /** Numbers, each key suffixed with its unit (`worst_s`, `count`, `share_ratio`). */
  readonly measure: Readonly<Record<string, number>>;
  readonly remedy: string | null;
  /** The finding that it came of, and how; absent where it stands by itself. */
  readonly because?: { readonly finding: string; readonly why: string };
}

/**
 * What explanations need of a finding beyond its mechanism and its numbers. Not in a recording:
 * findings are made anew when one is read.
 */
interface FactsByKind {
  readonly 'request-errors': {
    /** How many failed in each way. */
    readonly classes: Readonly<Partial<Record<LoadErrorClass, number>>>;
    /** Exact HTTP statuses of those that had one. */
    readonly statuses: readonly number[];
  };
  readonly 'growth-inconclusive': {
    /** Objects of the runtime were looked at, and do not grow with memory. */
    readonly areObjectsLevel: boolean;
  };
}

type Findings = {
  readonly [Kind in FindingKind]: FindingBase & {
    readonly kind: Kind;
    readonly mechanism: MechanismOf<Kind> | null;
  } & (Kind extends keyof FactsByKind ? { readonly facts?: FactsByKind[Kind] } : unknown);
};
type Unnumbered<One> = One extends FindingBase ? Omit<One, 'id'> : never;

/** What a detector says, with what it rests on. */
export type Finding = Findings[FindingKind];
/** A finding that has no place among the others yet. */
export type UnnumberedFinding = Unnumbered<Finding>;
/** One of that kind. */
export type FindingOf<Kind extends FindingKind> = Extract<Finding, { readonly kind: Kind }>;
export type UnnumberedOf<Kind extends FindingKind> = Extract<
  UnnumberedFinding,
  { readonly kind: Kind }
>;

/** A time series: `at[i]` (sorted) is when `value[i]` was read. */
export interface Series {
  readonly metric: string;
  readonly unit: string;
  readonly attributes: Attributes;
  readonly at: Float64Array;
  readonly value: Float64Array;
  /** Of a run too long to keep each reading: the lowest and highest of stretches of which `value` has the last only. */
  readonly extremes?: { readonly at: Float64Array; readonly value: Float64Array };
}

/** One process of a run, as found when it was attached to. */
export interface TargetInfo {
  readonly pid: number;
  readonly parent: number | null;
  readonly startTicks: number;
  /** `python`, `node`, `native` or `unknown`. */
  readonly runtime: string;
  readonly runtimeVersion: string | null;
  readonly title: string;
  readonly role: string | null;
  /** Its pid inside its own pid namespace (a container), where that is another number. */
  readonly namespacePid?: number;
  /** The container it runs in, a short id, or `pid namespace`; absent when it shares ours. */
  readonly container?: string;
}

/** A collector as probed at the start of a run. */
export interface CollectorInfo {
  readonly name: string;
  readonly available: boolean;
  readonly reason: string | null;
  readonly remedy: string | null;
  /** The process it would look at, in a run that watches several; the first target's where there is none. */
  readonly pid?: number;
}

/** What a run knows before it starts: the first line of a recording. */
export interface RunStart {
  readonly schemaVersion: number;
  readonly toolVersion: string;
  readonly command: string;
  readonly startedAt: Seconds;
  readonly traceId: string;
  readonly targets: readonly TargetInfo[];
  readonly collectors: readonly CollectorInfo[];
  /** Settings a detector needs to read the recording as it was meant, e.g. `lag_threshold_s`. */
  readonly settings: Readonly<Record<string, number | string | boolean>>;
}

/** What only the end of a run knows. Absent from a recording whose writer was killed. */
export interface RunEnd {
  readonly endedAt: Seconds;
  readonly interrupted: boolean;
  /** Why observation ended: `duration`, `interrupted`, `target-gone`. */
  readonly reason: string;
  /** CPU time of trace itself over the run's wall time, one core = 1; start-up is not in it. */
  readonly ownCpuRatio: Ratio;
  readonly startupCpu: Seconds;
  /** How long we may have held the target, at most. Reading never does; V8's profiler does when it starts. */
  readonly targetPaused: Seconds;
  readonly samples: number;
  readonly late: number;
  readonly dropped: number;
  /** What it came to, in numbers that stand on the root span: a back end of traces alone sees nothing else of them. */
  readonly summary?: Readonly<Record<string, number | string | boolean>>;
}

/** What detectors and reports read: a recording, or the same observations still in memory. */
export interface RecordingView {
  readonly start: RunStart;
  /** Null when the writer died; `endedAt` is then the last thing seen. */
  readonly end: RunEnd | null;
  readonly endedAt: Seconds;
  readonly gaps: readonly Gap[];
  /** What the reader could not use, in words, for the report: truncated tail, foreign lines. */
  readonly problems: readonly string[];
  /** All series of a metric whose attributes include the given ones. */
  series(metric: string, attributes?: Attributes): readonly Series[];
  metricNames(): readonly string[];
  histograms(metric: string, attributes?: Attributes): readonly Histogram[];
  spans(name: string): readonly Span[];
  stack(id: string): readonly Frame[] | undefined;
  snapshots(of: string): readonly Snapshot[];
  events(name: string): readonly Event[];
}

/** Recording in, findings out; pure. */
export interface Detector {
  readonly code: string;
  /** `run`: it looks at a run as a whole; otherwise at one process at a time. */
  readonly of?: 'run';
  detect(recording: RecordingView): Iterable<UnnumberedFinding>;
}
