/** What kind of fault a hypothesis supposes. */
export type Mechanism =
  | 'race'
  | 'crosstalk'
  | 'leak'
  | 'blocking-call'
  | 'deadlock'
  | 'lock-order'
  | 'pool-exhaustion'
  | 'saturation'
  | 'client'
  | 'warm-up'
  | 'gc'
  | 'environment'
  | 'other';

/** One explanation of what was found, with what would settle it. Its texts are ours; names within them come from the target. */
export interface Hypothesis {
  /** `H1`: its address, as in `recording#H1`; stable within a recording. */
  readonly id: string;
  /** 1 is the likeliest. */
  readonly rank: number;
  readonly mechanism: Mechanism;
  readonly claim: string;
  readonly predicts: { readonly confirming: string; readonly refuting: string };
  /** A command, ready to be typed. */
  readonly test: string;
  readonly evidenceFor: readonly string[];
  readonly evidenceAgainst: readonly string[];
  /** Why it has its rank. */
  readonly reasons: readonly string[];
  readonly status: 'open' | 'supported' | 'refuted';
  /** The findings that it explains: `F1`. */
  readonly findings: readonly string[];
}
