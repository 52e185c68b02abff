import { type Drift, driftOf } from '../core/drift.ts';
import { clientLimits } from '../core/load-client.ts';
import { saturationOf } from '../core/load-saturation.ts';
import type { LoadResult } from '../core/load-types.ts';
import { GENAI, requestSpanName } from '../core/semconv-genai.ts';
import { LOAD_ATTR } from '../core/semconv-load.ts';
import { printable } from '../core/text.ts';
import type {
  Detector,
  Evidence,
  Ratio,
  RecordingView,
  Seconds,
  Span,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatProbability, formatSeconds } from '../core/units.ts';
import { numberAttribute, textAttribute } from './attributes.ts';
import { recordedLoad } from './load-result.ts';

/**
 * TRC116 latency-drift: the same requests, under the same load, take longer and longer. Assumes that requests of one stage, class and turn ask
 * for much the same; where their lengths grow as well, it says so and is a note. Under more load than the server handles, waiting grows too:
 * that is TRC302's, and left to it.
 */

const CODE = 'TRC116';
/** Longer by a quarter over the run is worth a word; by half, nobody calls it noise, and it is a warning. */
const NOTABLE: Ratio = 1.25;
const GRAVE: Ratio = 1.5;
/** And by this much, or it is the resolution of timers. */
const LEAST_RISE: Seconds = 0.001;
/** Just-in-time compilers and caches warm up within half a minute of load; they make it faster, and what follows then looks slower. */
const LEAST_TIME: Seconds = 30;

/** What is measured of a request, each by itself: a slow start and slow tokens have different causes. */
const MEASURES = {
  ttft: 'the time to the first output',
  tpot: 'the time of a further token',
  e2e: 'the time of a request',
} as const;
type Measure = keyof typeof MEASURES;

/** Requests that ask for the same. */
interface Alike {
  readonly stage: number;
  readonly name: string;
  readonly spans: Span[];
}

export const latencyDrift: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const result = recordedLoad(view);
    if (result === null) return;
    const limits = clientLimits(result);
    // A generator that falls behind itself measures its own delay.
    if (limits.limited) return;
    const behind = saturationOf(result, limits).stages.map((stage) => stage.behind !== null);
    for (const alike of alikeRequests(view, result)) {
      // Of a replay nobody knows that the load was the same.
      if ((result.stages[alike.stage]?.asked ?? null) === null || behind[alike.stage] === true)
        continue;
      const found = (Object.keys(MEASURES) as Measure[]).flatMap((measure) => {
        const drift = driftOfRequests(alike.spans, measure);
        return drift === null ? [] : [{ measure, drift }];
      });
      // A late start makes the whole longer: the first says it best.
      const [first] = found;
      if (first !== undefined) yield finding(result, alike, first);
    }
  },
};

function alikeRequests(view: RecordingView, result: LoadResult): readonly Alike[] {
  const groups = new Map<string, Alike>();
  for (const span of view.spans(requestSpanName(result.api, result.model))) {
    const { attributes, context } = span;
    // Those that are kept because they were slow would bend every trend.
    if (context?.sampled !== true || context.failed || attributes[LOAD_ATTR.warmup] === true)
      continue;
    const stage = numberAttribute(attributes, LOAD_ATTR.stageIndex) ?? -1;
    const name = textAttribute(attributes, LOAD_ATTR.promptClass) ?? '';
    const turn = numberAttribute(attributes, LOAD_ATTR.turnIndex) ?? 0;
    const key = `${stage}\n${name}\n${turn}`;
    const group = groups.get(key) ?? { stage, name, spans: [] };
    groups.set(key, group);
    group.spans.push(span);
  }
  return [...groups.values()];
}

function driftOfRequests(spans: readonly Span[], measure: Measure): Drift | null {
  const points = spans
    .flatMap((span) => {
      const value = measured(span, measure);
      return value === null ? [] : [{ at: span.from, value }];
    })
    .sort((a, b) => a.at - b.at);
  if ((points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0) < LEAST_TIME) return null;
  const drift = driftOf(
    points.map(({ at }) => at),
    points.map(({ value }) => value),
  );
  return drift !== null && isNotable(drift) ? drift : null;
}

function measured(span: Span, measure: Measure): Seconds | null {
  const first = numberAttribute(span.attributes, GENAI.timeToFirstChunk);
  const took = span.to - span.from;
  if (measure === 'ttft') return first;
  if (measure === 'e2e') return first === null ? took : null;
  const outputs = numberAttribute(span.attributes, LOAD_ATTR.outputCount) ?? 0;
  return first === null || outputs < 2 ? null : (took - first) / (outputs - 1);
}

function isNotable({ drifts, first, last }: Drift): boolean {
  return drifts && last >= first * NOTABLE && last - first >= LEAST_RISE;
}

function finding(
  result: LoadResult,
  alike: Alike,
  { measure, drift }: { readonly measure: Measure; readonly drift: Drift },
): UnnumberedFinding {
  const { first, last } = drift;
  const ratio = last / first;
  const longer = growingLengths(alike.spans);
  const label = result.stages[alike.stage]?.label ?? '';
  const whose = alike.name === '' ? '' : ` of class ${printable(alike.name, 60)}`;
  return {
    code: CODE,
    kind: 'latency-drift',
    mechanism: longer === null ? 'uptime' : 'longer-requests',
    severity: longer === null && ratio >= GRAVE ? 'warning' : 'note',
    confidence: longer === null ? 'likely' : 'inconclusive',
    pid: null,
    summary: `${MEASURES[measure]}${whose} grows at the same load (${label}): ${formatSeconds(first)} at first, ${formatSeconds(last)} at last${longer === null ? '' : `; so do ${longer}`}`,
    where: [],
    evidence: [trendEvidence(drift), stretchEvidence(drift)],
    measure: {
      start_s: first,
      end_s: last,
      growth_ratio: ratio,
      growth_per_s: drift.slope,
      duration_s: drift.duration,
      requests_count: alike.spans.length,
    },
    remedy:
      longer === null
        ? 'Look for what each request leaves behind and later ones go through: lists that grow, listeners, sessions, tables without an index. --attach <pid> names the place.'
        : 'Send prompts of one length, or one class for each.',
  };
}

/** Which lengths grow along, null where none does. */
function growingLengths(spans: readonly Span[]): string | null {
  const keys = { [GENAI.inputTokens]: 'the prompts', [GENAI.outputTokens]: 'the answers' };
  const growing = Object.entries(keys).flatMap(([key, name]) => {
    const points = spans
      .flatMap((span) => {
        const value = numberAttribute(span.attributes, key);
        return value === null ? [] : [{ at: span.from, value }];
      })
      .sort((a, b) => a.at - b.at);
    const drift = driftOf(
      points.map(({ at }) => at),
      points.map(({ value }) => value),
    );
    return drift !== null && drift.slopeLow > 0 && drift.last >= drift.first * NOTABLE
      ? [name]
      : [];
  });
  return growing.length === 0 ? null : growing.join(' and ');
}

function trendEvidence(drift: Drift): Evidence {
  const { slope, slopeLow, slopeHigh, duration, windows } = drift;
  const rate = (value: number): string => formatSeconds(value * 60);
  return {
    kind: 'trend',
    summary:
      `${rate(slope)} a minute (95 %: ${rate(slopeLow)} to ${rate(slopeHigh)}) over ${formatSeconds(duration)}, ` +
      `by the medians of ${windows} windows`,
    data: { slope_per_s: slope, low_per_s: slopeLow, high_per_s: slopeHigh, windows },
  };
}

function stretchEvidence({ stretches, p }: Drift): Evidence {
  return {
    kind: 'stretches',
    summary: `by sevenths of the run: ${stretches.map(formatSeconds).join(', ')} (a walk without drift climbs so with p ${formatProbability(p)})`,
    data: { medians_s: stretches, p },
  };
}
