import type {
  CollectorInfo,
  Finding,
  Gap,
  Ratio,
  RecordingView,
  Seconds,
  TargetInfo,
} from '../core/types.ts';
import type { Hypothesis } from '../core/hypothesis.ts';
import { collectorsOf, targetsOf } from '../core/process-view.ts';
import { clipped } from '../core/stretches.ts';
import { type CommandSummary, summariseCommand } from './command.ts';
import type { Flight } from './flight.ts';
import { clockProblems } from './clock-problems.ts';
import { summariseMetrics, type MetricSummary } from './metric-summary.ts';
import { type ProcessSummary, summariseProcesses } from './processes.ts';
import {
  type ProbeSummary,
  type ServerSummary,
  summariseProbes,
  summariseServers,
} from './servers.ts';
import { groupStacks, type StackGroup } from './stacks.ts';

/** The version of the JSON document, `schema_version`; raised when a reader of the old one would misread the new one. */
export const SCHEMA_VERSION = 1;

/** What trace itself cost. */
export interface Overhead {
  /** CPU time over wall time, one core = 1, without start-up. */
  readonly ownCpu: Ratio;
  readonly startupCpu: Seconds;
  /** How long the target was stopped. Reading from outside never stops it. */
  readonly targetPaused: Seconds;
  readonly samples: number;
  readonly late: number;
  readonly dropped: number;
}

/** Everything a report says, in base units: between what was observed and how it is shown. */
export interface Report {
  readonly toolVersion: string;
  readonly command: string;
  readonly startedAt: Seconds;
  readonly duration: Seconds;
  readonly interrupted: boolean;
  /** Why observation ended; `unknown` when the writer died before it could say. */
  readonly endReason: string;
  readonly settings: Readonly<Record<string, number | string | boolean>>;
  readonly targets: readonly TargetInfo[];
  readonly collectors: readonly CollectorInfo[];
  readonly findings: readonly Finding[];
  /** Rival explanations of the gravest finding, the likeliest first. */
  readonly hypotheses: readonly Hypothesis[];
  readonly gaps: readonly Gap[];
  readonly metrics: readonly MetricSummary[];
  /** Side by side; empty for a run that watched one. */
  readonly processes: readonly ProcessSummary[];
  /** Where their main threads were at the end, alike ones together; empty for a run that watched one. */
  readonly stacks: readonly StackGroup[];
  /** Of a command that trace started; null for what ran already. */
  readonly run: CommandSummary | null;
  /** What servers said of themselves, where their pages were read and their names are known. */
  readonly servers?: readonly ServerSummary[];
  /** What small requests took; null where none were sent. */
  readonly probes?: ProbeSummary | null;
  /** Null when the writer died before it could say. */
  readonly overhead: Overhead | null;
  /** What could not be read or sent, in words. */
  readonly problems: readonly string[];
  /** The folder of the recording; null when none was kept. */
  readonly recording: string | null;
  readonly traceId: string;
  /** Where the exported trace can be looked at; null when it was not exported or nobody knows. */
  readonly traceUrl: string | null;
  /** Of a run that waited for events and kept nothing else; its metrics and gaps are of its last stretch. */
  readonly flight?: Flight;
}

/** What a report says beyond the recording and the findings. */
export interface ReportExtra {
  readonly recording: string | null;
  /** Of the trace in a tracing backend, once it is there. */
  readonly traceUrl?: string | null;
  /** Trouble outside the recording: an exporter that was refused, a disk that was full. */
  readonly problems?: readonly string[];
  readonly flight?: Flight;
  /** Explanations of the findings (src/analysis/hypotheses). */
  readonly hypotheses?: readonly Hypothesis[];
}

/** The report of a run that has just ended, or of a recording of one. */
export function buildReport(
  view: RecordingView,
  findings: readonly Finding[],
  extra: ReportExtra,
): Report {
  const { start, end } = view;
  return {
    toolVersion: start.toolVersion,
    command: start.command,
    startedAt: start.startedAt,
    duration: Math.max(0, view.endedAt - start.startedAt),
    interrupted: end?.interrupted ?? true,
    endReason: end?.reason ?? 'unknown',
    settings: start.settings,
    targets: targetsOf(view),
    collectors: collectorsOf(view),
    findings,
    hypotheses: extra.hypotheses ?? [],
    // What was going on when the run began, or ended, lasted for longer than was looked at.
    gaps: view.gaps.map((gap) => clipped(gap, { from: start.startedAt, to: view.endedAt })),
    metrics: summariseMetrics(view),
    processes: summariseProcesses(view),
    run: summariseCommand(view),
    stacks: groupStacks(view),
    servers: summariseServers(view),
    probes: summariseProbes(view),
    overhead:
      end === null
        ? null
        : {
            ownCpu: end.ownCpuRatio,
            startupCpu: end.startupCpu,
            targetPaused: end.targetPaused,
            samples: end.samples,
            late: end.late,
            dropped: end.dropped,
          },
    problems: [...view.problems, ...clockProblems(view), ...(extra.problems ?? [])],
    recording: extra.recording,
    traceId: start.traceId,
    traceUrl: extra.traceUrl ?? null,
    ...(extra.flight === undefined ? {} : { flight: extra.flight }),
  };
}
