/** A debugging session as its file has it, for those who decide and show. All text is untrusted: people and other programs edit the file. */

/** Where a session is. */
export type Status =
  | 'gathering'
  | 'investigating'
  | 'diagnosed'
  | 'fixing'
  | 'verifying'
  | 'awaiting_human_verify'
  | 'resolved'
  | 'abandoned';

export const STATUSES: readonly Status[] = [
  'gathering',
  'investigating',
  'diagnosed',
  'fixing',
  'verifying',
  'awaiting_human_verify',
  'resolved',
  'abandoned',
];

/** What is wanted of a session: `find_root_cause_only` ends with the diagnosis. */
export type Goal = 'find_and_fix' | 'find_root_cause_only';

/** The fields of one entry, or of one section, by key. */
export type Fields = Readonly<Record<string, string>>;

/** One explanation that is being weighed. */
export interface SessionHypothesis {
  /** `H1`. */
  readonly id: string;
  readonly claim: string;
  /** What would confirm it, and what would refute it. */
  readonly confirms: string;
  readonly refutes: string;
  readonly state: 'open' | 'confirmed' | 'eliminated';
  /** 1 is the likeliest. */
  readonly rank: number;
}

/** Something that was looked at. */
export interface SessionEvidence {
  readonly timestamp: string;
  readonly checked: string;
  readonly found: string;
  readonly implication: string;
  /** Hypothesis that it speaks for or against; empty where it names none. */
  readonly hypothesis: string;
  readonly link: string;
}

/** A change that was tried. */
export interface SessionAttempt {
  readonly id: string;
  readonly timestamp: string;
  readonly change: string;
  readonly hypothesis: string;
  readonly approach: string;
  readonly before: string;
  readonly after: string;
  readonly outcome: 'worked' | 'failed' | 'unmeasured';
  readonly flags: string;
}

/** What is being done now. */
export interface Focus {
  readonly hypothesis: string;
  readonly test: string;
  readonly expecting: string;
  readonly nextAction: string;
}

export interface Session {
  readonly slug: string;
  readonly status: Status;
  readonly trigger: string;
  readonly goal: Goal;
  readonly created: string;
  readonly updated: string;
  readonly focus: Focus;
  readonly symptoms: Fields;
  /** The command that shows the fault, and what it said. */
  readonly reproduction: Fields;
  /** The test that has to fail before a fix: `test_file`, `test_name`, `status` (`red`, `green`), `failure_output`. */
  readonly tdd: Fields;
  readonly hypotheses: readonly SessionHypothesis[];
  readonly eliminated: readonly Fields[];
  readonly evidence: readonly SessionEvidence[];
  readonly attempts: readonly SessionAttempt[];
  readonly diagnosis: Fields;
  readonly resolution: Fields;
  readonly filesChanged: readonly string[];
}
