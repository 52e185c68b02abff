import type { Comparison, ThresholdOutcome } from '../core/load-outcome.ts';
import type { LoadResult } from '../core/load-types.ts';
import type { Finding, RecordingView } from '../core/types.ts';
import { buildReport, type Report, type ReportExtra } from './report.ts';

/** The report of a load run, or of the merged parts of one. */
export interface LoadReport extends Report {
  readonly load: LoadResult;
  /** One for each `--fail-on`, in their order. */
  readonly thresholds: readonly ThresholdOutcome[];
  /** Null without `--baseline`. */
  readonly comparison: Comparison | null;
}

/** What a load report says beyond the recording and its findings. */
export interface LoadReportExtra extends ReportExtra {
  readonly result: LoadResult;
  readonly thresholds?: readonly ThresholdOutcome[];
  readonly comparison?: Comparison | null;
}

export function buildLoadReport(
  view: RecordingView,
  findings: readonly Finding[],
  extra: LoadReportExtra,
): LoadReport {
  return {
    ...buildReport(view, findings, extra),
    load: extra.result,
    thresholds: extra.thresholds ?? [],
    comparison: extra.comparison ?? null,
  };
}
