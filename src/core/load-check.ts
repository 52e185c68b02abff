import {
  byLatency,
  type ClockBounds,
  type ErrorExample,
  type LoadErrorClass,
  type LoadPart,
  type LoadResult,
  type Slo,
  type StageResult,
} from './load-types.ts';
import type { HistogramBuckets } from './types.ts';

/**
 * A result out of a file: another machine's, last week's, anybody's. Every property is checked and copied, what is not known is left out,
 * and what is wrong is named with its path.
 */

/** Takes what was read and returns it as what it has to be, or throws a RangeError that names `path`. */
type Check<T> = (value: unknown, path: string) => T;

/** Labels, hosts, URLs and the like. */
const TEXT_LIMIT = 2000;
/** Stages, parts, workers: more than anybody has. */
const LIST_LIMIT = 10_000;
/** Windows of a course; ours has at most 512. */
const COURSE_LIMIT = 4096;
/** Between the smallest and the greatest bucket; 2^-64 to 2^64 s are 32,768 at scale 8. */
const BUCKETS_LIMIT = 65_536;
/** Indices that a double can have at scale 8. */
const BUCKET_BOUND = 300_000;

/** Throws a RangeError whose message says where and what. */
export function checkLoadResult(value: unknown): LoadResult {
  return result(value, 'load');
}

function wrong(path: string, expected: string, value: unknown): RangeError {
  const shown = typeof value === 'object' ? (value === null ? 'null' : 'an object') : typeof value;
  return new RangeError(
    `${path} must be ${expected}, and is ${typeof value === 'number' ? String(value) : shown}`,
  );
}

function fields<T>(checks: { readonly [K in keyof T]: Check<T[K]> }): Check<T> {
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw wrong(path, 'an object', value);
    }
    const from = value as Readonly<Record<string, unknown>>;
    const entries = Object.keys(checks).map((key) => {
      const check = checks[key as keyof T];
      return [key, check(from[key], `${path}.${key}`)] as const;
    });
    return Object.fromEntries(entries) as T;
  };
}

function list<T>(check: Check<T>, limit = LIST_LIMIT): Check<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw wrong(path, 'a list', value);
    if (value.length > limit) throw wrong(path, `a list of at most ${limit}`, value.length);
    return value.map((item: unknown, i) => check(item, `${path}[${i}]`));
  };
}

function byKey<T>(pattern: RegExp, check: Check<T>): Check<Record<string, T>> {
  return (value, path) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw wrong(path, 'an object', value);
    }
    const entries = Object.entries(value).map(([key, item]): [string, T] => {
      if (!pattern.test(key)) throw new RangeError(`${path} has an unknown key`);
      return [key, check(item, `${path}.${key}`)];
    });
    return Object.fromEntries(entries);
  };
}

function nullable<T>(check: Check<T>): Check<T | null> {
  return (value, path) => (value === null ? null : check(value, path));
}

function oneOf<T extends string>(...known: readonly T[]): Check<T> {
  return (value, path) => {
    const found = known.find((one) => one === value);
    if (found === undefined) throw wrong(path, known.join(' or '), value);
    return found;
  };
}

const text: Check<string> = (value, path) => {
  if (typeof value !== 'string' || value.length > TEXT_LIMIT) {
    throw wrong(path, `text of at most ${TEXT_LIMIT} characters`, value);
  }
  return value;
};
const flag: Check<boolean> = (value, path) => {
  if (typeof value !== 'boolean') throw wrong(path, 'true or false', value);
  return value;
};
const number: Check<number> = (value, path) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw wrong(path, 'a number', value);
  return value;
};
const amount: Check<number> = (value, path) => {
  if (number(value, path) < 0) throw wrong(path, 'at least 0', value);
  return value as number;
};
const count: Check<number> = (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw wrong(path, 'a count', value);
  return value as number;
};

const histogramFields = fields<HistogramBuckets>({
  scale: number,
  zeroCount: count,
  offset: number,
  counts: list(count, BUCKETS_LIMIT),
  count,
  sum: number,
  min: number,
  max: number,
});
/** Of one scale only, or they could not be added; and the counts must add up, or quantiles would be off the end. */
const histogram: Check<HistogramBuckets> = (value, path) => {
  const read = histogramFields(value, path);
  if (read.scale !== 8) throw wrong(`${path}.scale`, '8', read.scale);
  if (!Number.isInteger(read.offset) || Math.abs(read.offset) > BUCKET_BOUND) {
    throw wrong(`${path}.offset`, 'the index of a bucket', read.offset);
  }
  const inBuckets = read.counts.reduce((sum, n) => sum + n, read.zeroCount);
  if (inBuckets !== read.count) throw wrong(`${path}.count`, `${inBuckets}`, read.count);
  return read;
};

/** A quarter of a second, doubled some times: only then courses can be brought to one width. */
const courseWidth: Check<number> = (value, path) => {
  const doublings = Math.log2(number(value, path) / 0.25);
  if (!Number.isInteger(doublings) || doublings < 0 || doublings > 40) {
    throw wrong(path, '0.25 times a power of two', value);
  }
  return value as number;
};

const slo = fields<Slo>({
  metric: oneOf('ttft', 'tpot', 'itl', 'e2e', 'ntpot'),
  limit: amount,
});

const example = fields<ErrorExample>({ detail: text, retryAfter: nullable(amount) });

const CLASS = /^[a-z_]{1,20}(?:\.[a-z0-9_]{1,20})?$/;
const STATUS = /^\d{1,3}$/;

const stage = fields<StageResult>({
  label: text,
  asked: nullable(
    fields<NonNullable<StageResult['asked']>>({
      kind: oneOf('concurrency', 'rate'),
      value: amount,
    }),
  ),
  from: number,
  to: number,
  sendingEnded: number,
  window: fields<StageResult['window']>({
    seconds: amount,
    whole: flag,
    ok: count,
    failed: count,
    inputTokens: amount,
    outputTokens: amount,
    events: count,
    met: count,
  }),
  course: fields<StageResult['course']>({
    width: courseWidth,
    scheduled: list(count, COURSE_LIMIT),
    succeeded: list(count, COURSE_LIMIT),
    ttft: list(number, COURSE_LIMIT),
    ended: list(count, COURSE_LIMIT),
  }),
  requests: fields<StageResult['requests']>({
    sent: count,
    ok: count,
    failed: count,
    unfinished: count,
    warmup: count,
    queued: count,
    resent: count,
    errors: byKey(CLASS, count) as Check<Partial<Record<LoadErrorClass, number>>>,
    statuses: byKey(STATUS, count),
    examples: byKey(CLASS, example) as Check<Partial<Record<LoadErrorClass, ErrorExample>>>,
  }),
  tokens: fields<StageResult['tokens']>({
    input: amount,
    output: amount,
    cached: amount,
    reasoning: amount,
    counted: count,
    uncounted: count,
    events: count,
  }),
  bytes: fields<StageResult['bytes']>({ sent: amount, received: amount }),
  latency: fields<StageResult['latency']>(byLatency(() => histogram)),
  goodput: nullable(fields<NonNullable<StageResult['goodput']>>({ met: count })),
  inFlight: fields<StageResult['inFlight']>({ mean: amount, max: amount }),
  health: fields<StageResult['health']>({
    lateness: histogram,
    loopDelay: histogram,
    readLag: histogram,
    coreShare: list(amount),
  }),
});

const part = fields<LoadPart>({
  index: count,
  host: text,
  cores: count,
  wall: number,
  mono: number,
  serverOffset: nullable(fields<ClockBounds>({ low: number, high: number, samples: count })),
  complete: flag,
});

const result = fields<LoadResult>({
  runId: text,
  parts: fields<LoadResult['parts']>({ expected: count, present: list(part) }),
  url: text,
  api: oneOf('chat', 'completions', 'responses', 'embeddings'),
  model: text,
  streaming: flag,
  slos: list(slo),
  workers: count,
  seed: number,
  stages: list(stage),
  total: stage,
  interrupted: flag,
});
