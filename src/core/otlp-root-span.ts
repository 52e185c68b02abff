import type { Attributes, Finding, RunEnd, RunStart } from './types.ts';
import type { OtlpSpan, OtlpTraces } from './otlp-types.ts';
import { type EncodeContext, SPAN_KIND_INTERNAL, rootSpanId, tracesOf } from './otlp-encode.ts';
import { ATTR, EVENT } from './semconv.ts';
import { toKeyValues, toNanos } from './otlp-values.ts';

/** The span of a whole run. A back end for traces alone sees nothing else of the summary, so it is all in here. */

/** The root span of a finished run: the summary as attributes (`tracewright.run.*`), the findings as events. */
export function encodeRootSpan(
  end: RunEnd,
  findings: readonly Finding[],
  context: EncodeContext,
): OtlpTraces {
  const { start } = context;
  const at = toNanos(end.endedAt);
  const root: OtlpSpan = {
    traceId: start.traceId,
    spanId: rootSpanId(start.traceId),
    name: `trace ${start.command}`,
    kind: SPAN_KIND_INTERNAL,
    startTimeUnixNano: toNanos(start.startedAt),
    endTimeUnixNano: at,
    attributes: toKeyValues(runSummary(start, end, findings)),
    events: findings.map((finding) => ({
      timeUnixNano: at,
      name: EVENT.finding,
      attributes: toKeyValues(findingAttributes(finding)),
    })),
  };
  return tracesOf([root], context);
}

function runSummary(start: RunStart, end: RunEnd, findings: readonly Finding[]): Attributes {
  const target = start.targets[0];
  const settings = Object.entries(start.settings);
  return {
    ...(target === undefined
      ? {}
      : {
          [ATTR.pid]: target.pid,
          [ATTR.startTicks]: target.startTicks,
          ...(target.namespacePid === undefined ? {} : { [ATTR.vpid]: target.namespacePid }),
          [ATTR.runtimeName]: target.runtime,
          ...(target.runtimeVersion === null
            ? {}
            : { [ATTR.runtimeVersion]: target.runtimeVersion }),
          [ATTR.processTitle]: target.title,
        }),
    'tracewright.run.reason': end.reason,
    'tracewright.run.interrupted': end.interrupted,
    'tracewright.run.own_cpu': end.ownCpuRatio,
    'tracewright.run.startup_cpu': end.startupCpu,
    'tracewright.run.target_paused': end.targetPaused,
    'tracewright.run.sample.count': end.samples,
    'tracewright.run.late.count': end.late,
    'tracewright.run.dropped.count': end.dropped,
    'tracewright.run.finding.count': findings.length,
    ...end.summary,
    ...Object.fromEntries(
      settings.map(([key, value]) => [`tracewright.run.setting.${key}`, value]),
    ),
  };
}

function findingAttributes(finding: Finding): Attributes {
  const place = finding.where[0];
  const measures = Object.entries(finding.measure);
  return {
    'tracewright.finding.id': finding.id,
    [ATTR.findingCode]: finding.code,
    [ATTR.findingKind]: finding.kind,
    'tracewright.finding.severity': finding.severity,
    'tracewright.finding.confidence': finding.confidence,
    'tracewright.finding.summary': finding.summary,
    ...(finding.pid === null ? {} : { [ATTR.pid]: finding.pid }),
    ...(place === undefined
      ? {}
      : {
          [ATTR.codeFunctionName]: place.function,
          [ATTR.codeFilePath]: place.file,
          ...(place.line === null ? {} : { [ATTR.codeLineNumber]: place.line }),
        }),
    ...Object.fromEntries(measures.map(([key, n]) => [`tracewright.finding.measure.${key}`, n])),
  };
}
