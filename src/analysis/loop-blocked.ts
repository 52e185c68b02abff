import { blockedTurns } from '../core/blocked-turns.ts';
import { type RankedPlace, rankPlaces, type WeightedStack } from '../core/place.ts';
import { ATTR, EVENT, SPAN } from '../core/semconv.ts';
import { median } from '../core/statistics.ts';
import { percentText } from '../core/text.ts';
import type {
  Detector,
  Evidence,
  Finding,
  Place,
  Ratio,
  RecordingView,
  Seconds,
  Severity,
  Span,
} from '../core/types.ts';
import { numberAttribute, textAttribute, weightedStacks } from './attributes.ts';
import { remedyFor } from './block-remedies.ts';
import { type Holder, holderOf, threadText } from './gil-holder.ts';
import { type Cost, growingCost } from './growing-cost.ts';
import { IMPORT, IMPORT_WITHIN, isImport } from './import-blocks.ts';
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
/** The mechanism of a block in which garbage was collected. */
const COLLECTOR = 'gc';

/** One block, read back from its span. */
interface Block {
  readonly span: Span;
  readonly min: Seconds;
  readonly max: Seconds;
  /** In a long run one span, the longest, stands for several of its place; sums of all of them. */
  readonly count: number;
  readonly total: Seconds;
  readonly onCpu: Seconds;
  readonly runQueueWait: Seconds;
  readonly starved: boolean;
  /** Where the loop was, or, where another thread had the GIL, that thread. */
  readonly stacks: readonly WeightedStack[];
  readonly places: readonly RankedPlace[];
  readonly holder: Holder | null;
  /** Why the loop stood still, as the span says, or as its stacks do. */
  readonly mechanism: string | null;
}

export const loopBlocked: Detector = {
  code: CODE,
  name: 'loop-blocked',
  needs: [SPAN.blocked],
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
function beforeReady(finding: Omit<Finding, 'id'>): Omit<Finding, 'id'> {
  return {
    ...finding,
    severity: 'note',
    summary: `${finding.summary}, during its start-up`,
    remedy: null,
  };
}

/** The middle of a block's duration interval. */
const middle = (block: Block): Seconds => (block.min + block.max) / 2;
/** That without the wait for a core. */
const ownTime = (block: Block): Seconds =>
  Math.max(0, middle(block) - (numberOf(block.span, ATTR.runQueueWait) ?? 0));
const countOf = (group: readonly Block[]): number => sum(group.map(({ count }) => count));
const spansOf = (group: readonly Block[]): readonly Span[] => group.map(({ span }) => span);
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** Of a span that stands for several, all but itself count with their mean. */
function weightedMedian(group: readonly Block[]): Seconds {
  if (group.every(({ count }) => count === 1)) return median(group.map(middle));
  const lengths = group.flatMap((block) => [
    { length: middle(block), count: 1 },
    {
      length: (block.total - middle(block)) / Math.max(1, block.count - 1),
      count: block.count - 1,
    },
  ]);
  lengths.sort((a, b) => a.length - b.length);
  let before = 0;
  return lengths.find(({ count }) => (before += count) >= countOf(group) / 2)?.length ?? 0;
}

function readBlock(view: RecordingView, span: Span): Block {
  const max = numberOf(span, ATTR.durationMax) ?? span.to - span.from;
  const min = numberOf(span, ATTR.durationMin) ?? max;
  const either = (key: string, other: string): Seconds =>
    numberOf(span, key) ?? numberOf(span, other) ?? 0;
  const own = weightedStacks(view, span.attributes);
  const holder = holderOf(view, span);
  const stacks = holder?.stacks ?? own;
  return {
    span,
    max,
    min,
    count: numberOf(span, ATTR.compositeCount) ?? 1,
    total: numberOf(span, ATTR.compositeSum) ?? (min + max) / 2,
    onCpu: either(ATTR.compositeOnCpu, ATTR.onCpu),
    runQueueWait: either(ATTR.compositeRunQueueWait, ATTR.runQueueWait),
    starved: span.attributes[ATTR.starved] === true,
    stacks,
    places: rankPlaces(stacks),
    holder: holder === null ? null : { thread: holder.thread, waiting: own },
    mechanism: holder === null && isImport(stacks) ? IMPORT : textOf(span, ATTR.mechanism),
  };
}

function groupByPlace(blocks: readonly Block[]): readonly (readonly [Block, ...Block[]])[] {
  return groupBy(blocks, (block) => {
    const frame = block.places[0]?.frame;
    const mechanism = block.mechanism ?? '';
    // The collector runs wherever the program happens to be; an import goes through many modules.
    if (mechanism === COLLECTOR || mechanism === IMPORT)
      return `${pidOf(block)}\n${textOf(block.span, ATTR.threadId) ?? ''}\n${mechanism}`;
    // The same code in ever new threads, as in those of timers, is one cause.
    const whose = block.holder === null ? '' : 'another thread';
    const place = `${frame === undefined ? mechanism : frameName(frame)}\n${whose}`;
    return `${pidOf(block)}\n${textOf(block.span, ATTR.threadId) ?? ''}\n${place}`;
  });
}

function frameName(frame: RankedPlace['frame']): string {
  return `${frame.function}\n${frame.file}`;
}

function groupBy(
  blocks: readonly Block[],
  key: (block: Block) => string,
): readonly (readonly [Block, ...Block[]])[] {
  const groups = new Map<string, [Block, ...Block[]]>();
  for (const block of blocks) {
    const group = groups.get(key(block));
    if (group === undefined) groups.set(key(block), [block]);
    else group.push(block);
  }
  return [...groups.values()];
}

function blockedFinding(
  view: RecordingView,
  group: readonly [Block, ...Block[]],
): Omit<Finding, 'id'> {
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
): Omit<Finding, 'id'> {
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
  mechanism: string | null,
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

function pidOf(block: Block): number | null {
  return numberOf(block.span, ATTR.pid);
}

const numberOf = (span: Span, key: string): number | null => numberAttribute(span.attributes, key);
const textOf = (span: Span, key: string): string | null => textAttribute(span.attributes, key);

function commonest(values: readonly (string | null)[]): string | null {
  const counts = new Map<string | null, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
