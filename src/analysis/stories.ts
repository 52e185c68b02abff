import type { Finding, FindingKind } from '../core/types.ts';
import { SEVERITY_RANK } from './processes.ts';

/**
 * Findings that are one story: a cause, and what came of it. Each rule names two kinds and what they must share (a process, a line of code, a
 * mechanism), because two troubles in one run are often two troubles.
 */

type Unnumbered = Omit<Finding, 'id' | 'because'>;

/** A finding with the one it came of, both by their places in the list. */
export interface Told {
  readonly finding: Unnumbered;
  readonly because: { readonly cause: number; readonly why: string } | null;
}

interface Rule {
  readonly cause: FindingKind;
  readonly effect: FindingKind;
  readonly shares: (cause: Unnumbered, effect: Unnumbered) => boolean;
  /** As a sentence goes on after `because of F1:`. */
  readonly why: string;
}

const sameProcess = (a: Unnumbered, b: Unnumbered): boolean =>
  pidsOf(a).some((pid) => pidsOf(b).includes(pid));
/** The innermost place: function and file; another line of it is the same place. */
const samePlace = (a: Unnumbered, b: Unnumbered): boolean =>
  a.where[0] !== undefined &&
  a.where[0].function === b.where[0]?.function &&
  a.where[0].file === b.where[0].file;
const sameMechanism = (a: Unnumbered, b: Unnumbered): boolean =>
  a.mechanism !== null && a.mechanism === b.mechanism;
const by = (mechanism: RegExp, one: Unnumbered): boolean => mechanism.test(one.mechanism ?? '');
/** Of a load run on one watched server, what requests saw is of that server. */
const always = (): boolean => true;

const OUT_OF_MEMORY = /out of memory|oom/i;
const LOST_CONNECTION = /^(?:refused|reset|cut|unreachable)$/;
const WAITED = /^(?:timeout\.|stall|unfinished|http\.5xx|50[0-9])/;

/** The first that holds is told: what is nearest to the effect stands first. */
const RULES: readonly Rule[] = [
  {
    cause: 'loop-blocked',
    effect: 'slow-requests',
    shares: (a, b) => samePlace(a, b) || (by(/^starved$/, a) && by(/^starved$/, b)),
    why: 'they waited while the event loop did not turn',
  },
  {
    cause: 'gpu-throttled',
    effect: 'slow-requests',
    shares: (a, b) => sameMechanism(a, b) || by(/power|thermal|slowdown/, b),
    why: 'they waited while the clocks of the GPU were held down',
  },
  {
    cause: 'saturation',
    effect: 'slow-requests',
    shares: (a, b) => sameMechanism(a, b) || by(/queue|kv|preempt/, b),
    why: 'they waited for their turn',
  },
  {
    cause: 'lock-contention',
    effect: 'loop-blocked',
    shares: (a, b) => sameProcess(a, b) && by(/lock|gil/i, b),
    why: 'the loop waited for that lock',
  },
  {
    cause: 'cpu-throttled',
    effect: 'loop-blocked',
    shares: (a, b) => sameProcess(a, b) && by(/^starved$/, b),
    why: 'the control group had used up its CPU time',
  },
  {
    cause: 'memory-leak',
    effect: 'loop-blocked',
    shares: (a, b) => sameProcess(a, b) && by(/^(?:gc|swap|major-fault)/, b),
    why: 'there is more and more to look through for the garbage collector, or to bring back from swap',
  },
  {
    cause: 'loop-blocked',
    effect: 'latency-drift',
    shares: (a) => by(/^quadratic work$/, a),
    why: 'the blocks become longer in the same way',
  },
  {
    cause: 'memory-leak',
    effect: 'memory-limit',
    shares: sameProcess,
    why: 'its growth is what fills the control group',
  },
  {
    cause: 'memory-limit',
    effect: 'process-exit',
    shares: (_, b) => by(OUT_OF_MEMORY, b),
    why: 'the kernel killed it at the limit',
  },
  {
    cause: 'memory-leak',
    effect: 'process-exit',
    shares: (a, b) => sameProcess(a, b) && by(OUT_OF_MEMORY, b),
    why: 'it grew until the kernel killed it',
  },
  {
    cause: 'task-leak',
    effect: 'memory-leak',
    shares: sameProcess,
    why: 'each task holds its frame and what is in it',
  },
  {
    cause: 'deadlock',
    effect: 'task-leak',
    shares: sameProcess,
    why: 'what waits behind it never ends',
  },
  {
    cause: 'deadlock',
    effect: 'wedge',
    shares: sameProcess,
    why: 'nothing can come out of what waits for itself',
  },
  {
    cause: 'deadlock',
    effect: 'request-errors',
    shares: (_, b) => by(WAITED, b),
    why: 'requests that need it are never answered',
  },
  {
    cause: 'wedge',
    effect: 'request-errors',
    shares: (_, b) => by(WAITED, b),
    why: 'nothing came out of the server',
  },
  {
    cause: 'process-exit',
    effect: 'request-errors',
    shares: (a, b) => SEVERITY_RANK[a.severity] < SEVERITY_RANK.note && by(LOST_CONNECTION, b),
    why: 'the process that would have answered was gone',
  },
  {
    cause: 'crosstalk',
    effect: 'request-errors',
    shares: (_, b) => by(/^crosstalk$/, b),
    why: 'an answer of another request is no answer',
  },
  {
    cause: 'crosstalk',
    effect: 'race',
    shares: always,
    why: 'what is shared between requests is mixed up among many',
  },
  {
    cause: 'race',
    effect: 'request-errors',
    shares: always,
    why: 'they are the failures that grow with concurrency',
  },
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
  for (const rule of RULES) {
    if (rule.effect !== effect.kind) continue;
    const cause = findings.findIndex(
      (one, i) =>
        i !== own &&
        one.kind === rule.cause &&
        one.confidence !== 'inconclusive' &&
        rule.shares(one, effect),
    );
    if (cause >= 0) return { cause, why: rule.why };
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
