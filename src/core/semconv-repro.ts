/** Names of what `trace repro run` records that no convention has. */

export const REPRO_SPAN = {
  /** One run of a reproduction's script in a fresh process. */
  trial: 'tracewright.repro.trial',
} as const;

export const REPRO_ATTR = {
  /** What was run: `as given`, `concurrency 1`, `redis==4.5.5`. */
  arm: 'tracewright.repro.arm',
  seed: 'tracewright.repro.seed',
  /** `reproduced`, `not-reproduced`, `invalid`. */
  outcome: 'tracewright.repro.outcome',
  errors: 'tracewright.repro.error.count',
  attempts: 'tracewright.repro.attempt.count',
  reason: 'tracewright.repro.reason',
} as const;
