import { rankPlaces } from '../../src/core/place.ts';
import { ATTR, EVENT, METRIC, SPAN } from '../../src/core/semconv.ts';
import type { Attributes, Event, Frame, Observation, Seconds, Span } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import type { Batch, BlockMessage, LoopThread, SamplerPlan, SecondMessage } from './messages.ts';
import { surelySeen } from './sampling-period.ts';
import { mechanismOf } from './thread-readings.ts';

/** From what the worker reports to the vocabulary: monotonic becomes Unix time, ids become stacks and places. */

/** Frames written into `code.stacktrace`; the stack record has all. */
const STACKTRACE_FRAMES = 40;
/** Different stacks kept with one span, heaviest first. */
const STACKS_A_SPAN = 32;

/** What does not change during a run. */
export interface BatchContext {
  readonly pid: number;
  /** Unix time of a CLOCK_MONOTONIC reading. */
  readonly toUnix: (mono: Seconds) => Seconds;
  readonly runtime: SamplerPlan['runtime'];
  /** All stacks handed over so far, by id. */
  readonly stacks: ReadonlyMap<string, readonly Frame[]>;
}

/** Everything of a batch but its blocks, in the order in which sinks want it: stacks before what refers to them. */
export function* batchObservations(batch: Batch, context: BatchContext): Iterable<Observation> {
  for (const [id, frames] of batch.stacks) {
    yield { kind: 'stack', at: context.toUnix(batch.at), id, frames };
  }
  for (const gap of batch.gaps) {
    yield {
      kind: 'gap',
      from: context.toUnix(gap.from),
      to: context.toUnix(gap.to),
      collector: 'event-loop',
      reason: gap.reason,
      detail: gap.detail,
      pid: context.pid,
    };
  }
  for (const second of batch.seconds) yield* secondObservations(second, context);
}

/** Said once for each longer pause: from then on shorter blocks of this process may be missed. */
export function periodNote(batch: Batch, threshold: Seconds, context: BatchContext): Event {
  const sure = surelySeen(threshold, batch.period);
  return {
    kind: 'event',
    at: context.toUnix(batch.at),
    name: EVENT.note,
    severity: 'warn',
    body:
      `pid ${context.pid} is sampled every ${formatSeconds(batch.period)} while it is idle, with so many other processes: ` +
      `blocks shorter than ${formatSeconds(sure)} can be missed`,
    attributes: { [ATTR.pid]: context.pid },
  };
}

function* secondObservations(second: SecondMessage, context: BatchContext): Iterable<Observation> {
  const at = context.toUnix(second.to);
  const attributes = threadAttributes(second.thread, context.pid);
  const sample = (metric: string, value: number): Observation => ({
    kind: 'sample',
    at,
    metric,
    value,
    attributes,
  });
  // Of a loop whose turns cannot be told apart no age is known: zeros would be a claim.
  if (second.thread.kind !== 'unknown') {
    yield {
      kind: 'histogram',
      from: context.toUnix(second.from),
      to: at,
      metric: METRIC.loopDelay.name,
      buckets: second.delay,
      attributes,
    };
  }
  const isNode = second.thread.kind === 'libuv';
  yield sample(
    (isNode ? METRIC.nodeLoopUtilization : METRIC.loopUtilization).name,
    second.utilization,
  );
  if (second.counters !== null) {
    yield sample(METRIC.loopIterations.name, second.counters.iterations);
    yield sample(METRIC.loopEvents.name, second.counters.events);
  }
  for (let i = 0; i + 1 < second.raw.length; i += 2) {
    const [sampledAt = 0, age = 0] = second.raw.slice(i, i + 2);
    yield {
      kind: 'sample',
      at: context.toUnix(sampledAt),
      metric: METRIC.loopAge.name,
      value: age,
      attributes,
    };
  }
  const { activity } = second;
  if (activity === null) return;
  yield {
    kind: 'event',
    at,
    name: EVENT.activity,
    severity: 'info',
    body: 'this thread was on a core nearly all the time',
    attributes: {
      ...attributes,
      [ATTR.activityOnCpu]: activity.onCpu,
      [ATTR.activityRunQueueWait]: activity.runQueueWait,
      [ATTR.activityStackSamples]: activity.stackSamples,
      [ATTR.stackShares]: weights(activity.stacks),
      ...(activity.iterations === null ? {} : { [ATTR.activityIterations]: activity.iterations }),
      ...(activity.events === null ? {} : { [ATTR.activityEvents]: activity.events }),
    },
  };
}

/** The span of one block; `stacks` replaces the worker's where another source (V8's profiler) has them. */
export function blockSpan(
  block: BlockMessage,
  context: BatchContext,
  stacks: ReadonlyMap<string, Seconds> = block.stacks,
): Span {
  const { turn } = block;
  const weighted = [...stacks].flatMap(([id, weight]) => {
    const frames = context.stacks.get(id);
    return frames === undefined ? [] : [{ id, frames, weight }];
  });
  weighted.sort((a, b) => b.weight - a.weight);
  const place = rankPlaces(weighted, 1)[0];
  const heaviest = weighted[0];
  return {
    kind: 'span',
    name: SPAN.blocked,
    from: context.toUnix((turn.startMin + turn.startMax) / 2),
    to: context.toUnix((turn.endMin + turn.endMax) / 2),
    attributes: {
      ...threadAttributes(block.thread, context.pid),
      [ATTR.basis]: block.basis,
      [ATTR.durationMin]: Math.max(0, turn.endMin - turn.startMax),
      [ATTR.durationMax]: turn.endMax - turn.startMin,
      [ATTR.onCpu]: block.onCpu,
      [ATTR.runQueueWait]: block.runQueueWait,
      [ATTR.starved]: block.starved,
      [ATTR.open]: block.open,
      [ATTR.mechanism]: mechanismOf(block, block.thread.kind, heaviest?.frames),
      [ATTR.syscall]: [...block.syscalls].map(([name, seen]) => `${name}=${seen}`).join(' '),
      ...(block.files.length === 0 ? {} : { [ATTR.blockedOn]: block.files }),
      ...holderAttributes(block.holders),
      [ATTR.stackShares]: weights(
        new Map(weighted.slice(0, STACKS_A_SPAN).map(({ id, weight }) => [id, weight])),
      ),
      ...(place === undefined
        ? {}
        : {
            [ATTR.codeFunctionName]: place.frame.function,
            [ATTR.codeFilePath]: place.frame.file,
            ...(place.frame.line === null ? {} : { [ATTR.codeLineNumber]: place.frame.line }),
            ...(place.origin.module === null ? {} : { [ATTR.codeModule]: place.origin.module }),
            [ATTR.placeShare]: place.share,
          }),
      ...(heaviest === undefined
        ? {}
        : {
            [ATTR.stackId]: heaviest.id,
            [ATTR.codeStacktrace]: stacktrace(heaviest.frames, context.runtime),
          }),
    },
  };
}

function holderAttributes(holders: BlockMessage['holders']): Attributes {
  const known = holders.flatMap(({ thread, stack, weight }) =>
    stack === null ? [] : [{ thread, stack, weight }],
  );
  if (known.length === 0) return {};
  return {
    [ATTR.holderStacks]: known.map(({ stack, weight }) => weightText(stack, weight)),
    [ATTR.holderThreads]: known.map(({ thread }) => thread),
  };
}

function threadAttributes(thread: LoopThread, pid: number): Attributes {
  return {
    [ATTR.pid]: pid,
    [ATTR.threadId]: thread.tid,
    [ATTR.threadName]: thread.name,
    [ATTR.loopKind]: thread.kind,
  };
}

function weights(stacks: ReadonlyMap<string, number>): readonly string[] {
  return [...stacks].map(([id, weight]) => weightText(id, weight));
}

function weightText(id: string, weight: number): string {
  return `${id}=${Number(weight.toFixed(6))}`;
}

/** `code.stacktrace` "at runtime, in the natural representation of the language" (semantic conventions, code). */
function stacktrace(frames: readonly Frame[], runtime: SamplerPlan['runtime']): string {
  const shown = frames.slice(0, STACKTRACE_FRAMES);
  if (runtime === 'node') {
    return shown.map((f) => `    at ${f.function} (${f.file}:${f.line ?? '?'})`).join('\n');
  }
  const lines = shown
    .toReversed()
    .map((f) => `  File "${f.file}", line ${f.line ?? '?'}, in ${f.function}`);
  return ['Traceback (most recent call last):', ...lines].join('\n');
}
