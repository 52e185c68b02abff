import type { Finding, Gap, Seconds } from '../core/types.ts';
import type { Dimension } from '../core/comparison.ts';
import type { Flight } from './flight.ts';
import type { CommandSummary } from './command.ts';
import type { MetricSummary } from './metric-summary.ts';
import type { ProcessSummary } from './processes.ts';
import { SCHEMA_VERSION, type Report } from './report.ts';
import { hypothesisDocument } from './hypothesis-document.ts';
import { probesDocument, serverDocument } from './servers-json.ts';

// JSON leaves these as they are, and a terminal obeys some of them: C1 controls, bidirectional overrides, separators.
const UNSAFE =
  /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu;

/** The report as one JSON document (docs/schema/attach.schema.json), indented, ending with a line feed. */
export function renderJson(report: Report): string {
  return `${escapeUnsafe(JSON.stringify(toDocument(report), null, 2))}\n`;
}

/** JSON text with what a terminal might obey written as escapes: the same value. */
export function escapeUnsafe(json: string): string {
  return json.replace(UNSAFE, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** What every report's document has. */
export function toDocument(report: Report): Record<string, unknown> {
  const { overhead } = report;
  return {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: report.toolVersion },
    command: report.command,
    started_at: rfc3339(report.startedAt),
    duration_s: report.duration,
    interrupted: report.interrupted,
    end_reason: report.endReason,
    settings: report.settings,
    targets: report.targets.map((target) => ({
      pid: target.pid,
      parent: target.parent,
      start_ticks: target.startTicks,
      runtime: target.runtime,
      runtime_version: target.runtimeVersion,
      title: target.title,
      role: target.role,
      namespace_pid: target.namespacePid ?? null,
      container: target.container ?? null,
    })),
    collectors: report.collectors.map(({ name, available, reason, remedy, pid }) => ({
      name,
      available,
      reason,
      remedy,
      ...(pid === undefined ? {} : { pid }),
    })),
    findings: report.findings.map((finding) => findingDocument(finding, report.findings)),
    ...(report.run === null ? {} : { run: commandDocument(report.run) }),
    hypotheses: report.hypotheses.map(hypothesisDocument),
    gaps: report.gaps.map((gap) => gapDocument(gap, report.startedAt)),
    metrics: Object.fromEntries(report.metrics.map((one) => [one.name, metricDocument(one)])),
    ...(report.processes.length === 0
      ? {}
      : { processes: report.processes.map(processDocument), stacks: report.stacks }),
    ...(report.servers === undefined || report.servers.length === 0
      ? {}
      : { servers: report.servers.map(serverDocument) }),
    ...(report.probes == null ? {} : { probes: probesDocument(report.probes) }),
    overhead:
      overhead === null
        ? null
        : {
            own_cpu_ratio: overhead.ownCpu,
            startup_cpu_s: overhead.startupCpu,
            target_paused_s: overhead.targetPaused,
            samples: overhead.samples,
            late: overhead.late,
            dropped: overhead.dropped,
          },
    problems: report.problems,
    recording: report.recording,
    trace_id: report.traceId,
    trace_url: report.traceUrl,
    ...(report.flight === undefined ? {} : { triggers: flightDocument(report.flight) }),
  };
}

function findingDocument(finding: Finding, all: readonly Finding[]): Record<string, unknown> {
  const consequences = all.filter(({ because }) => because?.finding === finding.id);
  return {
    id: finding.id,
    code: finding.code,
    kind: finding.kind,
    mechanism: finding.mechanism,
    severity: finding.severity,
    confidence: finding.confidence,
    pid: finding.pid,
    ...(finding.pids === undefined ? {} : { pids: finding.pids }),
    summary: finding.summary,
    where: finding.where.map((place) => ({
      function: place.function,
      file: place.file,
      line: place.line,
      module: place.module,
      thread: place.thread,
      share: place.share,
    })),
    evidence: finding.evidence.map(({ kind, summary, data }) => ({
      kind,
      summary,
      data: data ?? {},
    })),
    measure: finding.measure,
    remedy: finding.remedy,
    ...(finding.because === undefined ? {} : { because: { ...finding.because } }),
    ...(consequences.length === 0 ? {} : { consequences: consequences.map(({ id }) => id) }),
  };
}

function processDocument(one: ProcessSummary): Record<string, unknown> {
  return {
    pid: one.target.pid,
    role: one.target.role,
    cpu_median_ratio: one.cpuMedian,
    cpu_max_ratio: one.cpuMax,
    memory_bytes: one.memory,
    memory_growth_bytes: one.memoryGrowth,
    threads: one.threads,
    loop_delay_max_s: one.loopDelayMax,
    blocked: one.blocked,
    end: one.end,
  };
}

function gapDocument(gap: Gap, startedAt: Seconds): Record<string, unknown> {
  return {
    collector: gap.collector,
    reason: gap.reason,
    from_s: gap.from - startedAt,
    to_s: gap.to - startedAt,
    detail: gap.detail,
    ...(gap.pid === undefined ? {} : { pid: gap.pid }),
  };
}

/** The `triggers` of the JSON document (docs/schema/attach.schema.json). */
function flightDocument(flight: Flight): Record<string, unknown> {
  return {
    expressions: flight.expressions,
    before_s: flight.before,
    after_s: flight.after,
    not_written: flight.notWritten,
    gap_count: flight.gaps.count,
    gap_s: flight.gaps.total,
    kept_bytes: flight.keptBytes,
    events: flight.events.map((event) => ({
      number: event.number,
      expression: event.expression,
      at: rfc3339(event.at),
      value: event.value,
      worst: event.worst,
      unit: event.dimension === null ? null : UCUM[event.dimension],
      pid: event.pid,
      detail: event.detail,
      count: event.count,
      also: event.also,
      from: rfc3339(event.from),
      to: rfc3339(event.to),
      recording: event.recording,
      findings: event.findings,
      trace_id: event.traceId,
      trace_url: event.traceUrl,
    })),
  };
}

const UCUM: Readonly<Record<Dimension, string>> = {
  s: 's',
  ratio: '1',
  count: '1',
  '1/s': '1/s',
  By: 'By',
};

function metricDocument(metric: MetricSummary): Record<string, unknown> {
  return {
    unit: metric.unit,
    series: metric.series.map((series) => ({
      attributes: series.attributes,
      count: series.count,
      first: series.first,
      last: series.last,
      min: series.min,
      max: series.max,
      p50: series.p50,
      p99: series.p99,
      slope_per_s: series.slopePerSecond,
    })),
  };
}

/** The `run` of the JSON document. */
function commandDocument({ ready, exitCode, exitSignal }: CommandSummary): Record<string, unknown> {
  return { ready_s: ready, exit_code: exitCode, exit_signal: exitSignal };
}

/** A time beyond what a Date holds can only come from a broken recording; the epoch is shown for it. */
export function rfc3339(at: Seconds): string {
  const date = new Date(at * 1000);
  return (Number.isNaN(date.getTime()) ? new Date(0) : date).toISOString();
}
