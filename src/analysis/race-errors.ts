import { type DoseGroup, growthPValue, shareOf } from '../core/count-trend.ts';
import { clientLimits } from '../core/load-client.ts';
import { saturationOf } from '../core/load-saturation.ts';
import type { LoadResult, StageResult } from '../core/load-types.ts';
import { percentText } from '../core/text.ts';
import type { Detector, Evidence, Ratio, UnnumberedFinding } from '../core/types.ts';
import { formatNumber, formatProbability } from '../core/units.ts';
import { recordedLoad } from './load-result.ts';

/**
 * TRC117 race: failures of one kind whose share grows with how many requests are under way at once. Whoever is alone does not race; what fails
 * among many and not alone shares something. Refusals for want of room (429, 503, timeouts) grow with load in a sound server and are left out. Assumed:
 * requests of all levels ask for the same, and fail independently of each other at one level.
 */

const CODE = 'TRC117';
/** Of all kinds tested together (Bonferroni): one run in a hundred without any trend is said to have one. */
const LEVEL: Ratio = 0.01;
/** Fewer failures are an accident, whatever the levels. */
const LEAST_FAILURES = 5;
/** The share at the highest level is this many times that of the lowest, or the difference is no matter of concurrency. */
const LEAST_FACTOR = 2;
/** Levels that differ by less are one level. */
const LEAST_LEVELS_FACTOR = 1.5;
/** How a server, or what stands before it, says that it has no room, or does not answer in time. */
const NO_ROOM: ReadonlySet<string> = new Set(['408', '429', '502', '503', '504', '529']);
const NO_ROOM_CLASSES =
  /^(?:client|dns|refused|unreachable|tls|timeout\.|stall|unfinished|reset|http\.)/;

interface Kind {
  readonly name: string;
  readonly groups: readonly DoseGroup[];
  readonly p: Ratio;
}

export const raceErrors: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const result = recordedLoad(view);
    if (result === null) return;
    const stages = result.stages.filter(({ requests }) => requests.ok + requests.failed > 0);
    const scores = stages.map(({ inFlight }) => inFlight.mean);
    if (!(Math.max(...scores) >= Math.min(...scores) * LEAST_LEVELS_FACTOR)) return;
    const names = [...new Set(stages.flatMap((stage) => [...failuresOf(stage).keys()]))];
    const found = names
      .map((name) => kindOf(name, stages))
      .filter((kind) => kind.p <= LEVEL / names.length && isPlain(kind))
      .sort((a, b) => a.p - b.p);
    const [first] = found;
    if (first !== undefined) yield finding(result, stages, { first, found });
  },
};

/** Failures by exact status, or by class where none came; those for want of room are left out. */
function failuresOf({ requests }: StageResult): ReadonlyMap<string, number> {
  const statuses = Object.entries(requests.statuses).filter(([status]) => !NO_ROOM.has(status));
  const classes = Object.entries(requests.errors).filter(([name]) => !NO_ROOM_CLASSES.test(name));
  return new Map([...statuses, ...classes]);
}

function kindOf(name: string, stages: readonly StageResult[]): Kind {
  const groups = stages
    .map((stage) => ({
      score: stage.inFlight.mean,
      hits: failuresOf(stage).get(name) ?? 0,
      n: stage.requests.ok + stage.requests.failed,
    }))
    .sort((a, b) => a.score - b.score);
  return { name, groups, p: growthPValue(groups) };
}

function isPlain({ groups }: Kind): boolean {
  const [low, high] = [groups[0], groups.at(-1)];
  const failures = groups.reduce((sum, { hits }) => sum + hits, 0);
  if (low === undefined || high === undefined || failures < LEAST_FAILURES) return false;
  return shareOf(high).share >= shareOf(low).share * LEAST_FACTOR && high.hits > 0;
}

function finding(
  result: LoadResult,
  stages: readonly StageResult[],
  { first, found }: { readonly first: Kind; readonly found: readonly Kind[] },
): UnnumberedFinding {
  const [low, high] = [first.groups[0], first.groups.at(-1)];
  const isFull = saturationOf(result, clientLimits(result)).stages.some(
    ({ behind }) => behind !== null,
  );
  const [at, most] = [low, high].map((group) => shareOf(group ?? { score: 0, hits: 0, n: 0 }));
  const what = /^\d+$/.test(first.name)
    ? `answers with status ${first.name}`
    : `${first.name} errors`;
  return {
    code: CODE,
    kind: 'race',
    mechanism: 'errors-by-concurrency',
    severity: isFull ? 'note' : 'warning',
    // A pool that runs out among many fails like a race.
    confidence: isFull ? 'inconclusive' : 'likely',
    pid: null,
    summary: `${what} grow with the requests under way: ${percentText(at?.share ?? 0)} at ${formatNumber(low?.score ?? 0)} at once, ${percentText(most?.share ?? 0)} at ${formatNumber(high?.score ?? 0)}${isFull ? '; the server was full, too' : ''}`,
    where: [],
    evidence: [
      evidenceOf(first, stages),
      ...found.slice(1).map((kind) => evidenceOf(kind, stages)),
    ],
    measure: {
      lowest_ratio: at?.share ?? 0,
      highest_ratio: most?.share ?? 0,
      highest_low_ratio: most?.low ?? 0,
      failed_count: first.groups.reduce((sum, { hits }) => sum + hits, 0),
      p_ratio: first.p,
    },
    remedy:
      'Something is shared between requests: a cache, a session, a connection, a global. Show it by itself: trace repro new <recording>#H1, and look for an await between reading and writing it.',
  };
}

function evidenceOf({ name, groups, p }: Kind, stages: readonly StageResult[]): Evidence {
  const levels = groups.map((group) => {
    const { share, low, high } = shareOf(group);
    const label = stages.find(({ inFlight }) => inFlight.mean === group.score)?.label ?? '';
    return { label, in_flight: group.score, failed: group.hits, of: group.n, share, low, high };
  });
  const text = levels
    .map(
      ({ in_flight: score, failed, of, low, high }) =>
        `${failed} of ${of} at ${formatNumber(score)} (${percentText(low)} to ${percentText(high)})`,
    )
    .join(', ');
  return {
    kind: 'dose',
    summary: `${name}: ${text}; a share that does not depend on it grows so with p ${formatProbability(p)} (Cochran–Armitage)`,
    data: { error: name, levels, p },
  };
}
