/**
 * The public API: open a recording, compute its findings, build and render a report. What is not named here may change
 * without notice.
 */

export { detectAll } from './analysis/detectors.ts';
export { toolVersion } from './commands/version.ts';
export { TraceError } from './core/errors.ts';
export { EXIT, type ExitCode } from './core/exit-code.ts';
export type {
  Attributes,
  CollectorInfo,
  Evidence,
  Finding,
  FindingKind,
  Frame,
  Gap,
  Histogram,
  HistogramBuckets,
  Place,
  RecordingView,
  RunEnd,
  RunStart,
  Series,
  Span,
  TargetInfo,
} from './core/types.ts';
export { openRecording } from './recording/reader.ts';
export { renderJson } from './report/json.ts';
export type { MetricSummary, SeriesSummary } from './report/metric-summary.ts';
export { buildReport, type Overhead, type Report, type ReportExtra } from './report/report.ts';
export { decideSurface, type Surface, type SurfaceFacts } from './report/style.ts';
export { renderTerminal } from './report/terminal.ts';
