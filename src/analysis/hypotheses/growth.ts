import { ATTR, METRIC } from '../../core/semconv.ts';
import { median } from '../../core/statistics.ts';
import { percentText } from '../../core/text.ts';
import type {
  FindingKind,
  Ratio,
  RecordingView,
  Seconds,
  Series,
  Finding,
} from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { sumOf } from '../growth-by-work.ts';
import {
  either,
  type Explanation,
  HINT,
  measured,
  pidOf,
  placeText,
  SOME,
  STRONG,
  type Subject,
  SURE,
  PRIOR,
} from './explanation.ts';

/** Something grows: a leak, or one of the things that look like one for a while. */

/** Caches, pools and JITs are mostly filled after this long under load; what grows as fast later is something else. */
const WARM: Seconds = 300;
/** In less than this hardly anything has warmed up. */
const COLD: Seconds = 60;
/** The last third climbs about as the whole. */
const EVEN: Ratio = 0.85;
/** The work of the last third over that of the first, from which on the load has risen. */
const RISEN: Ratio = 1.3;
/** A fall by this share of all that was covered is a collection. */
const FALL: Ratio = 0.25;

export function explainGrowth(subject: Subject): readonly Explanation[] {
  const facts = factsOf(subject);
  return [
    leak(subject, facts),
    warmUp(subject, facts),
    rising(subject, facts),
    ...(facts.isMemory ? [sawtooth(subject, facts), fragmentation(subject, facts)] : []),
  ];
}

interface Facts {
  readonly isMemory: boolean;
  readonly what: string;
  readonly lastThird: Ratio | null;
  readonly duration: Seconds;
  readonly isOwned: boolean;
  readonly owner: string;
  readonly followsWork: boolean;
  readonly isForgotten: boolean;
  /** Null where the work cannot be counted. */
  readonly workRatio: Ratio | null;
  /** Falls of the whole, and whether what is left after each is more than after the one before; null where memory was not read. */
  readonly falls: { readonly count: number; readonly floorRises: boolean } | null;
  /** Whether the objects of the runtime were seen to grow; null where nobody looked. */
  readonly objectsGrow: boolean | null;
}

function factsOf({ main, view, findings }: Subject): Facts {
  const memory =
    (main.kind === 'memory-leak' || main.kind === 'growth-inconclusive') && !inCounts(main);
  const owner = findings
    .flatMap(({ evidence }) => evidence)
    .find(({ kind }) => kind === 'owner' || kind === 'heap');
  const place = placeText(main);
  return {
    isMemory: memory,
    what: WHAT[main.kind] ?? (memory ? 'memory' : 'what grows'),
    lastThird: measured(main, 'last_third_ratio'),
    duration: measured(main, 'duration_s') ?? view.endedAt - view.start.startedAt,
    isOwned: main.kind !== 'growth-inconclusive' && (owner !== undefined || place !== ''),
    owner: place === '' ? (owner?.summary ?? '') : place,
    followsWork: followsWork(main),
    isForgotten: main.kind === 'socket-leak' && main.mechanism === 'close_wait',
    workRatio: workRatio(view),
    falls: memory ? fallsOf(memoryOf(view)) : null,
    objectsGrow: objectsGrow(main),
  };
}

/** Whether what grows is as much more as more is done. */
function followsWork(main: Finding): boolean {
  if (main.kind !== 'memory-leak') return false;
  return main.mechanism === 'per-io-event' || main.mechanism === 'per-cpu-time';
}

/** Null where nobody looked at objects, or they say nothing of the rest. */
function objectsGrow(main: Finding): boolean | null {
  if (main.kind === 'growth-inconclusive')
    return main.facts?.areObjectsLevel === true && !inCounts(main) ? false : null;
  if (main.kind !== 'memory-leak') return null;
  const { mechanism } = main;
  switch (mechanism) {
    case 'python-objects':
    case 'native-held':
    case 'listeners':
    case 'timers':
    case 'v8-heap':
    case 'v8-external':
      return true;
    case 'per-io-event':
    case 'per-cpu-time':
    case null:
      return null;
    default:
      mechanism satisfies never;
      return null;
  }
}

function inCounts(main: Subject['main']): boolean {
  return main.measure['start_count'] !== undefined;
}

const WHAT: Partial<Record<FindingKind, string>> = {
  'memory-leak': 'memory',
  'fd-leak': 'open descriptors',
  'socket-leak': 'connections',
  'thread-leak': 'threads',
  'task-leak': 'tasks',
  'gpu-memory-leak': 'GPU memory',
};

function leak(subject: Subject, facts: Facts): Explanation {
  const held = facts.owner === '' ? 'something in the program' : facts.owner;
  return {
    mechanism: 'leak',
    claim: `${facts.what} leaks: what is taken for each piece of work is never given back, held by ${held}`,
    confirming: 'it grows by the same amount for the same number of requests, however long it runs',
    refuting:
      'it stays level under the same load once caches are full, or falls when the load stops',
    test: (self) =>
      `trace attach ${pidOf(subject)} -d 10m   # under even load; then the growth per call: trace repro new ${self} --call module:function --oracle growth`,
    prior: PRIOR.USUAL,
    clues: [
      ...either(
        facts.isOwned,
        { summary: `most of it has one owner: ${facts.owner}`, weight: STRONG },
        { summary: 'nobody was seen to hold it', weight: -HINT },
      ),
      ...either(facts.followsWork, {
        summary: 'it grows by as much more as more is done',
        weight: STRONG,
      }),
      ...either(facts.isForgotten, {
        summary: 'the other side has closed these connections: nothing but this program keeps them',
        weight: SURE,
      }),
      ...either(facts.lastThird === null ? null : facts.lastThird >= EVEN, {
        summary: `in the last third it grew ${percentText(facts.lastThird ?? 0)} as fast as in the whole`,
        weight: SOME,
      }),
      ...either(facts.duration >= WARM, {
        summary: `after ${formatSeconds(facts.duration)} it still grows`,
        weight: SOME,
      }),
      ...either(facts.workRatio === null ? null : facts.workRatio >= RISEN, {
        summary: `the work grew meanwhile, by ${percentText((facts.workRatio ?? 1) - 1)}`,
        weight: -SOME,
      }),
      ...either(facts.falls === null ? null : facts.falls.count > 0 && !facts.falls.floorRises, {
        summary: 'what is left after it falls is no more than before',
        weight: -STRONG,
      }),
    ],
  };
}

function warmUp(subject: Subject, facts: Facts): Explanation {
  return {
    mechanism: 'warm-up',
    claim: `${facts.what} grows because a cache or a pool fills, and will level off`,
    confirming: 'it levels off at a bound that can be named (the size of a cache, of a pool)',
    refuting: 'it grows as fast after ten minutes under even load as at first',
    test: () =>
      `trace attach ${pidOf(subject)} -d 10m   # under even load: TRC119 or nothing means that it levelled off`,
    prior: PRIOR.SOMETIMES,
    clues: [
      ...either(facts.duration < COLD, {
        summary: `only ${formatSeconds(facts.duration)} were watched: it may be warming up`,
        weight: SOME,
      }),
      ...either(facts.duration >= WARM, {
        summary: `after ${formatSeconds(facts.duration)} caches and pools are mostly full`,
        weight: -SOME,
      }),
      ...either(
        facts.lastThird === null ? null : facts.lastThird < EVEN,
        {
          summary: `it slows down: in the last third ${percentText(facts.lastThird ?? 0)} of the whole's rate`,
          weight: STRONG,
        },
        { summary: 'it does not slow down', weight: -SOME },
      ),
      ...either(facts.isForgotten || facts.followsWork, {
        summary: 'a cache does not grow with each piece of work',
        weight: -SOME,
      }),
      ...either(facts.isOwned && facts.objectsGrow === true ? null : facts.isOwned, {
        summary: 'it has an owner that nothing was seen to bound',
        weight: -HINT,
      }),
    ],
  };
}

function rising(subject: Subject, facts: Facts): Explanation {
  return {
    mechanism: 'load-rises',
    claim: `${facts.what} grows because there is more to do at a time: more clients, longer queues`,
    confirming: 'it follows the number of requests in flight, also down again',
    refuting: 'it grows under a load that is even',
    test: () =>
      `trace load <url> -c 8 -d 5m --attach ${pidOf(subject)}   # an even load that nothing else joins`,
    prior: PRIOR.PASSING,
    clues: [
      ...either(
        facts.workRatio === null ? null : facts.workRatio >= RISEN,
        {
          summary: `the last third had ${percentText((facts.workRatio ?? 1) - 1)} more work than the first`,
          weight: STRONG + HINT,
        },
        { summary: 'the load was about the same all the time', weight: -STRONG },
      ),
      ...either(facts.isForgotten, {
        summary: 'clients that are still there would not have closed',
        weight: -SURE,
      }),
      ...either(
        subject.all.some(({ kind }) => kind === 'saturation'),
        {
          summary: 'requests were queueing',
          weight: SOME,
        },
      ),
      ...either(facts.followsWork, {
        summary: 'what it follows is the sum of the work, not the work at one time',
        weight: -SOME,
      }),
    ],
  };
}

function sawtooth(subject: Subject, { falls }: Facts): Explanation {
  return {
    mechanism: 'gc-sawtooth',
    claim: 'memory is garbage that was not collected yet: it will fall at the next collection',
    confirming: 'it falls back to the same level again and again',
    refuting: 'what is left after each collection is more than after the one before',
    test: () =>
      `trace heap ${pidOf(subject)} --interval 60   # objects that are reachable, not garbage`,
    prior: PRIOR.PASSING,
    clues: either(
      falls === null ? null : falls.count > 0 && !falls.floorRises,
      { summary: `it fell ${falls?.count ?? 0} times, to no more than before`, weight: SURE },
      falls !== null && falls.count > 0
        ? { summary: 'it fell, and each time to more than before', weight: -STRONG }
        : { summary: 'it never fell', weight: -SOME },
    ),
  };
}

function fragmentation(subject: Subject, { objectsGrow, followsWork }: Facts): Explanation {
  return {
    mechanism: 'allocator',
    claim:
      'the allocator keeps what the program gave back (fragmentation, arenas): no object leaks',
    confirming:
      'objects stay level while resident memory grows; MALLOC_ARENA_MAX=1 or jemalloc changes it',
    refuting: 'the bytes of live objects grow as much as resident memory does',
    test: () =>
      `trace heap ${pidOf(subject)} --interval 60   # do objects grow, or only what is resident?`,
    prior: PRIOR.FAR,
    clues: [
      ...either(
        objectsGrow === null ? null : !objectsGrow,
        { summary: 'objects of the runtime did not grow', weight: STRONG },
        { summary: 'objects of the runtime grow by as much', weight: -STRONG },
      ),
      ...either(followsWork, { summary: 'it follows the work done', weight: -HINT }),
    ],
  };
}

/** Work of the last third over that of the first: I/O events of the loops where they are counted, else CPU time. */
function workRatio(view: RecordingView): Ratio | null {
  const events = view.series(METRIC.loopEvents.name);
  const { at, value } = sumOf(events.length > 0 ? events : view.series(METRIC.cpuTime.name));
  if (at.length < 9) return null;
  const third = Math.floor(at.length / 3);
  const rate = (from: number, to: number): number =>
    ((value[to] ?? 0) - (value[from] ?? 0)) / Math.max(1e-9, (at[to] ?? 0) - (at[from] ?? 0));
  const first = rate(0, third);
  return first <= 0 ? null : rate(at.length - 1 - third, at.length - 1) / first;
}

function memoryOf(view: RecordingView): readonly number[] {
  const kinds = ['anonymous', 'shared'].flatMap((kind) =>
    view.series(METRIC.memoryByKind.name, { [ATTR.memoryKind]: kind }),
  );
  const series: readonly Series[] =
    kinds.length === 2 ? kinds : view.series(METRIC.memoryUsage.name);
  return sumOf(series).value;
}

/** Falls by a quarter of the range that had been covered until then, and whether the level after the last is above that after the first. */
function fallsOf(values: readonly number[]): Facts['falls'] {
  if (values.length < 9) return null;
  const range = Math.max(...values) - Math.min(...values);
  const floors: number[] = [];
  let peak = values[0] ?? 0;
  let low: number | null = null;
  for (const value of values) {
    if (low === null && peak - value >= range * FALL) low = value;
    else if (low !== null && value < low) low = value;
    else if (low !== null && value - low >= range * FALL) {
      floors.push(low);
      low = null;
      peak = value;
    }
    if (low === null) peak = Math.max(peak, value);
  }
  if (low !== null) floors.push(low);
  const half = Math.floor(floors.length / 2);
  const floorRises =
    floors.length >= 2 &&
    median(floors.slice(-Math.max(1, half))) - median(floors.slice(0, Math.max(1, half))) >=
      range * FALL;
  return { count: floors.length, floorRises };
}
