import type { SpanContext } from './types.ts';
import { FLAG_SAMPLED, SPAN_KIND, STATUS_ERROR } from './otlp-encode.ts';
import { asObject, asString, toNumber } from './otlp-values.ts';

const ROLES = new Map(
  Object.entries(SPAN_KIND).map(([role, kind]) => [kind as number, role as SpanContext['role']]),
);
const SPAN_ID = /^(?!0{16})[0-9a-f]{16}$/;

/** What an OTLP span is to the rest of its trace; undefined for one of work inside a program, and for one whose id cannot be read. */
export function toSpanContext(span: Readonly<Record<string, unknown>>): SpanContext | undefined {
  const role = ROLES.get(toNumber(span['kind']) ?? 0);
  const spanId = asString(span['spanId']).toLowerCase();
  if (role === undefined || !SPAN_ID.test(spanId)) return undefined;
  const failed = toNumber(asObject(span['status'])?.['code']) === STATUS_ERROR;
  const flags = toNumber(span['flags']);
  // Writers older than the field export what was sampled.
  const sampled = flags === undefined || (flags & FLAG_SAMPLED) !== 0;
  return { spanId, role, failed, sampled };
}
