import { percentText } from '../../core/text.ts';
import type { Finding, MechanismOf, Ratio } from '../../core/types.ts';
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

/** The event loop stands still, or spins: what it did meanwhile, or what kept it from doing anything. */

/** From here on a thread was mostly computing; below the other it was mostly not. */
const MOSTLY: Ratio = 0.7;
const HARDLY: Ratio = 0.3;
/** A wait for a core that is worth a word (loop-blocked.ts: NOTABLE_WAIT). */
const NOTABLE_WAIT: Ratio = 0.25;
/** Collections stop whatever runs: blocks of this many places and none that stands out. */
const SCATTERED = 3;
const GC_FRAME =
  /(?:^|\.)(?:gc|collect|gc_collect_main|Scavenge|Mark-?[Cc]ompact|\(garbage collector\))$/;

export function explainStalls(subject: Subject): readonly Explanation[] {
  const facts = factsOf(subject);
  if (subject.main.kind === 'cpu-spin') {
    return [spin(subject), busy(subject, facts), starved(subject, facts)];
  }
  return [
    blockingCall(facts),
    compute(subject, facts),
    lock(subject, facts),
    collection(subject, facts),
    starved(subject, facts),
  ];
}

interface Facts {
  readonly place: string;
  readonly mechanism: MechanismOf<'loop-blocked'> | null;
  readonly doing: Doing;
  /** Of the time it stood still; null where it was not counted. */
  readonly onCpu: Ratio | null;
  readonly waitForCore: Ratio | null;
  readonly isStarved: boolean;
  readonly isThrottled: boolean;
  readonly places: number;
  readonly inCollector: boolean;
  readonly grows: Finding | undefined;
}

/**
 * What the loop's thread was seen doing; `outside`: waiting for something outside of the process.
 */
type Doing = 'outside' | 'computing' | 'lock' | 'collecting' | 'no-core' | null;

function doingOf(main: Finding): Doing {
  if (main.kind === 'lock-contention') return main.mechanism === 'lock' ? 'lock' : null;
  if (main.kind !== 'loop-blocked') return null;
  const { mechanism } = main;
  switch (mechanism) {
    case 'sleep':
    case 'file-io':
    case 'network-io':
    case 'subprocess':
    case 'pipe':
    case 'dns':
      return 'outside';
    case 'cpu':
    case 'quadratic work':
      return 'computing';
    case 'lock':
    case 'gil':
      return 'lock';
    case 'gc':
      return 'collecting';
    case 'starved':
      return 'no-core';
    case 'import':
    case 'nested-poll':
    case 'page-fault':
    case 'unknown':
    case null:
      return null;
    default:
      mechanism satisfies never;
      return null;
  }
}

function factsOf({ main, all, findings }: Subject): Facts {
  const total = measured(main, 'total_s');
  const part = (key: string): Ratio | null => {
    const value = measured(main, key);
    return total === null || value === null || total <= 0 ? null : Math.min(1, value / total);
  };
  return {
    place: placeText(main),
    mechanism: main.kind === 'loop-blocked' ? main.mechanism : null,
    doing: doingOf(main),
    onCpu: part('on_cpu_s'),
    waitForCore: part('run_queue_wait_s') ?? measured(main, 'run_queue_wait_ratio'),
    isStarved: doingOf(main) === 'no-core',
    isThrottled: all.some(({ kind }) => kind === 'cpu-throttled'),
    places: findings.filter(
      ({ kind, mechanism }) => kind === 'loop-blocked' && mechanism !== 'starved',
    ).length,
    inCollector:
      doingOf(main) === 'collecting' || main.where.some((place) => GC_FRAME.test(place.function)),
    grows: all.find(({ kind }) => kind === 'memory-leak'),
  };
}

function blockingCall(facts: Facts): Explanation {
  const { onCpu, mechanism, doing, place } = facts;
  return {
    mechanism: 'blocking-call',
    claim: `${place === '' ? 'a callback' : place} waits on the loop's own thread for something outside${doing === 'outside' ? ` (${mechanism})` : ''}`,
    confirming:
      'in a thread of its own, or replaced by its asynchronous form, the loop turns again',
    refuting: 'replaced by a stub that answers at once, the loop stands still as long',
    test: (self) =>
      `trace repro new ${self} --call module:function && trace repro isolate <folder> --mock module:callable`,
    prior: PRIOR.USUAL,
    clues: [
      ...either(doing === 'outside', {
        summary: `the thread was seen in ${mechanism ?? ''}`,
        weight: SURE,
      }),
      ...either(
        onCpu === null || facts.isStarved ? null : onCpu <= HARDLY,
        { summary: `it used a core for ${percentText(onCpu ?? 0)} of the time`, weight: SOME },
        onCpu !== null && onCpu >= MOSTLY
          ? { summary: `it used a core for ${percentText(onCpu)} of the time`, weight: -STRONG }
          : null,
      ),
      ...notOwnFault(facts),
    ],
  };
}

function compute(subject: Subject, facts: Facts): Explanation {
  const { onCpu, mechanism, doing, place } = facts;
  const isQuadratic = mechanism === 'quadratic work';
  return {
    mechanism: 'computation',
    claim: `${place === '' ? 'a callback' : place} computes on the loop's own thread${isQuadratic ? ', by more than its input grows' : ''}`,
    confirming: 'its time grows with the size of its input, and shrinks on a faster core',
    refuting: 'with a tiny input it takes as long',
    test: () => `trace profile ${pidOf(subject)} --mode blocked`,
    prior: PRIOR.USUAL,
    clues: [
      ...either(doing === 'computing', {
        summary: 'the thread was on a core while the loop stood still',
        weight: STRONG,
      }),
      ...either(
        onCpu === null || facts.isStarved ? null : onCpu >= MOSTLY,
        { summary: `it used a core for ${percentText(onCpu ?? 0)} of the time`, weight: SOME },
        onCpu !== null && onCpu <= HARDLY
          ? {
              summary: `it used a core for ${percentText(onCpu)} of the time only`,
              weight: -STRONG,
            }
          : null,
      ),
      ...either(facts.inCollector, { summary: 'the collector was running', weight: -SOME }),
      ...notOwnFault(facts),
    ],
  };
}

function notOwnFault({ isStarved }: Facts): Explanation['clues'] {
  return either(isStarved, {
    summary: 'it waited for a core all that time',
    weight: -SURE,
  });
}

function lock(subject: Subject, { mechanism, doing, onCpu }: Facts): Explanation {
  const contended = subject.all.find(({ kind }) => kind === 'lock-contention');
  return {
    mechanism: 'lock',
    claim: 'the loop waits for a lock, or the GIL, that another thread holds',
    confirming: 'without the other thread, or with shorter critical sections, it turns',
    refuting: 'alone in its process it stands still as long',
    test: () => `trace profile ${pidOf(subject)} --mode gil`,
    prior: PRIOR.SELDOM,
    clues: [
      ...either(doing === 'lock', {
        summary: 'the thread was seen waiting for a lock',
        weight: SURE,
      }),
      ...either(contended !== undefined, {
        summary: contended?.summary ?? '',
        weight: STRONG,
      }),
      ...either(onCpu !== null && onCpu >= MOSTLY, {
        summary: 'it was on a core, not waiting',
        weight: -STRONG,
      }),
      ...either(doing === 'outside', {
        summary: `it was in ${mechanism ?? ''}, not at a lock`,
        weight: -SOME,
      }),
    ],
  };
}

function collection(subject: Subject, { inCollector, places, grows, doing }: Facts): Explanation {
  return {
    mechanism: 'garbage-collection',
    claim: 'the garbage collector stops the loop, wherever it happens to be',
    confirming:
      'the stretches have no place in common, grow with the heap, and go with gc.disable() or a larger heap',
    refuting: 'they are always in the same function',
    test: () => `trace heap ${pidOf(subject)} --interval 30`,
    prior: PRIOR.PASSING,
    clues: [
      ...either(inCollector, { summary: 'the collector was seen on the stack', weight: SURE }),
      ...either(
        places > 0 ? places >= SCATTERED : null,
        { summary: `it stood still in ${places} places`, weight: SOME },
        { summary: 'it stood still in one place', weight: -SOME },
      ),
      ...either(grows !== undefined, { summary: 'its memory grows', weight: HINT }),
      ...either(doing === 'outside' || doing === 'lock', {
        summary: 'it was waiting, which a collection does not',
        weight: -STRONG,
      }),
    ],
  };
}

function starved(subject: Subject, facts: Facts): Explanation {
  const { waitForCore, isThrottled, isStarved } = facts;
  return {
    mechanism: 'starved',
    claim: isThrottled
      ? 'it is stopped by the CPU quota of its control group'
      : 'others on the machine have the core that it needs',
    confirming: 'with a core of its own (taskset, a higher quota) it turns',
    refuting: 'on an idle machine it stands still as long',
    test: () => `trace attach ${pidOf(subject)} -d 60s   # while the machine is otherwise idle`,
    prior: PRIOR.SOMETIMES,
    clues: [
      ...either(isStarved, { summary: 'it waited for a core for most of that time', weight: SURE }),
      ...either(
        waitForCore === null || isStarved ? null : waitForCore >= NOTABLE_WAIT,
        {
          summary: `it waited for a core for ${percentText(waitForCore ?? 0)} of that time`,
          weight: SOME,
        },
        { summary: 'it hardly waited for a core', weight: -STRONG },
      ),
      ...either(isThrottled, {
        summary: 'its control group was stopped by its quota',
        weight: SOME,
      }),
    ],
  };
}

function spin(subject: Subject): Explanation {
  const iterations = measured(subject.main, 'iterations_per_s');
  const events = measured(subject.main, 'io_events_per_s');
  return {
    mechanism: 'loop-without-wait',
    claim: `${placeText(subject.main) || 'a callback'} asks to be run again at once, and never waits`,
    confirming: 'with a short sleep between its turns the core is free and nothing else changes',
    refuting: 'it stops when the requests stop',
    test: () => `trace profile ${pidOf(subject)} -d 10s`,
    prior: PRIOR.USUAL,
    clues: [
      ...either(iterations === null ? null : (events ?? 0) < iterations / 100, {
        summary: `${Math.round(iterations ?? 0)} turns a second, and nothing arrived in them`,
        weight: SURE,
      }),
      ...either(iterations === null, {
        summary: 'the loop itself was innermost in many stacks, and none handled I/O',
        weight: STRONG,
      }),
    ],
  };
}

function busy(subject: Subject, { waitForCore }: Facts): Explanation {
  return {
    mechanism: 'busy',
    claim: 'it has as much to do as a core can: this is load',
    confirming: 'the CPU time follows the requests, and goes when they stop',
    refuting: 'it uses a core with no request at all',
    test: () => `trace attach ${pidOf(subject)} -d 60s   # with the load taken away`,
    prior: PRIOR.SOMETIMES,
    clues: [
      ...either(
        subject.all.some(({ kind }) => kind === 'saturation'),
        {
          summary: 'requests were queueing',
          weight: STRONG,
        },
      ),
      { summary: 'hardly anything arrived meanwhile', weight: -STRONG },
      ...either(waitForCore !== null && waitForCore >= NOTABLE_WAIT, {
        summary: 'others wanted the core too',
        weight: HINT,
      }),
    ],
  };
}
