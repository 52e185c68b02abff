import type { TrialTally, Verdict } from '../core/verdict.ts';

/** A trial as documents have it. */
export interface TrialLine {
  readonly arm: string;
  readonly seed: number;
  readonly outcome: string;
  readonly errors: number;
  readonly attempts: number;
  readonly seconds: number;
  readonly reason: string | null;
  /** What it left running, and what was ended then. */
  readonly left: readonly { readonly pid: number; readonly title: string }[];
}

/** What `verdict.json` holds and `trace repro run --json` prints: docs/schema/repro-run.schema.json. Ends with a line feed. */
export function verdictDocument(
  verdict: Verdict,
  about: {
    readonly toolVersion: string;
    readonly startedAt: number;
    readonly interrupted: boolean;
    readonly hypothesis: { readonly id: string; readonly mechanism: string } | null;
    readonly trials: readonly TrialLine[];
    readonly traceId: string | null;
    readonly recording: string | null;
  },
): string {
  const document = {
    schema_version: 1,
    tool: { name: 'tracewright', version: about.toolVersion },
    command: 'repro run',
    started_at: new Date(about.startedAt * 1e3).toISOString(),
    duration_s: verdict.duration,
    interrupted: about.interrupted,
    outcome: verdict.outcome,
    mechanism: about.hypothesis?.mechanism ?? null,
    hypothesis: about.hypothesis?.id ?? null,
    subject: tally(verdict.subject),
    control: verdict.control === null ? null : tally(verdict.control),
    p: verdict.p,
    witness_seed: verdict.witness,
    reason: verdict.reason,
    stopped_early: verdict.stoppedEarly,
    trials: about.trials.map(({ seconds, ...rest }) => ({ ...rest, duration_s: seconds })),
    trace_id: about.traceId,
    recording: about.recording,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function tally({ label, reproduced, trials, invalid, interval }: TrialTally): object {
  return {
    label,
    reproduced,
    trials,
    invalid,
    rate: { method: interval.method, low_ratio: interval.low, high_ratio: interval.high },
  };
}
