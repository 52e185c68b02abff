import type {
  Clue,
  Hypothesis,
  HypothesisMechanism,
  HypothesisStatus,
} from '../../core/hypothesis.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { Finding, FindingKind, RecordingView } from '../../core/types.ts';
import { explainDevices } from './devices.ts';
import type { Explanation, Subject } from './explanation.ts';
import { explainGrowth } from './growth.ts';
import { explainRequests } from './requests.ts';
import { explainStalls } from './stalls.ts';
import { explainStuck } from './stuck.ts';

/**
 * From findings to rival explanations of them. A finding says what was seen; which of the things that look like it is the cause, it leaves open.
 * Each rival says what would confirm it, what would refute it and how to find out, and stands where the clues put it.
 */

/** People weigh three to five rivals; a list of ten is no help. */
const MOST = 5;

/** What a test said of an explanation, by its mechanism: a verdict of `trace repro`. */
export interface Verdict {
  /** Null: of an explanation that this version does not know, for which it says nothing. */
  readonly mechanism: HypothesisMechanism | null;
  readonly outcome: 'reproduced' | 'not-reproduced' | 'invalid';
  /** `4 of 20 trials, the control 0 of 20`. */
  readonly summary: string;
}

/** The longest path that Linux takes. */
const PATH_LIMIT = 4096;
/** A test decides more than any clue: as much as two sure ones. */
const DECIDES = 6;

export interface HypothesesOptions {
  /** The recording's folder; null when none was kept. */
  readonly recording: string | null;
  /** The finding to explain; the gravest unless it is named. */
  readonly finding?: string | null;
  readonly verdicts?: readonly Verdict[];
}

type Family = 'stuck' | 'growth' | 'stalls' | 'requests' | 'devices';

const FAMILY: Readonly<Record<FindingKind, Family>> = {
  deadlock: 'stuck',
  wedge: 'stuck',
  'memory-leak': 'growth',
  'fd-leak': 'growth',
  'socket-leak': 'growth',
  'thread-leak': 'growth',
  'task-leak': 'growth',
  'gpu-memory-leak': 'growth',
  'growth-inconclusive': 'growth',
  'loop-blocked': 'stalls',
  'cpu-spin': 'stalls',
  'cpu-throttled': 'stalls',
  'lock-contention': 'stalls',
  'slow-requests': 'requests',
  'request-errors': 'requests',
  saturation: 'requests',
  'client-saturated': 'requests',
  'latency-drift': 'requests',
  race: 'requests',
  crosstalk: 'requests',
  'process-exit': 'requests',
  'gpu-idle': 'devices',
  'gpu-throttled': 'devices',
  'gpu-fault': 'devices',
  'memory-limit': 'devices',
};

const EXPLAIN: Readonly<Record<Family, (subject: Subject) => readonly Explanation[]>> = {
  stuck: explainStuck,
  growth: explainGrowth,
  stalls: explainStalls,
  requests: explainRequests,
  devices: explainDevices,
};

/** Rival explanations of the gravest finding, the likeliest first; none where nothing was found. */
export function hypothesesOf(
  view: RecordingView,
  all: readonly Finding[],
  { recording, finding, verdicts = [] }: HypothesesOptions,
): readonly Hypothesis[] {
  // Findings come worst first.
  const main = finding == null ? all[0] : all.find(({ id }) => id === finding);
  if (main === undefined) return [];
  const family = FAMILY[main.kind];
  const named = typed(recording);
  const findings = all.filter(({ kind, pid }) => FAMILY[kind] === family && pid === main.pid);
  return EXPLAIN[family]({ view, main, findings, all, recording: named })
    .map((explanation) => judged(explanation, verdicts))
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST)
    .map((one, index) => numbered(one, index, { findings, recording: named }));
}

type Judged = Omit<Hypothesis, 'id' | 'rank' | 'findings' | 'test'> & Pick<Explanation, 'test'>;

function judged(explanation: Explanation, verdicts: readonly Verdict[]): Judged {
  const { mechanism, claim, confirming, refuting, test, prior } = explanation;
  const mine = verdicts.filter((one) => one.mechanism === mechanism && one.outcome !== 'invalid');
  const clues: readonly Clue[] = [
    ...explanation.clues,
    ...mine.map(({ outcome, summary }) => ({
      summary: `its test: ${summary}`,
      weight: outcome === 'reproduced' ? DECIDES : -DECIDES,
    })),
  ];
  const last = mine.at(-1)?.outcome;
  const status: HypothesisStatus =
    last === undefined ? 'open' : last === 'reproduced' ? 'supported' : 'refuted';
  const strongestFirst = (some: readonly Clue[]): readonly Clue[] =>
    some.toSorted((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
  return {
    mechanism,
    claim,
    predicts: { confirming, refuting },
    test,
    for: strongestFirst(clues.filter(({ weight }) => weight > 0)),
    against: strongestFirst(clues.filter(({ weight }) => weight < 0)),
    score: clues.reduce((sum, { weight }) => sum + weight, prior),
    status,
  };
}

function numbered(
  { test, ...one }: Judged,
  index: number,
  { findings, recording }: Pick<Subject, 'findings' | 'recording'>,
): Hypothesis {
  const id = `H${index + 1}`;
  return {
    ...one,
    id,
    rank: index + 1,
    test: test(`${recording}#${id}`),
    findings: findings.map((finding) => finding.id),
  };
}

/** As a command takes it. */
function typed(recording: string | null): string {
  return recording === null ? '<recording>' : quoteForShell(printable(recording, PATH_LIMIT));
}
