import { ATTR, METRIC } from '../core/semconv.ts';
import { percentText } from '../core/text.ts';
import type {
  Detector,
  Ratio,
  RecordingView,
  Seconds,
  Series,
  UnnumberedFinding,
} from '../core/types.ts';
import { textAttribute } from './attributes.ts';
import { growthByWork, type Readings, sumOf } from './growth-by-work.ts';
import {
  type Growth,
  grows,
  inconclusiveFinding,
  leakFinding,
  type Least,
} from './growth-finding.ts';
import { projectionOf } from './growth-projection.ts';
import { type AllocatedGrowth, allocatedGrowth } from './growth-node-heap.ts';
import { heldGrowth, type HeldGrowth, isOutsideOfObjects } from './growth-heap.ts';
import { trendOf } from '../core/trend.ts';

/**
 * TRC110 memory-leak. Memory that grows says little: caches fill for hours (llama.cpp keeps prompts up to 8 GiB by default), allocators keep
 * what they got. It is called a leak when the runtime's own heap holds it, or when it follows the work done; else it is a note. Assumed: what only
 * the process can give back (anonymous, shared, swapped out) is its own, and a cache has levelled off by the end of the run.
 */

/** glibc's arenas grow in steps of up to 64 MiB each; 8 MiB and a tenth is where growth is no longer one buffer. */
const LEAST_MEMORY: Least = { rise: 8 * 2 ** 20, ratio: 0.1 };
/** In seconds only what fills a machine within minutes is worth a note: a quarter of a GiB and half as much again as there was. */
const LEAST_MEMORY_SHORT: Least = { rise: 256 * 2 ** 20, ratio: 0.5 };
/**
 * Interpreters, JITs and allocators warm up in the first minute under load: before, memory says little. A run of a minute has its first
 * reading a little after its start and its last one a little before its end.
 */
const LEAST_MEMORY_TIME: Seconds = 58;
/** In the first minute, where objects name the growth: what fills a GiB in some minutes, seen for as long as three looks take. */
const LEAST_NAMED: Least = { rise: 48 * 2 ** 20, ratio: 0.25 };
const LEAST_NAMED_TIME: Seconds = 12;
/** Of locks, tasks, frames and the like, which no cache keeps and no warming up leaves behind. */
const LEAST_UNCACHED: Least = { rise: 4 * 2 ** 20, ratio: 0.1 };
/** Where three looks saw one container or type grow at one rate, the usual rise tells: caches fill fast first, and then slower. */
const LEAST_STEADY_TIME: Seconds = 20;
/** What the heap holds of the growth, to be its owner. */
const OWNER_SHARE: Ratio = 0.5;

export const memoryLeak: Detector = {
  code: 'TRC110',
  *detect(view) {
    const memory = held(view);
    const isLong = spanOf(memory) >= LEAST_MEMORY_TIME;
    const growth = growthOf('memory', memory, isLong);
    const [heap] = (isLong ? V8_OWNERS : [])
      .flatMap((owner) => {
        const { at, value } = sumOf(view.series(owner.metric).filter(isOld));
        const own = growthOf(owner.what, { at, value }, true);
        return own === null ? [] : [{ ...owner, growth: own }];
      })
      .sort((a, b) => riseOf(b.growth) - riseOf(a.growth));
    const allocated = allocatedGrowth(view);
    if (allocated !== null) yield projected(view, allocatedFinding(view, allocated), allocated);
    else if (heap !== undefined)
      yield projected(view, heapFinding(view, heap, growth), heap.growth);
    else {
      const objects = heldGrowth(view);
      const known = growth ?? (objects === null ? null : namedGrowth(memory, objects));
      if (known === null) return;
      const finding =
        objects === null
          ? memoryFinding(view, known, { memory, isLong })
          : objectsFinding(view, known, objects);
      yield projected(view, finding, known);
    }
  },
};

/** Growth in the first minute is taken seriously where the objects are known that it is in: warming up is code, and not data. */
function namedGrowth(memory: Readings, { isSteady, isUncached }: HeldGrowth): Growth | null {
  const trend = trendOf(memory.at, memory.value);
  const { duration } = trend;
  const least = isUncached ? LEAST_UNCACHED : LEAST_MEMORY;
  const isMuch = duration >= LEAST_NAMED_TIME && grows(trend, LEAST_NAMED, LEAST_NAMED);
  const isPlain = isSteady && duration >= LEAST_STEADY_TIME && grows(trend, least, least);
  return isMuch || isPlain ? { what: 'memory', verb: 'grows', unit: 'bytes', trend } : null;
}

/** Callbacks that become more, by what keeps them. */
const CALLBACKS: Partial<
  Record<
    AllocatedGrowth['mechanism'],
    { readonly what: string; readonly remedy: (owner: string) => string }
  >
> = {
  listeners: {
    what: 'listeners that are added',
    remedy: (owner) =>
      `Remove each listener that ${owner} adds when what it is for is over, or add it with { once: true } and a signal of its own.`,
  },
  timers: {
    what: 'timers that repeat, set',
    remedy: (owner) =>
      `Clear each timer that ${owner} sets (clearInterval) when what it is for is over: until then it keeps all that its function refers to.`,
  },
};

/** What V8 could not collect was allocated in one place. */
function allocatedFinding(
  view: RecordingView,
  { mechanism, pid, owner, places, evidence, trend }: AllocatedGrowth,
): UnnumberedFinding {
  const callbacks = CALLBACKS[mechanism];
  const finding = leakFinding(
    view,
    {
      what:
        mechanism === 'v8-external'
          ? 'the V8 heap with its buffers, all garbage collected,'
          : 'the V8 heap, all garbage collected,',
      verb: 'grows',
      unit: 'bytes',
      trend,
    },
    {
      code: 'TRC110',
      kind: 'memory-leak',
      mechanism,
      owned: `by ${callbacks?.what ?? 'what is allocated'} in ${owner.name}`,
      owner,
      remedy: callbacks
        ? callbacks.remedy(owner.name)
        : `Look for who keeps what ${owner.name} allocates: a list, a map, a closure, a promise that is never settled.`,
    },
  );
  const [grows, ...others] = finding.evidence;
  return { ...finding, pid, where: places, evidence: [grows, evidence, ...others] };
}

/** Objects of the program are looked at, and one container holds what grew. */
function objectsFinding(view: RecordingView, growth: Growth, held: HeldGrowth): UnnumberedFinding {
  const finding = leakFinding(view, growth, {
    code: 'TRC110',
    kind: 'memory-leak',
    mechanism: held.mechanism,
    owned: held.owned,
    owner: held.owner,
    remedy: !held.isHeld
      ? `Look for who keeps them: an exception with its traceback, a cycle while gc is off, a reference that a C extension does not give back.`
      : held.mechanism === 'listeners'
        ? `Remove each callback from ${held.owner.name} when what it is for is over.`
        : `Bound what ${held.owner.name} keeps, or remove from it what is done with.`,
  });
  const [trend, ...others] = finding.evidence;
  return {
    ...finding,
    pid: held.pid,
    where: held.places,
    evidence: [trend, held.evidence, ...others],
  };
}

/** What V8 tells of its memory where it is asked (`--inspect`). */
interface HeapOwner {
  readonly metric: string;
  readonly what: string;
  readonly mechanism: 'v8-heap' | 'v8-external';
}

const V8_OWNERS: readonly HeapOwner[] = [
  { metric: METRIC.heapUsed.name, what: 'the old generation of the V8 heap', mechanism: 'v8-heap' },
  { metric: METRIC.heapExternal.name, what: 'memory of buffers', mechanism: 'v8-external' },
];

/** The young generation is garbage for the most part, up and down by tens of MiB a second: it would hide what stays. */
function isOld({ attributes }: Series): boolean {
  return textAttribute(attributes, ATTR.heapSpace)?.startsWith('new_') !== true;
}

/** The finding with when the control group's limit is met, where it has one. */
function projected(
  view: RecordingView,
  finding: UnnumberedFinding,
  { trend }: Pick<Growth, 'trend'>,
): UnnumberedFinding {
  const projection = projectionOf(view, trend);
  if (projection === null) return finding;
  const { evidence, measure } = finding;
  return {
    ...finding,
    evidence: [...evidence, projection.evidence],
    measure: { ...measure, ...projection.measure },
  };
}

const riseOf = ({ trend }: Growth): number => trend.last - trend.first;

function growthOf(what: string, readings: Readings, isLong: boolean): Growth | null {
  const trend = trendOf(readings.at, readings.value);
  const isEnough = isLong
    ? grows(trend, LEAST_MEMORY, null)
    : grows(trend, LEAST_MEMORY_SHORT, LEAST_MEMORY_SHORT);
  return isEnough ? { what, verb: 'grows', unit: 'bytes', trend } : null;
}

/** What the garbage collector does not get back is held by something in the program. */
function heapFinding(
  view: RecordingView,
  { what, mechanism, growth }: HeapOwner & { readonly growth: Growth },
  memory: Growth | null,
): UnnumberedFinding {
  const rise = riseOf(growth);
  const whole = memory === null ? rise : riseOf(memory);
  const share = Math.min(1, rise / Math.max(rise, whole));
  if (share <= OWNER_SHARE) {
    return inconclusiveFinding(view, memory ?? growth, {
      why: `${what} has ${percentText(share)} of it, and what holds the rest cannot be told`,
      remedy: 'Look at Buffers and native modules (process.memoryUsage()), and watch longer.',
    });
  }
  return leakFinding(view, growth, {
    code: 'TRC110',
    kind: 'memory-leak',
    mechanism,
    owned: 'so objects stay reachable',
    owner: { name: what, rise, share },
    remedy: REMEDIES['node'] ?? '',
  });
}

function memoryFinding(
  view: RecordingView,
  growth: Growth,
  { memory, isLong }: { memory: Readings; isLong: boolean },
): UnnumberedFinding {
  const remedy = REMEDIES[view.start.targets[0]?.runtime ?? ''] ?? OTHER_REMEDY;
  const byWork = isLong ? growthByWork(view, memory) : null;
  if (byWork === null) {
    const isKnown = V8_OWNERS.some(({ metric }) => view.series(metric).length > 0);
    const isOutside = !isKnown && isOutsideOfObjects(view);
    const outside = isKnown
      ? ', and the V8 heap does not grow'
      : isOutside
        ? ', and Python objects do not grow: it is in native code or the allocator'
        : '';
    return inconclusiveFinding(view, growth, {
      facts: { areObjectsLevel: isOutside || isKnown },
      why: isLong
        ? `whether a cache fills or memory leaks cannot be told without knowing what holds it${outside}`
        : 'so early it may be warming up',
      remedy: `Watch longer (-d 10m) under steady load: a cache levels off. If it goes on: ${remedy}`,
    });
  }
  const { by, bytes, correlation } = byWork;
  const amount =
    by === 'event' ? { growth_by_event_bytes: bytes } : { growth_by_cpu_bytes_per_s: bytes };
  return leakFinding(view, growth, {
    code: 'TRC110',
    kind: 'memory-leak',
    mechanism: by === 'event' ? 'per-io-event' : 'per-cpu-time',
    owned: `and by as much more as more is ${by === 'event' ? 'handled' : 'computed'}`,
    owner: null,
    extra: { ...amount, rank_correlation_ratio: correlation },
    remedy: `Look for what each request leaves behind. ${remedy}`,
  });
}

/** How to see what holds memory, by runtime. */
const REMEDIES: Readonly<Record<string, string>> = {
  python: 'Compare two snapshots of tracemalloc, taken some minutes apart.',
  node: 'Compare two heap snapshots (Chrome DevTools on an inspector), taken some minutes apart.',
};
const OTHER_REMEDY =
  'Look at the bounds of its caches, and at a heap profiler (heaptrack, jemalloc’s).';

/**
 * What only this process can give back: anonymous and shared memory, and what the kernel has moved to swap. The pages of mapped files are
 * the kernel's to drop: a server that reads its model by mmap(2) grows by them and leaks nothing.
 */
function held(view: RecordingView): Readings {
  const kinds = ['anonymous', 'shared'].flatMap((kind) =>
    view.series(METRIC.memoryByKind.name, { [ATTR.memoryKind]: kind }),
  );
  // Before Linux 4.5, and in recordings of others, only the whole is known.
  const resident = kinds.length === 2 ? kinds : view.series(METRIC.memoryUsage.name);
  const { at, value } = sumOf(resident);
  const [swapped] = view.series(METRIC.swap.name);
  const swap = new Map<Seconds, number>();
  swapped?.at.forEach((time, i) => swap.set(time, swapped.value[i] ?? 0));
  return { at, value: value.map((bytes, i) => bytes + (swap.get(at[i] ?? 0) ?? 0)) };
}

function spanOf({ at }: Readings): Seconds {
  return (at[at.length - 1] ?? 0) - (at[0] ?? 0);
}
