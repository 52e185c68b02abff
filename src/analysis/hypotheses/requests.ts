import type { Finding, FindingKind, FindingOf, MechanismOf } from '../../core/types.ts';
import {
  either,
  type Explanation,
  HINT,
  pidOf,
  placeText,
  SOME,
  STRONG,
  type Subject,
  SURE,
  PRIOR,
} from './explanation.ts';

/** Requests are slow, or fail. */

/** Statuses of a server that has too much to do; 529 is what some of them call overloaded. */
const REFUSALS: ReadonlySet<number> = new Set([429, 503, 529]);
/** How a connection ends when the process behind it does. */
const CUT = [
  'cut',
  'reset',
  'refused',
  'unreachable',
] as const satisfies readonly MechanismOf<'request-errors'>[];
/** Findings of requests that fail; with the others they are slow. */
const FAILING: ReadonlySet<FindingKind> = new Set([
  'request-errors',
  'race',
  'crosstalk',
  'process-exit',
]);

export function explainRequests(subject: Subject): readonly Explanation[] {
  const { main, all } = subject;
  const of = <Kind extends FindingKind>(kind: Kind): FindingOf<Kind> | undefined =>
    all.find((one): one is FindingOf<Kind> => one.kind === kind);
  const facts: Facts = {
    client: of('client-saturated'),
    saturated: of('saturation'),
    exited: of('process-exit'),
    blocked: all.find(({ kind, severity }) => kind === 'loop-blocked' && severity !== 'note'),
    waited: all.find(({ kind, where }) => kind === 'slow-requests' && where.length > 0),
    leaks: of('memory-leak'),
    drift: of('latency-drift'),
    mixes: of('crosstalk') ?? of('race'),
    failures: failuresOf(of('request-errors')),
    isLoad: subject.view.start.command === 'load',
    fails: FAILING.has(main.kind),
  };
  const both = [server(facts), client(facts), loop(subject, facts)];
  return facts.fails
    ? [...both, race(subject, facts), crash(subject, facts)]
    : [...both, ageing(subject, facts)];
}

interface Facts {
  readonly client: Finding | undefined;
  readonly saturated: Finding | undefined;
  readonly exited: Finding | undefined;
  readonly blocked: Finding | undefined;
  /** Slow requests that coincide with a place. */
  readonly waited: Finding | undefined;
  readonly leaks: Finding | undefined;
  readonly drift: Finding | undefined;
  readonly mixes: Finding | undefined;
  /** How requests failed; null where none did. */
  readonly failures: Failures | null;
  readonly isLoad: boolean;
  /** Whether requests fail; else they are slow. */
  readonly fails: boolean;
}

interface Failures {
  /** Some were refused by a server that has too much to do. */
  readonly areRefused: boolean;
  /** Some failed inside of the server, for another reason than that. */
  readonly areInside: boolean;
  /** Some connections ended, or came to nothing. */
  readonly areCut: boolean;
}

function failuresOf(errors: FindingOf<'request-errors'> | undefined): Failures | null {
  if (errors?.facts === undefined) return null;
  const { classes, statuses } = errors.facts;
  const areRefused =
    (classes['http.429'] ?? 0) > 0 || statuses.some((status) => REFUSALS.has(status));
  return {
    areRefused,
    areInside: (classes['http.5xx'] ?? 0) > 0 && !areRefused,
    areCut: CUT.some((one) => (classes[one] ?? 0) > 0),
  };
}

function server(facts: Facts): Explanation {
  return {
    mechanism: 'saturation',
    claim: 'the server has more to do than it can: requests wait in a queue',
    confirming: 'at half the rate nothing is slow and nothing fails',
    refuting: 'one request at a time is as slow, or fails as often',
    test: () => 'trace load <url> --sweep 1,2,4,8,16   # where does it bend?',
    prior: PRIOR.USUAL,
    clues: [
      ...either(
        facts.saturated !== undefined,
        { summary: facts.saturated?.summary ?? '', weight: STRONG + HINT },
        facts.isLoad ? { summary: 'it kept up with the rate of requests', weight: -SOME } : null,
      ),
      ...either(facts.failures?.areRefused ?? null, {
        summary: 'it refused requests, saying that there are too many',
        weight: STRONG,
      }),
      ...either(facts.mixes !== undefined, {
        summary: 'too much load makes answers late, not wrong',
        weight: -SOME,
      }),
    ],
  };
}

function client(facts: Facts): Explanation {
  return {
    mechanism: 'client',
    claim: 'the client was too slow: what was measured is its own delay',
    confirming: 'from another machine, or with more workers, the numbers are better',
    refuting: 'the server itself says the same times (its metrics, its spans)',
    test: () => 'trace load <url> --workers 2   # the same load from two threads',
    prior: PRIOR.SELDOM,
    clues: either(
      facts.client !== undefined,
      { summary: facts.client?.summary ?? '', weight: SURE + SOME },
      facts.isLoad
        ? { summary: 'the client was on time, and says so', weight: -STRONG }
        : { summary: 'nothing was measured at a client', weight: -SOME },
    ),
  };
}

function loop(subject: Subject, facts: Facts): Explanation {
  const cause = facts.waited ?? facts.blocked;
  const place = cause === undefined ? '' : placeText(cause);
  return {
    mechanism: 'blocked-loop',
    claim: `the server's event loop stands still${place === '' ? '' : `, in ${place}`}, and all requests with it`,
    confirming: 'requests that are slow began while it stood still, others did not',
    refuting: 'the loop turns, and the same requests are slow',
    test: () => `trace load <url> --attach ${pidOf(subject)}`,
    prior: PRIOR.RARER,
    clues: [
      ...either(facts.waited !== undefined, { summary: facts.waited?.summary ?? '', weight: SURE }),
      ...either(facts.blocked !== undefined, {
        summary: facts.blocked?.summary ?? '',
        weight: SOME,
      }),
      ...either(facts.waited === undefined && facts.blocked === undefined, {
        summary: 'no loop was seen to stand still',
        weight: -SOME,
      }),
      ...either(facts.fails && facts.mixes !== undefined, {
        summary: 'a loop that stands still makes answers late, not wrong',
        weight: -SOME,
      }),
    ],
  };
}

function race(subject: Subject, facts: Facts): Explanation {
  return {
    mechanism: 'race',
    claim: 'requests disturb each other: something shared is used by two at a time',
    confirming: 'alone each of them is answered rightly; the rate of errors rises with concurrency',
    refuting: 'one at a time fails as often',
    test: (self) =>
      `trace repro new ${self} --traffic ${subject.recording} && trace repro run <folder>   # against concurrency 1`,
    prior: PRIOR.OFTEN_ELSE,
    clues: [
      ...either(facts.mixes !== undefined, { summary: facts.mixes?.summary ?? '', weight: SURE }),
      ...either(facts.failures?.areInside ?? null, {
        summary: 'it failed inside the server',
        weight: SOME,
      }),
      ...either(facts.exited !== undefined, {
        summary: 'a process ended: that alone explains failed requests',
        weight: -SOME,
      }),
    ],
  };
}

function crash(subject: Subject, { exited, failures }: Facts): Explanation {
  return {
    mechanism: 'crash',
    claim: 'a process of the server ended, and took its requests with it',
    confirming: 'its exit falls together with the errors',
    refuting: 'all processes lived through them',
    test: () => `trace attach ${pidOf(subject)} --follow-restarts -d 10m`,
    prior: PRIOR.SELDOM,
    clues: [
      ...either(
        exited !== undefined,
        { summary: exited?.summary ?? '', weight: SURE },
        { summary: 'no process was seen to end', weight: -HINT },
      ),
      ...either(failures?.areCut ?? null, {
        summary: 'connections were cut, reset or refused',
        weight: SOME,
      }),
    ],
  };
}

function ageing(subject: Subject, { drift, leaks }: Facts): Explanation {
  return {
    mechanism: 'ageing',
    claim: 'it gets slower the longer it runs: something that each request looks through grows',
    confirming: 'after a restart it is fast again, under the same load',
    refuting: 'freshly started it is as slow',
    test: () => `trace load <url> -d 10m --attach ${pidOf(subject)}   # then again after a restart`,
    prior: PRIOR.SELDOM,
    clues: [
      ...either(drift !== undefined, { summary: drift?.summary ?? '', weight: SURE }),
      ...either(leaks !== undefined, { summary: leaks?.summary ?? '', weight: SOME }),
      ...either(drift === undefined && leaks === undefined, {
        summary: 'nothing was seen to grow',
        weight: -SOME,
      }),
    ],
  };
}
