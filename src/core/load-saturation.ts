import { histogramQuantile } from './exponential-histogram.ts';
import type { ClientLimits } from './load-client.ts';
import { ratesOf, sentRate } from './load-rates.ts';
import type { LoadResult, StageCourse, StageResult } from './load-types.ts';
import { trendOf, type Trend } from './trend.ts';
import type { Ratio, Seconds } from './types.ts';

/** Whether a server kept up with what it was asked, within a stage, and from which level on more load brings no more answers. */

/**
 * Behind by at least this much. A server that does μ of λ requests a second answers the one of time t at t · λ/μ: the time to the first token
 * grows by λ/μ − 1 seconds a second. So a slope of 0.01 is 1 % too much load, and less than that is no basis for a word.
 */
const LEAST_SLOPE: Ratio = 0.01;
/** Windows that the slope is tested on: 30 is what the test needs, and more requests in each make the noise smaller. */
const WINDOWS = 30;
/**
 * A backlog that grew in the second half by more than chance: of arrivals that do not depend on each other the difference of two numbers in
 * flight has at most their sum as variance, so three standard deviations are exceeded by chance in 1 of 700.
 */
const BACKLOG_DEVIATIONS = 3;
/** And by at least this share of what came in then. */
const BACKLOG_SHARE: Ratio = 0.05;
/**
 * A full server works off what is under way when sending ends at its own rate, which is below the
 * rate asked; or at up to twice that, where it serves all at once and each has had a part of its
 * time. One that is faster stood still for a moment and can do more than was asked.
 */
const CAUGHT_UP: Ratio = 2;
/** A level is as good as the best when it has this much of its rate. */
const AS_GOOD: Ratio = 0.95;

export interface StageSaturation {
  readonly label: string;
  /** A second: sent while requests were sent; succeeded, as rates are. */
  readonly sent: number | null;
  readonly succeeded: number | null;
  /** Of the time from the schedule to the first output, over the time of the schedule. */
  readonly trend: Trend;
  /** Null when it kept up, or when that cannot be asked: in a closed loop nobody gets behind. */
  readonly behind: 'latency-grows' | 'backlog-grows' | null;
  /** Requests a second that ended in the second half of the sending: what it can do, when it is behind. */
  readonly handled: number | null;
}

export interface Knee {
  readonly label: string;
  readonly asked: number;
  /** Successes a second that met the objectives, or all successes where there were none. */
  readonly rate: number;
  readonly of: 'goodput' | 'throughput';
}

export interface Saturation {
  readonly stages: readonly StageSaturation[];
  /** The lowest level that is as good as the best, when a higher one was tried; null without a sweep, and where there was none. */
  readonly knee: Knee | null;
  /** Of a sweep without a knee: no level was handled (or met an objective), or the highest one was the best. */
  readonly sweep: 'none' | 'knee' | 'all-behind' | 'not-reached' | 'client-limited';
}

export function saturationOf(result: LoadResult, limits: ClientLimits): Saturation {
  const stages = result.stages.map(stageSaturation);
  return { stages, ...kneeOf(result, stages, limits) };
}

function stageSaturation(stage: StageResult): StageSaturation {
  const trend = courseTrend(stage.course);
  const isClosed = stage.asked?.kind === 'concurrency';
  const half = secondHalf(stage);
  const grows = trend.verdict === 'grows' && trend.slope >= LEAST_SLOPE;
  const behind = isClosed
    ? null
    : grows
      ? 'latency-grows'
      : half !== null && isBacklog(half, stage)
        ? 'backlog-grows'
        : null;
  return {
    label: stage.label,
    sent: sentRate(stage),
    succeeded: ratesOf(stage)?.requests ?? null,
    trend,
    behind,
    handled: behind === null || half === null ? null : half.ended / half.seconds,
  };
}

/** The trend of the mean time to the first output, window by window of the schedule. */
function courseTrend({ width, succeeded, ttft }: StageCourse): Trend {
  const each = Math.max(1, Math.floor(succeeded.length / WINDOWS));
  const at: number[] = [];
  const value: number[] = [];
  for (let first = 0; first < succeeded.length; first += each) {
    const n = sum(succeeded.slice(first, first + each));
    if (n === 0) continue;
    at.push((first + each / 2) * width);
    value.push(sum(ttft.slice(first, first + each)) / n);
  }
  return trendOf(at, value);
}

interface SecondHalf {
  readonly seconds: Seconds;
  readonly scheduled: number;
  readonly ended: number;
  /** Requests under way at its beginning and at its end. */
  readonly before: number;
  readonly after: number;
}

/** Null of a stage that is too short to have one. */
function secondHalf(stage: StageResult): SecondHalf | null {
  const { width, scheduled, ended } = stage.course;
  const windows = Math.floor((stage.sendingEnded - stage.from) / width);
  const middle = Math.floor(windows / 2);
  if (middle < 1) return null;
  const count = (series: readonly number[], from: number, to: number): number =>
    sum(series.slice(from, to));
  const before = count(scheduled, 0, middle) - count(ended, 0, middle);
  const half = {
    seconds: (windows - middle) * width,
    scheduled: count(scheduled, middle, windows),
    ended: count(ended, middle, windows),
  };
  return { ...half, before, after: before + half.scheduled - half.ended };
}

/** Where requests take longer than the first half, their number still fills up in the second: that is no backlog. */
function isBacklog({ seconds, scheduled, before, after }: SecondHalf, stage: StageResult): boolean {
  const grown = after - before;
  return (
    histogramQuantile(stage.latency.e2e, 0.9) < seconds &&
    grown > BACKLOG_DEVIATIONS * Math.sqrt(Math.max(1, after + before)) &&
    grown > BACKLOG_SHARE * scheduled &&
    !caughtUp(stage, scheduled / seconds)
  );
}

/** Whether what was under way ended faster, once the first of it did, than a full server can. */
function caughtUp(stage: StageResult, sent: number): boolean {
  const { width, ended } = stage.course;
  const drain = ended.slice(Math.floor((stage.sendingEnded - stage.from) / width));
  const first = drain.findIndex((count) => count > 0);
  if (first < 0) return false;
  // Requests that fail end fast; when each did is not known.
  const answered = sum(drain) - stage.requests.failed;
  return answered / ((drain.length - first) * width) > CAUGHT_UP * sent;
}

function kneeOf(
  result: LoadResult,
  saturations: readonly StageSaturation[],
  limits: ClientLimits,
): Pick<Saturation, 'knee' | 'sweep'> {
  const levels = result.stages
    .flatMap((stage, i) => {
      const rates = ratesOf(stage);
      if (stage.asked === null || rates === null) return [];
      const rate = rates.goodput ?? rates.requests;
      const isBehind = saturations[i]?.behind !== null;
      return [
        { label: stage.label, kind: stage.asked.kind, asked: stage.asked.value, rate, isBehind },
      ];
    })
    .sort((a, b) => a.asked - b.asked);
  const [lowest] = levels;
  const isSweep = levels.length > 1 && levels.every((level) => level.kind === lowest?.kind);
  if (!isSweep || levels.at(-1)?.asked === lowest?.asked) return { knee: null, sweep: 'none' };
  // From the level on at which the client was the limit, rates are the client's.
  const limited = new Set(limits.reasons.map((reason) => reason.stage));
  const firstLimited = levels.findIndex((level) => limited.has(level.label));
  const own = firstLimited < 0 ? levels : levels.slice(0, firstLimited);
  const kept = own.filter((level) => !level.isBehind);
  const best = Math.max(0, ...kept.map((level) => level.rate));
  const knee = best > 0 ? kept.find((level) => level.rate >= best * AS_GOOD) : undefined;
  if (knee === undefined) {
    return { knee: null, sweep: own.length === 0 ? 'client-limited' : 'all-behind' };
  }
  if (knee === own.at(-1)) {
    return { knee: null, sweep: firstLimited < 0 ? 'not-reached' : 'client-limited' };
  }
  const of = result.slos.length === 0 ? 'throughput' : 'goodput';
  return {
    knee: { label: knee.label, asked: knee.asked, rate: knee.rate, of },
    sweep: 'knee',
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
