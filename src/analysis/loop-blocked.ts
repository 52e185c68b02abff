import { blockedTurns } from '../core/blocked-turns.ts';
import { type RankedPlace, rankPlaces, type WeightedStack } from '../core/place.ts';
import { ATTR, EVENT } from '../core/semconv.ts';
import { percentText } from '../core/text.ts';
import type {
  Detector,
  Evidence,
  Place,
  Ratio,
  RecordingView,
  Seconds,
  Severity,
  UnnumberedFinding,
  MechanismOf,
} from '../core/types.ts';
import { remedyFor } from './block-remedies.ts';
import {
  type Block,
  COLLECTOR,
  countOf,
  groupBy,
  groupByPlace,
  middle,
  numberOf,
  ownTime,
  pidOf,
  readBlock,
  spansOf,
  sum,
  textOf,
  weightedMedian,
} from './blocks.ts';
import { type Holder, threadText } from './gil-holder.ts';
import { type Cost, growingCost } from './growing-cost.ts';
import { IMPORT, IMPORT_WITHIN } from './import-blocks.ts';
import { starvationOf } from './throttling.ts';

/**
 * TRC101 loop-blocked: the event loop did not turn for at least the threshold, because one callback or one iteration lasted. Blocks
 * are grouped by place. Assumes that the sampler reported only turns *seen to last*; a saturated but healthy loop gives none.
 */

/** One block this long, and people notice: Nielsen's limit for an uninterrupted flow of thought (1993). */
const CRITICAL_BLOCK: Seconds = 1;
/** A loop that stands still for a fifth of the time cannot meet any latency target at moderate load. */
const CRITICAL_SHARE: Ratio = 0.2;
/** From this share of the blocked time on, the wait for a core is worth a word on who withheld it. */
const NOTABLE_WAIT: Ratio = 0.25;
/** Blocks listed one by one in the evidence; the rest are counted. */
const LISTED = 5;
const CODE = 'TRC101';

export const loopBlocked: Detector = {
  code: CODE,
  *detect(view) {
    const blocks = blockedTurns(view).map((span) => readBlock(view, span));
    const own = blocks.filter((block) => !block.starved);
    const readyAt = view.events(EVENT.ready)[0]?.at ?? Number.NEGATIVE_INFINITY;
    const findingsOf = (some: readonly Block[]) =>
      groupByPlace(some)
        .map((group) => blockedFinding(view, group))
        .sort((a, b) => (b.measure['total_s'] ?? 0) - (a.measure['total_s'] ?? 0));
    yield* findingsOf(own.filter(({ span }) => span.from >= readyAt));
    const starved = blocks.filter((block) => block.starved);
    for (const group of groupBy(starved, (block) => String(pidOf(block)))) {
      yield starvedFinding(view, group);
    }
    yield* findingsOf(own.filter(({ span }) => span.from < readyAt)).map(beforeReady);
  },
};

/** Nobody waits for a server that has not said yet that it is ready: loading a model may block its loop. */
function beforeReady(finding: UnnumberedFinding): UnnumberedFinding {
  return {
    ...finding,
    severity: 'note',
    summary: `${finding.summary}, during its start-up`,
    remedy: null,
  };
}

function blockedFinding(
  view: RecordingView,
  group: readonly [Block, ...Block[]],
): UnnumberedFinding {
  const worst = group.reduce((a, b) => (middle(b) > middle(a) ? b : a));
  const total = sum(group.map((block) => block.total));
  const share = Math.min(1, total / runLength(view));
  // How grave it is goes by what the program did itself: on a crowded machine the wait for a core is not its fault.
  const own = sum(group.map((block) => Math.max(0, block.total - block.runQueueWait)));
  const isCritical =
    group.some((block) => ownTime(block) >= CRITICAL_BLOCK) ||
    own / runLength(view) >= CRITICAL_SHARE;
  const waited = sum(group.map((block) => numberOf(block.span, ATTR.runQueueWait) ?? 0));
  const growing = growingCost(costsOf(group));
  const seen = commonest(group.map((block) => block.mechanism));
  const ranked = rankPlaces(group.flatMap((block) => block.stacks));
  // Who imports is to blame, and not what is imported.
  const blamed = seen === IMPORT ? ranked.toSorted((a, b) => isBody(a) - isBody(b)) : ranked;
  const where = blamed.map((place) => toPlace(place, worst));
  const spans = spansOf(group);
  const isOnce =
    seen === IMPORT &&
    Math.max(...spans.map(({ to }) => to)) - Math.min(...spans.map(({ from }) => from)) <=
      IMPORT_WITHIN;
  const severity: Severity = isCritical ? 'critical' : isOnce ? 'note' : 'warning';
  const mechanism = growing === null ? seen : 'quadratic work';
  const place = where[0];
  return {
    code: CODE,
    kind: 'loop-blocked',
    mechanism,
    severity,
    // Without a stack the block itself is as certain, but what to blame is not known.
    confidence: place === undefined ? 'likely' : 'confirmed',
    pid: pidOf(worst),
    summary: `the event loop did not turn for ${countOf(group) === 1 ? 'one stretch' : `${countOf(group)} stretches`}${causeText(
      group,
      worst,
      seen,
      place,
    )}`,
    where,
    evidence: [
      turnsEvidence(group),
      ...stackEvidence(group, place),
      ...waitingEvidence(group),
      ...(growing === null ? [] : [growing.evidence]),
      ...(waited < total * NOTABLE_WAIT ? [] : starvationOf(view, spansOf(group)).evidence),
    ],
    measure: {
      count: countOf(group),
      total_s: total,
      worst_min_s: worst.min,
      worst_max_s: worst.max,
      median_s: weightedMedian(group),
      share_ratio: share,
      threshold_s: Number(view.start.settings['lag_threshold_s'] ?? 0),
      on_cpu_s: sum(group.map((block) => block.onCpu)),
      run_queue_wait_s: sum(group.map((block) => block.runQueueWait)),
      ...growing?.measure,
    },
    remedy: remedyFor(mechanism),
  };
}

/** Of blocks that stand for several nobody knows what each cost. */
function costsOf(group: readonly Block[]): readonly Cost[] {
  return group
    .filter(({ count }) => count === 1)
    .map((block) => ({ at: block.span.from, cpu: block.onCpu, duration: middle(block) }));
}

function starvedFinding(
  view: RecordingView,
  group: readonly [Block, ...Block[]],
): UnnumberedFinding {
  const worst = group.reduce((a, b) => (middle(b) > middle(a) ? b : a));
  const cause = starvationOf(view, spansOf(group));
  return {
    code: CODE,
    kind: 'loop-blocked',
    mechanism: 'starved',
    severity: 'note',
    confidence: 'confirmed',
    pid: pidOf(worst),
    summary: `the event loop was held up ${cause.by}, not by its own code`,
    where: [],
    evidence: [turnsEvidence(group), ...cause.evidence],
    measure: {
      count: countOf(group),
      total_s: sum(group.map((block) => block.total)),
      worst_min_s: worst.min,
      worst_max_s: worst.max,
      share_ratio: Math.min(1, sum(group.map((block) => block.total)) / runLength(view)),
      run_queue_wait_s: sum(group.map((block) => block.runQueueWait)),
    },
    remedy: cause.remedy,
  };
}

function turnsEvidence(group: readonly [Block, ...Block[]]): Evidence {
  const listed = [...group].sort((a, b) => middle(b) - middle(a)).slice(0, LISTED);
  const basis = textOf(group[0].span, ATTR.basis) ?? 'iteration';
  const thread = textOf(group[0].span, ATTR.threadName) ?? 'main';
  const whose = thread === 'main' ? 'the loop' : `the loop of thread ${thread}`;
  return {
    kind: 'turns',
    summary: `${countOf(group) === 1 ? 'once' : `${countOf(group)} times`} one ${basis} of ${whose} was seen to last`,
    data: {
      basis,
      worst: listed.map((block) => ({
        at_unix_s: block.span.from,
        duration_min_s: block.min,
        duration_max_s: block.max,
        on_cpu_s: numberOf(block.span, ATTR.onCpu) ?? 0,
        run_queue_wait_s: numberOf(block.span, ATTR.runQueueWait) ?? 0,
        syscall: textOf(block.span, ATTR.syscall),
        open: block.span.attributes[ATTR.open] === true,
      })),
    },
  };
}

function stackEvidence(
  group: readonly [Block, ...Block[]],
  place: Place | undefined,
): readonly Evidence[] {
  const stacks = group.flatMap((block) => block.stacks);
  const heaviest = heaviestOf(stacks);
  const holder = group[0]?.holder ?? null;
  const whose = holder === null ? '' : `of ${threadText(holder)} `;
  if (heaviest === null || place === undefined) return [];
  return [
    {
      kind: 'stack',
      summary: `${stacks.length} ${stacks.length === 1 ? 'stack' : 'stacks'} ${whose}taken during them; ${place.function} holds ${percentText(place.share)} of that time`,
      data: { frames: heaviest.frames },
    },
  ];
}

/** 1 for the body of a module. */
const isBody = ({ frame }: RankedPlace): number => Number(frame.function === '<module>');

function causeText(
  group: readonly Block[],
  { holder }: Block,
  mechanism: MechanismOf<'loop-blocked'> | null,
  place: Place | undefined,
): string {
  const where = place === undefined ? '' : `while in ${place.function}`;
  if (holder !== null)
    return `: ${holdersText(group, holder)} had the GIL${where === '' ? '' : `, ${where}`}`;
  if (mechanism === IMPORT)
    return ` while modules were imported${place === undefined ? '' : `, in ${place.function}`}`;
  if (mechanism === COLLECTOR)
    return ` while garbage was collected${place === undefined ? '' : `, most in ${place.function}`}`;
  return where === '' ? '' : ` ${where}`;
}

/** `thread reindex`, or `one of 12 threads, Thread-596 the longest,`. */
function holdersText(group: readonly Block[], longest: Holder): string {
  const threads = new Set(group.map(({ holder }) => holder?.thread)).size;
  return threads === 1
    ? threadText(longest)
    : `one of ${threads} threads, ${threadText(longest)} the longest,`;
}

/** Where the loop itself was while another thread had the GIL. */
function waitingEvidence(group: readonly Block[]): readonly Evidence[] {
  const stacks = group.flatMap(({ holder }) => holder?.waiting ?? []);
  const heaviest = heaviestOf(stacks);
  if (heaviest === null) return [];
  return [
    {
      kind: 'stack',
      summary: `${stacks.length} ${stacks.length === 1 ? 'stack' : 'stacks'} of the loop, which waited meanwhile`,
      data: { frames: heaviest.frames },
    },
  ];
}

function heaviestOf(stacks: readonly WeightedStack[]): WeightedStack | null {
  return stacks.reduce<WeightedStack | null>(
    (best, stack) => (best === null || stack.weight > best.weight ? stack : best),
    null,
  );
}

function toPlace(place: RankedPlace, { span, holder }: Block): Place {
  return {
    function: place.frame.function,
    file: place.frame.file,
    line: place.frame.line,
    module: place.origin.module,
    thread: holder?.thread ?? textOf(span, ATTR.threadName),
    share: place.share,
  };
}

function runLength(view: RecordingView): Seconds {
  return Math.max(view.endedAt - view.start.startedAt, Number.EPSILON);
}

function commonest<Value>(values: readonly (Value | null)[]): Value | null {
  const counts = new Map<Value | null, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
