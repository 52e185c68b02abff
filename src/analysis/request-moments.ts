import { throttleReason, type ThrottleReason } from '../core/gpu-reasons.ts';
import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { histogramQuantile } from '../core/exponential-histogram.ts';
import { checkLoadResult } from '../core/load-check.ts';
import type { LoadResult, Slo } from '../core/load-types.ts';
import { rankPlaces } from '../core/place.ts';
import { ATTR, METRIC, SPAN } from '../core/semconv.ts';
import { GPU_ATTR } from '../core/semconv-gpu.ts';
import { GENAI, requestSpanName } from '../core/semconv-genai.ts';
import { LOAD_ATTR, LOAD_SNAPSHOT } from '../core/semconv-load.ts';
import { serverCourses } from '../core/server-course.ts';
import type {
  HistogramBuckets,
  Place,
  Ratio,
  RecordingView,
  Seconds,
  Series,
  Span,
  MechanismOf,
} from '../core/types.ts';
import { numberAttribute, textAttribute, weightedStacks } from './attributes.ts';
import { type ServerCause, serverStretches } from './server-stretches.ts';

/** Requests of a load run side by side with what the watched server did meanwhile: one recording, one clock. */

/** Beyond this quantile of its stage a request is slow, unless an objective says what slow is. */
const SLOW_QUANTILE = 0.95;
/** And by so much over the median: of requests that are all alike, the slowest twentieth is not slow. */
const SLOW_FACTOR = 1.5;
/** A stretch in which the server stood still explains a request when it covers this share of what the request took beyond the median. */
const EXPLAINS: Ratio = 0.5;

/** A stretch in which the server's event loop did not turn, or in which its own numbers or its GPU's say what held requests up. */
export interface ServerMoment {
  /** What was seen to stand still, or to be full. */
  readonly what: 'loop' | ServerCause | 'gpu-throttled';
  readonly from: Seconds;
  readonly to: Seconds;
  readonly pid: number | null;
  /** Nobody's code: the process waited for a core. */
  readonly starved: boolean;
  readonly mechanism: MechanismOf<'slow-requests'> | null;
  readonly place: Place | null;
  /** The same for moments with the same cause. */
  readonly key: string;
}

/** A successful request that there is a span of. */
export interface JudgedRequest {
  readonly spanId: string;
  readonly from: Seconds;
  /** What was slow, or would have been: the time to the first output where there is one, else to the end. */
  readonly until: 'first output' | 'end';
  readonly took: Seconds;
  /** Beyond the median of its stage. */
  readonly excess: Seconds;
  readonly isSlow: boolean;
  /** How long the server stood still meanwhile, in all. */
  readonly overlap: Seconds;
  /** What held the server up longest meanwhile, if that was long enough to explain the excess. */
  readonly during: ServerMoment | null;
}

/** Blocks of the server's loops, in their order. */
export function serverMoments(view: RecordingView): readonly ServerMoment[] {
  return view.spans(SPAN.blocked).map((span) => {
    const [ranked] = rankPlaces(weightedStacks(view, span.attributes));
    const starved = span.attributes[ATTR.starved] === true;
    const mechanism = mechanismOf('slow-requests', textAttribute(span.attributes, ATTR.mechanism));
    const place =
      ranked === undefined || starved
        ? null
        : {
            ...ranked.frame,
            module: ranked.origin.module,
            thread: textAttribute(span.attributes, ATTR.threadName),
            share: ranked.share,
          };
    const cause = starved ? 'starved' : place === null ? '' : `${place.function}\n${place.file}`;
    const pid = numberAttribute(span.attributes, ATTR.pid);
    const { from, to } = span;
    const key = `${String(pid)}\n${cause}`;
    return { what: 'loop', from, to, pid, starved, mechanism, place, key };
  });
}

/**
 * What the server's own page and its GPU say of a run, in their order: coarser than blocks of a loop, which is why they are looked at apart. Null
 * for a run in which neither was read.
 */
export function pageMoments(view: RecordingView): readonly ServerMoment[] | null {
  const courses = serverCourses(view);
  const throttled = view.series(METRIC.gpuThrottled.name);
  if (courses.length === 0 && throttled.length === 0) return null;
  const moment = (
    { what, mechanism }: PageCause,
    { from, to }: { readonly from: Seconds; readonly to: Seconds },
  ): ServerMoment => ({
    what,
    from,
    to,
    pid: null,
    starved: false,
    mechanism,
    place: null,
    key: mechanism,
  });
  return [
    ...courses.flatMap(serverStretches).map((one) => {
      const { cause } = one;
      return moment({ what: cause, mechanism: cause }, one);
    }),
    ...throttled.flatMap((series) => {
      const reason = throttleReason(textAttribute(series.attributes, GPU_ATTR.reason));
      // An idle GPU and clocks that somebody has set cost no work.
      if (reason === null) return [];
      const cause: PageCause = { what: 'gpu-throttled', mechanism: reason };
      return stretchesAbove(series).map((one) => moment(cause, one));
    }),
  ].sort((a, b) => a.from - b.from);
}

/** What a page, or a GPU, says of itself. */
type PageCause =
  | { readonly what: ServerCause; readonly mechanism: ServerCause }
  | { readonly what: 'gpu-throttled'; readonly mechanism: ThrottleReason };

/** From each reading above 0 to the next one. */
function stretchesAbove({
  at,
  value,
}: Series): readonly { readonly from: Seconds; readonly to: Seconds }[] {
  return Array.from(at).flatMap((from, i) => {
    const to = at[i + 1];
    return to !== undefined && (value[i] ?? 0) > 0 ? [{ from, to }] : [];
  });
}

/** Every measured success of which there is a span, judged; empty for a recording of anything but a load run. */
export function judgeRequests(
  view: RecordingView,
  moments: readonly ServerMoment[],
): readonly JudgedRequest[] {
  const result = resultIn(view);
  if (result === null) return [];
  const limits = result.stages.map((stage) => ({
    ttft: limitOf(stage.latency.ttft, result.slos, 'ttft'),
    e2e: limitOf(stage.latency.e2e, result.slos, 'e2e'),
  }));
  const search = new MomentSearch(moments);
  return view.spans(requestSpanName(result.api, result.model)).flatMap((span) => {
    const limit = limits[numberAttribute(span.attributes, LOAD_ATTR.stageIndex) ?? -1];
    const counts = span.context?.failed === false && span.attributes[LOAD_ATTR.warmup] !== true;
    return limit === undefined || !counts ? [] : [judge(span, limit, search)];
  });
}

function resultIn(view: RecordingView): LoadResult | null {
  const snapshot = view.snapshots(LOAD_SNAPSHOT.result).at(-1);
  if (snapshot === undefined) return null;
  try {
    return checkLoadResult(snapshot.body);
  } catch {
    return null;
  }
}

interface Limit {
  readonly median: Seconds;
  readonly slow: Seconds;
}

function limitOf(latency: HistogramBuckets, slos: readonly Slo[], metric: Slo['metric']): Limit {
  const median = histogramQuantile(latency, 0.5);
  const objective = slos.find((slo) => slo.metric === metric)?.limit;
  const usual = Math.max(histogramQuantile(latency, SLOW_QUANTILE), SLOW_FACTOR * median);
  return { median, slow: objective ?? usual };
}

function judge(
  span: Span,
  limits: Readonly<Record<'ttft' | 'e2e', Limit>>,
  search: MomentSearch,
): JudgedRequest {
  const ttft = numberAttribute(span.attributes, GENAI.timeToFirstChunk);
  const e2e = span.to - span.from;
  const isSlowStart = ttft !== null && ttft > limits.ttft.slow;
  const isSlow = isSlowStart || e2e > limits.e2e.slow;
  // What was slow is looked at; of one that was not, the same as of most that were.
  const byStart = ttft !== null && (isSlowStart || !isSlow);
  const took = byStart ? ttft : e2e;
  const excess = took - (byStart ? limits.ttft.median : limits.e2e.median);
  const { overlap, longest } = search.between(span.from, span.from + took);
  // Of one that was not slow: whether the server stood still as long as would have made it slow.
  const least = byStart
    ? limits.ttft.slow - limits.ttft.median
    : limits.e2e.slow - limits.e2e.median;
  // A queue that stands all the time lies in short requests as well, however little of it they see.
  const isState = !isSlow && longest !== null && longest.moment.what !== 'loop';
  const enough = EXPLAINS * (isState ? took : Math.max(excess, least));
  const explains = longest !== null && longest.overlap >= enough;
  return {
    spanId: span.context?.spanId ?? '',
    from: span.from,
    until: byStart ? 'first output' : 'end',
    took,
    excess,
    isSlow,
    overlap,
    during: explains ? longest.moment : null,
  };
}

/** Finds moments by time: thousands of requests against thousands of blocks. */
class MomentSearch {
  readonly #moments: readonly ServerMoment[];
  readonly #longest: Seconds;

  /** `moments` sorted by their beginning. */
  constructor(moments: readonly ServerMoment[]) {
    this.#moments = moments;
    this.#longest = moments.reduce((most, { from, to }) => Math.max(most, to - from), 0);
  }

  /** How much of the stretch was covered by moments, and the cause that covered most of it. */
  between(
    from: Seconds,
    to: Seconds,
  ): {
    readonly overlap: Seconds;
    readonly longest: { readonly moment: ServerMoment; readonly overlap: Seconds } | null;
  } {
    const causes = new Map<string, { moment: ServerMoment; overlap: Seconds }>();
    let overlap = 0;
    for (let i = this.#firstFrom(from - this.#longest); i < this.#moments.length; i++) {
      const moment = this.#moments[i];
      if (moment === undefined || moment.from >= to) break;
      const shared = Math.min(moment.to, to) - Math.max(moment.from, from);
      if (shared <= 0) continue;
      overlap += shared;
      const cause = causes.get(moment.key) ?? { moment, overlap: 0 };
      cause.overlap += shared;
      causes.set(moment.key, cause);
    }
    const longest = [...causes.values()].sort((a, b) => b.overlap - a.overlap)[0] ?? null;
    return { overlap, longest };
  }

  /** Index of the first moment that begins at or after a time. */
  #firstFrom(at: Seconds): number {
    let [low, high] = [0, this.#moments.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#moments[middle]?.from ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
