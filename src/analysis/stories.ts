import type { FindingKind, MechanismOf, UnnumberedFinding, UnnumberedOf } from '../core/types.ts';
import { SEVERITY_RANK } from './processes.ts';

/**
 * Findings that are one story: a cause, and what came of it. Each rule names two kinds and what they must share (a process, a line of code, a
 * mechanism), because two troubles in one run are often two troubles.
 */

type Unnumbered = UnnumberedFinding;

/** A finding with the one it came of, both by their places in the list. */
export interface Told {
  readonly finding: Unnumbered;
  readonly because: { readonly cause: number; readonly why: string } | null;
}

interface Rule {
  readonly holds: (cause: Unnumbered, effect: Unnumbered) => boolean;
  /** As a sentence goes on after `because of F1:`. */
  readonly why: string;
}

interface RuleOf<Cause extends FindingKind, Effect extends FindingKind> {
  readonly cause: Cause;
  readonly effect: Effect;
  readonly shares: (cause: UnnumberedOf<Cause>, effect: UnnumberedOf<Effect>) => boolean;
  readonly why: string;
}

function rule<Cause extends FindingKind, Effect extends FindingKind>({
  cause,
  effect,
  shares,
  why,
}: RuleOf<Cause, Effect>): Rule {
  return { why, holds: (a, b) => isOf(a, cause) && isOf(b, effect) && shares(a, b) };
}

function isOf<Kind extends FindingKind>(one: Unnumbered, kind: Kind): one is UnnumberedOf<Kind> {
  return one.kind === kind;
}

const sameProcess = (a: Unnumbered, b: Unnumbered): boolean =>
  pidsOf(a).some((pid) => pidsOf(b).includes(pid));
/** The innermost place: function and file; another line of it is the same place. */
const samePlace = (a: Unnumbered, b: Unnumbered): boolean =>
  a.where[0] !== undefined &&
  a.where[0].function === b.where[0]?.function &&
  a.where[0].file === b.where[0].file;
/** Of a load run on one watched server, what requests saw is of that server. */
const always = (): boolean => true;

/**
 * How a request fails that was waiting, and one whose server is gone; every class is one of these.
 */
const FAILED: Readonly<
  Record<MechanismOf<'request-errors'>, 'waiting' | 'gone' | 'mixed-up' | 'else'>
> = {
  'timeout.connect': 'waiting',
  'timeout.first_byte': 'waiting',
  'timeout.total': 'waiting',
  stall: 'waiting',
  unfinished: 'waiting',
  'http.5xx': 'waiting',
  refused: 'gone',
  reset: 'gone',
  cut: 'gone',
  unreachable: 'gone',
  crosstalk: 'mixed-up',
  dns: 'else',
  tls: 'else',
  'http.4xx': 'else',
  'http.429': 'else',
  'http.other': 'else',
  malformed: 'else',
  error_event: 'else',
  empty: 'else',
};
const failed = ({ mechanism }: UnnumberedOf<'request-errors'>) =>
  mechanism === null ? 'else' : FAILED[mechanism];

/** What the loop waited for that another finding may be about. */
function heldUpBy({
  mechanism,
}: UnnumberedOf<'loop-blocked'>): 'lock' | 'core' | 'memory' | 'more-work' | null {
  switch (mechanism) {
    case 'lock':
    case 'gil':
      return 'lock';
    case 'starved':
      return 'core';
    case 'gc':
    case 'page-fault':
      return 'memory';
    case 'quadratic work':
      return 'more-work';
    case 'sleep':
    case 'file-io':
    case 'network-io':
    case 'subprocess':
    case 'pipe':
    case 'dns':
    case 'nested-poll':
    case 'cpu':
    case 'import':
    case 'unknown':
    case null:
      return null;
    default:
      mechanism satisfies never;
      return null;
  }
}

/** What requests waited for that another finding may be about. */
function slowFor({
  mechanism,
}: UnnumberedOf<'slow-requests'>): 'gpu' | 'room' | 'prefill' | 'core' | null {
  switch (mechanism) {
    case 'sw_power_cap':
    case 'sw_thermal_slowdown':
    case 'hw_thermal_slowdown':
    case 'hw_power_brake_slowdown':
    case 'hw_slowdown':
      return 'gpu';
    case 'queue':
    case 'kv-cache':
      return 'room';
    case 'long-prefill':
      return 'prefill';
    case 'starved':
      return 'core';
    case 'sleep':
    case 'file-io':
    case 'network-io':
    case 'subprocess':
    case 'pipe':
    case 'dns':
    case 'lock':
    case 'gil':
    case 'nested-poll':
    case 'cpu':
    case 'gc':
    case 'page-fault':
    case 'unknown':
    case 'not-on-the-loop':
    case null:
      return null;
    default:
      mechanism satisfies never;
      return null;
  }
}

const ranOutOfMemory = ({ mechanism }: UnnumberedOf<'process-exit'>): boolean =>
  mechanism === 'out of memory' || mechanism === 'out of memory (cgroup)';

/** The first that holds is told: what is nearest to the effect stands first. */
const RULES: readonly Rule[] = [
  rule({
    cause: 'loop-blocked',
    effect: 'slow-requests',
    shares: (a, b) => samePlace(a, b) || (heldUpBy(a) === 'core' && slowFor(b) === 'core'),
    why: 'they waited while the event loop did not turn',
  }),
  rule({
    cause: 'gpu-throttled',
    effect: 'slow-requests',
    shares: (_, b) => slowFor(b) === 'gpu',
    why: 'they waited while the clocks of the GPU were held down',
  }),
  rule({
    cause: 'saturation',
    effect: 'slow-requests',
    shares: (a, b) =>
      slowFor(b) === 'room' || (slowFor(b) === 'prefill' && a.mechanism === 'long-prefill'),
    why: 'they waited for their turn',
  }),
  rule({
    cause: 'lock-contention',
    effect: 'loop-blocked',
    shares: (a, b) => sameProcess(a, b) && heldUpBy(b) === 'lock',
    why: 'the loop waited for that lock',
  }),
  rule({
    cause: 'cpu-throttled',
    effect: 'loop-blocked',
    shares: (a, b) => sameProcess(a, b) && heldUpBy(b) === 'core',
    why: 'the control group had used up its CPU time',
  }),
  rule({
    cause: 'memory-leak',
    effect: 'loop-blocked',
    shares: (a, b) => sameProcess(a, b) && heldUpBy(b) === 'memory',
    why: 'there is more and more to look through for the garbage collector, or to bring back from swap',
  }),
  rule({
    cause: 'loop-blocked',
    effect: 'latency-drift',
    shares: (a) => heldUpBy(a) === 'more-work',
    why: 'the blocks become longer in the same way',
  }),
  rule({
    cause: 'memory-leak',
    effect: 'memory-limit',
    shares: sameProcess,
    why: 'its growth is what fills the control group',
  }),
  rule({
    cause: 'memory-limit',
    effect: 'process-exit',
    shares: (_, b) => ranOutOfMemory(b),
    why: 'the kernel killed it at the limit',
  }),
  rule({
    cause: 'memory-leak',
    effect: 'process-exit',
    shares: (a, b) => sameProcess(a, b) && ranOutOfMemory(b),
    why: 'it grew until the kernel killed it',
  }),
  rule({
    cause: 'task-leak',
    effect: 'memory-leak',
    shares: sameProcess,
    why: 'each task holds its frame and what is in it',
  }),
  rule({
    cause: 'deadlock',
    effect: 'task-leak',
    shares: sameProcess,
    why: 'what waits behind it never ends',
  }),
  rule({
    cause: 'deadlock',
    effect: 'wedge',
    shares: sameProcess,
    why: 'nothing can come out of what waits for itself',
  }),
  rule({
    cause: 'deadlock',
    effect: 'request-errors',
    shares: (_, b) => failed(b) === 'waiting',
    why: 'requests that need it are never answered',
  }),
  rule({
    cause: 'wedge',
    effect: 'request-errors',
    shares: (_, b) => failed(b) === 'waiting',
    why: 'nothing came out of the server',
  }),
  rule({
    cause: 'process-exit',
    effect: 'request-errors',
    shares: (a, b) => SEVERITY_RANK[a.severity] < SEVERITY_RANK.note && failed(b) === 'gone',
    why: 'the process that would have answered was gone',
  }),
  rule({
    cause: 'crosstalk',
    effect: 'request-errors',
    shares: (_, b) => failed(b) === 'mixed-up',
    why: 'an answer of another request is no answer',
  }),
  rule({
    cause: 'crosstalk',
    effect: 'race',
    shares: always,
    why: 'what is shared between requests is mixed up among many',
  }),
  rule({
    cause: 'race',
    effect: 'request-errors',
    shares: always,
    why: 'they are the failures that grow with concurrency',
  }),
];

/**
 * The findings, causes before what came of them, each story where its gravest part would stand. No finding has two causes, and none is its own
 * through others. Notes that say only what could not be told begin no story.
 */
export function tell(findings: readonly Unnumbered[]): readonly Told[] {
  const causes = findings.map((effect, i) => causeOf(findings, effect, i));
  cutCircles(causes);
  const order: number[] = [];
  const add = (i: number): void => {
    order.push(i);
    causes.forEach((cause, effect) => {
      if (cause?.cause === i) add(effect);
    });
  };
  findings.forEach((_, i) => {
    const root = rootOf(causes, i);
    if (!order.includes(root)) add(root);
  });
  return order.flatMap((i) => {
    const finding = findings[i];
    const because = causes[i] ?? null;
    if (finding === undefined) return [];
    return {
      finding,
      because: because && { ...because, cause: order.indexOf(because.cause) },
    };
  });
}

type Cause = { readonly cause: number; readonly why: string } | null;

function causeOf(findings: readonly Unnumbered[], effect: Unnumbered, own: number): Cause {
  for (const { holds, why } of RULES) {
    const cause = findings.findIndex(
      (one, i) => i !== own && one.confidence !== 'inconclusive' && holds(one, effect),
    );
    if (cause >= 0) return { cause, why };
  }
  return null;
}

/** The rules make none today; a new one must not hang a report. */
function cutCircles(causes: Cause[]): void {
  for (const [i] of causes.entries()) {
    const seen = new Set([i]);
    for (let at = causes[i]; at != null; at = causes[at.cause] ?? null) {
      if (seen.has(at.cause)) {
        causes[i] = null;
        break;
      }
      seen.add(at.cause);
    }
  }
}

function rootOf(causes: readonly Cause[], from: number): number {
  let root = from;
  for (let at = causes[from]; at != null; at = causes[root]) root = at.cause;
  return root;
}

function pidsOf({ pid, pids }: Unnumbered): readonly number[] {
  return pids ?? (pid === null ? [] : [pid]);
}
