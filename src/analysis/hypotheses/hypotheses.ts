import type { Clue, Hypothesis, HypothesisStatus } from '../../core/hypothesis.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { Finding, FindingKind, RecordingView } from '../../core/types.ts';
import { DEVICE_KINDS, explainDevices } from './devices.ts';
import type { Explanation, Subject } from './explanation.ts';
import { explainGrowth, GROWTH_KINDS } from './growth.ts';
import { explainRequests, REQUEST_KINDS } from './requests.ts';
import { explainStalls, STALL_KINDS } from './stalls.ts';
import { explainStuck, STUCK_KINDS } from './stuck.ts';

/**
 * From findings to rival explanations of them. A finding says what was seen; which of the things that look like it is the cause, it leaves open.
 * Each rival says what would confirm it, what would refute it and how to find out, and stands where the clues put it.
 */

/** People weigh three to five rivals; a list of ten is no help. */
const MOST = 5;

/** What a test said of an explanation, by its mechanism: a verdict of `trace repro`. */
export interface Verdict {
  readonly mechanism: string;
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

const FAMILIES: readonly {
  readonly kinds: ReadonlySet<FindingKind>;
  readonly explain: (subject: Subject) => readonly Explanation[];
}[] = [
  { kinds: STUCK_KINDS, explain: explainStuck },
  { kinds: GROWTH_KINDS, explain: explainGrowth },
  { kinds: STALL_KINDS, explain: explainStalls },
  { kinds: REQUEST_KINDS, explain: explainRequests },
  { kinds: DEVICE_KINDS, explain: explainDevices },
];

/** Rival explanations of the gravest finding, the likeliest first; none where nothing was found. */
export function hypothesesOf(
  view: RecordingView,
  all: readonly Finding[],
  { recording, finding, verdicts = [] }: HypothesesOptions,
): readonly Hypothesis[] {
  // Findings come worst first.
  const main = finding == null ? all[0] : all.find(({ id }) => id === finding);
  const family = FAMILIES.find(({ kinds }) => main !== undefined && kinds.has(main.kind));
  if (main === undefined || family === undefined) return [];
  const findings = all.filter(({ kind, pid }) => family.kinds.has(kind) && pid === main.pid);
  return family
    .explain({ view, main, findings, all, recording: typed(recording) })
    .map((explanation) => judged(explanation, verdicts))
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST)
    .map((one, index) => numbered(one, index, findings));
}

type Judged = Omit<Hypothesis, 'id' | 'rank' | 'findings'>;

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

function numbered(one: Judged, index: number, findings: readonly Finding[]): Hypothesis {
  const id = `H${index + 1}`;
  return {
    ...one,
    id,
    rank: index + 1,
    // Commands are written before the order is known.
    test: one.test.replaceAll('#H1', `#${id}`),
    findings: findings.map((finding) => finding.id),
  };
}

/** As a command takes it. */
function typed(recording: string | null): string {
  return recording === null ? '<recording>' : quoteForShell(printable(recording, PATH_LIMIT));
}
