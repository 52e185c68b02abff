import { mechanismOf } from '../core/catalogue/catalogue.ts';
import { type RankedPlace, rankPlaces, V8_COLLECTOR, type WeightedStack } from '../core/place.ts';
import { ATTR } from '../core/semconv.ts';
import { median } from '../core/statistics.ts';
import type { Ratio, RecordingView, Seconds, Span, MechanismOf } from '../core/types.ts';
import { numberAttribute, textAttribute, weightedStacks } from './attributes.ts';
import { type Holder, holderOf } from './gil-holder.ts';
import { IMPORT, isImport } from './import-blocks.ts';

/** The stretches in which an event loop did not turn, as a recording has them, and which of them are one cause. */

/** The mechanism of a block in which garbage was collected. */
export const COLLECTOR = 'gc';

/**
 * V8 collects with helper threads and its main thread works beside them. Where that was on a core for less than this of a block with the
 * collector in its stacks, and was seen in no call but that in which it waits for the helpers, these got no core: collections of 67 to 640 ms
 * with 1 to 14 ms on a core, with 25 threads for two cores.
 */
const COLLECTOR_ON_CPU: Ratio = 0.25;
/** Of the stacks; by chance one may fall into a short collection. */
const COLLECTOR_SHARE: Ratio = 0.2;
const WAITS_FOR_HELPERS = /^(?:(?:running|futex)=\d+ ?)+$/;

/** One block, read back from its span. */
export interface Block {
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
  readonly mechanism: MechanismOf<'loop-blocked'> | null;
}

/** The middle of a block's duration interval. */
export const middle = (block: Block): Seconds => (block.min + block.max) / 2;

/** That without the wait for a core. */
export const ownTime = (block: Block): Seconds =>
  Math.max(0, middle(block) - (numberOf(block.span, ATTR.runQueueWait) ?? 0));

export const countOf = (group: readonly Block[]): number => sum(group.map(({ count }) => count));

export const spansOf = (group: readonly Block[]): readonly Span[] => group.map(({ span }) => span);

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/** Of a span that stands for several, all but itself count with their mean. */
export function weightedMedian(group: readonly Block[]): Seconds {
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

/** A block as its span has it. */
export function readBlock(view: RecordingView, span: Span): Block {
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
    starved: span.attributes[ATTR.starved] === true || collectsWithoutCore(span, own, max),
    stacks,
    places: rankPlaces(stacks),
    holder: holder === null ? null : { thread: holder.thread, waiting: own },
    mechanism:
      holder === null && isImport(stacks)
        ? IMPORT
        : mechanismOf('loop-blocked', textOf(span, ATTR.mechanism)),
  };
}

/** Whether V8 collected garbage in this block while its threads waited for cores. */
function collectsWithoutCore(
  span: Span,
  stacks: readonly WeightedStack[],
  longest: Seconds,
): boolean {
  const all = sum(stacks.map(({ weight }) => weight));
  const collecting = stacks.filter(({ frames }) => frames[0]?.function === V8_COLLECTOR);
  const onCpu = numberOf(span, ATTR.onCpu);
  return (
    onCpu !== null &&
    onCpu < longest * COLLECTOR_ON_CPU &&
    sum(collecting.map(({ weight }) => weight)) >= all * COLLECTOR_SHARE &&
    collecting.length > 0 &&
    WAITS_FOR_HELPERS.test(textOf(span, ATTR.syscall) ?? '')
  );
}

/** Blocks of one loop and one cause together. */
export function groupByPlace(blocks: readonly Block[]): readonly (readonly [Block, ...Block[]])[] {
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

export function groupBy(
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

export function pidOf(block: Block): number | null {
  return numberOf(block.span, ATTR.pid);
}

export const numberOf = (span: Span, key: string): number | null =>
  numberAttribute(span.attributes, key);

export const textOf = (span: Span, key: string): string | null =>
  textAttribute(span.attributes, key);
