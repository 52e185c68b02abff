import type {
  Attributes,
  Event,
  Finding,
  Gap,
  RunEnd,
  RunStart,
  Seconds,
  Snapshot,
  StackSample,
} from './types.ts';
import type { OtlpLogRecord, OtlpLogs } from './otlp-types.ts';
import { type EncodeContext, SCOPE_NAME, rootSpanId } from './otlp-encode.ts';
import { EVENT, SEMCONV_SCHEMA_URL } from './semconv.ts';
import { toKeyValues, toNanos, toOtlpValue } from './otlp-values.ts';

/** What is neither a number nor a span, as OTLP log records: each has an event name that says what its body is. */

/** Says the event's name a second time, for receivers older than the `eventName` field (opentelemetry-proto 1.5). */
export const EVENT_NAME_ATTRIBUTE = 'event.name';

const SEVERITY = {
  info: { severityNumber: 9, severityText: 'INFO' },
  warn: { severityNumber: 13, severityText: 'WARN' },
  error: { severityNumber: 17, severityText: 'ERROR' },
} as const;

/** Everything that becomes a log record. */
export type LogSource =
  | StackSample
  | Snapshot
  | Event
  | Gap
  | { readonly kind: 'run-start'; readonly start: RunStart }
  | { readonly kind: 'run-end'; readonly end: RunEnd }
  | { readonly kind: 'finding'; readonly finding: Finding; readonly at: Seconds };

interface LogParts {
  readonly at: Seconds;
  readonly name: string;
  readonly body: unknown;
  readonly severity?: keyof typeof SEVERITY;
  readonly attributes?: Attributes | undefined;
}

function partsOf(source: LogSource): LogParts {
  switch (source.kind) {
    case 'event':
      return source;
    case 'stack':
      return { at: source.at, name: EVENT.stack, body: { id: source.id, frames: source.frames } };
    case 'snapshot':
      return { at: source.at, name: EVENT.snapshot, body: { of: source.of, body: source.body } };
    case 'gap': {
      const { kind: _, ...body } = source;
      return { at: source.from, name: EVENT.gap, body, severity: 'warn' };
    }
    case 'run-start':
      return { at: source.start.startedAt, name: EVENT.runStart, body: source.start };
    case 'run-end':
      return { at: source.end.endedAt, name: EVENT.runEnd, body: source.end };
    case 'finding':
      return {
        at: source.at,
        name: EVENT.finding,
        body: storedFinding(source.finding),
        severity: source.finding.severity === 'note' ? 'info' : 'warn',
      };
  }
}

/** Log records of one run, tied to its root span. */
export function encodeLogs(sources: readonly LogSource[], context: EncodeContext): OtlpLogs {
  const { traceId, toolVersion } = context.start;
  const spanId = rootSpanId(traceId);
  const logRecords = sources.map((source): OtlpLogRecord => {
    const { at, name, body, severity, attributes } = partsOf(source);
    const timeUnixNano = toNanos(at);
    return {
      timeUnixNano,
      observedTimeUnixNano: timeUnixNano,
      ...SEVERITY[severity ?? 'info'],
      eventName: name,
      body: toOtlpValue(body),
      attributes: toKeyValues({ [EVENT_NAME_ATTRIBUTE]: name, ...attributes }),
      traceId,
      spanId,
    };
  });
  return {
    resourceLogs: [
      {
        resource: context.resource,
        scopeLogs: [{ scope: { name: SCOPE_NAME, version: toolVersion }, logRecords }],
        schemaUrl: SEMCONV_SCHEMA_URL,
      },
    ],
  };
}

/** As the JSON document has it: facts are for explanations, which are made when findings are. */
function storedFinding(finding: Finding): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(finding).filter(([key]) => key !== 'facts'));
}
