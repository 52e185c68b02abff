import type { HypothesisMechanism } from '../../core/hypothesis.ts';
import type { Finding, FindingOf } from '../../core/types.ts';
import {
  either,
  type Explanation,
  HINT,
  measured,
  pidOf,
  placeText,
  PRIOR,
  SOME,
  STRONG,
  type Subject,
  SURE,
} from './explanation.ts';

/** Work is there and nothing moves: who waits for whom. */

export function explainStuck(subject: Subject): readonly Explanation[] {
  const where = placeText(subject.main);
  const at = where === '' ? '' : `, at ${where}`;
  const seen = seenIn(subject.main);
  const all = [
    lockOrder(seen, at),
    selfLock(seen, at),
    poolExhaustion(seen, at),
    lostWakeUp(seen, at),
    dependency(seen),
    slowNotStuck(subject.main),
  ];
  return all.map((one) => ({ ...one, test: testOf(one.mechanism, subject) }));
}

/** What the finding says of the waits; null where it cannot tell. */
type Seen = 'circle' | 'one-lock' | 'itself' | 'pool' | 'lost' | 'outside' | null;
type Untested = Omit<Explanation, 'test'>;

function seenIn(main: Finding): Seen {
  if (main.kind === 'deadlock') return seenInDeadlock(main);
  return main.kind === 'wedge' ? seenInWedge(main) : null;
}

function seenInDeadlock({ mechanism }: FindingOf<'deadlock'>): Seen {
  switch (mechanism) {
    case 'lock order':
    case 'transactions in opposite order':
      return 'circle';
    case 'lock taken twice':
    case 'loop waits for itself':
      return 'itself';
    case 'pool exhaustion':
      return 'pool';
    case 'lost wake-up':
      return 'lost';
    case null:
      return null;
    default:
      mechanism satisfies never;
      return null;
  }
}

function seenInWedge({ mechanism }: FindingOf<'wedge'>): Seen {
  switch (mechanism) {
    case 'kernel never returned':
    case 'spinning':
      return 'outside';
    case 'lost wake-up':
      return 'lost';
    case 'deadlock':
      return 'one-lock';
    case 'stopped process':
    case 'sleeping':
    case 'unknown':
    case null:
      return null;
    default:
      mechanism satisfies never;
      return null;
  }
}

function lockOrder(seen: Seen, at: string): Untested {
  return {
    mechanism: 'lock-order',
    claim: `two of them hold what the other waits for${at}`,
    confirming: 'taking the locks in one order everywhere ends it',
    refuting: 'it stands still with one task, or one thread, too',
    prior: PRIOR.RARER,
    clues: [
      ...either(
        seen === 'circle',
        { summary: 'a cycle of waits was seen', weight: SURE },
        seen === 'one-lock' ? null : { summary: 'no cycle of waits was seen', weight: -SOME },
      ),
      ...either(seen === 'one-lock', {
        summary: 'one process waits for a lock, and the others for it',
        weight: STRONG,
      }),
    ],
  };
}

function selfLock(seen: Seen, at: string): Untested {
  return {
    mechanism: 'self-lock',
    claim: `one of them waits for something that only it can provide: a lock it already holds, or its own event loop${at}`,
    confirming: 'with a re-entrant lock, or with the result awaited, it goes on',
    refuting: 'another thread, or another task, has what it waits for',
    prior: PRIOR.RARER,
    clues: either(
      seen === 'itself',
      { summary: 'it was seen to wait for itself', weight: SURE },
      { summary: 'nobody was seen to wait for itself', weight: -SOME },
    ),
  };
}

function poolExhaustion(seen: Seen, at: string): Untested {
  return {
    mechanism: 'pool-exhaustion',
    claim: `everything in a pool is taken, and those who hold it wait for more of it${at}`,
    confirming:
      'a larger pool moves the number of requests at which it stops; releasing earlier ends it',
    refuting: 'it stops at the same point with a pool twice as large',
    prior: PRIOR.RARER,
    clues: either(
      seen === 'pool',
      { summary: 'all of a pool was taken while others waited for it', weight: SURE },
      { summary: 'no pool was seen to be empty', weight: -SOME },
    ),
  };
}

function lostWakeUp(seen: Seen, at: string): Untested {
  return {
    mechanism: 'lost-wakeup',
    claim: `what they wait for has happened already, and nobody tells them${at}`,
    confirming: 'setting the event, or notifying all, by hand lets it go on',
    refuting: 'what they wait for is still to come',
    prior: PRIOR.RARER,
    clues: either(
      seen === 'lost',
      { summary: 'nothing was left that would wake them', weight: STRONG + HINT },
      { summary: 'something was still at work that might wake them', weight: -HINT },
    ),
  };
}

function dependency(seen: Seen): Untested {
  return {
    mechanism: 'dependency',
    claim: 'something outside (a database, another server, a disk, a GPU) does not answer',
    confirming: 'asked directly, it does not answer either',
    refuting: 'asked directly, it answers at once',
    prior: PRIOR.USUAL,
    clues: [
      ...either(seen === 'outside', {
        summary: 'a call outside was seen that did not return',
        weight: STRONG + HINT,
      }),
      ...either(seen === 'circle' || seen === 'pool' || seen === 'itself', {
        summary: 'those who wait, wait for each other',
        weight: -STRONG,
      }),
    ],
  };
}

function slowNotStuck({ confidence }: Finding): Untested {
  return {
    mechanism: 'slow-not-stuck',
    claim: 'it moves, but slower than anybody waited',
    confirming: 'longer watched, something finishes',
    refuting: 'for minutes nothing finishes',
    prior: PRIOR.SELDOM,
    clues: either(confidence === 'confirmed', {
      summary: 'nothing at all moved for as long as was watched',
      weight: -STRONG,
    }),
  };
}

/**
 * What is within the program can be made to happen again; for what is outside, or slow, one has to
 * watch longer.
 */
function testOf(mechanism: HypothesisMechanism, subject: Subject): Explanation['test'] {
  if (mechanism !== 'dependency' && mechanism !== 'slow-not-stuck')
    return (self) => `trace repro new ${self} --call module:function --oracle no-progress`;
  const { main } = subject;
  const duration = measured(main, 'duration_s') ?? measured(main, 'stalled_s');
  const again =
    duration === null ? '-d 2m' : `-d ${Math.min(86_400, Math.max(60, Math.round(duration * 3)))}s`;
  return () => `trace attach ${pidOf(subject)} ${again}`;
}
