import { asObject, asString, toNumber } from '../core/otlp-values.ts';
import { fieldsOf } from './protobuf-fields.ts';
import type { Answer } from './transport.ts';

/** What a receiver took only in part: how many it refused, and why. */
export interface PartialSuccess {
  readonly rejected: number;
  readonly message: string;
}

const NOTHING: PartialSuccess = { rejected: 0, message: '' };
const REJECTED_FIELDS = ['rejectedSpans', 'rejectedDataPoints', 'rejectedLogRecords'];

/** Reads the `partial_success` of an export response, JSON or protobuf by its content type. An unreadable one says nothing. */
export function partialSuccess(answer: Answer): PartialSuccess {
  return answer.contentType.includes('json') ? fromJson(answer.body) : fromProtobuf(answer.body);
}

function fromJson(body: Buffer): PartialSuccess {
  try {
    const response = asObject(JSON.parse(body.toString('utf8')));
    const partial = asObject(response?.['partialSuccess']);
    if (partial === undefined) return NOTHING;
    const rejected = REJECTED_FIELDS.map((field) => toNumber(partial[field])).find(Boolean) ?? 0;
    return { rejected, message: asString(partial['errorMessage']) };
  } catch {
    return NOTHING;
  }
}

/** All three responses are `{ 1: { 1: int64 rejected, 2: string message } }` (collector/…_service.proto). */
function fromProtobuf(body: Buffer): PartialSuccess {
  const partial = fieldsOf(body).get(1);
  if (!Buffer.isBuffer(partial)) return NOTHING;
  const fields = fieldsOf(partial);
  const [rejected, message] = [fields.get(1), fields.get(2)];
  return {
    rejected: typeof rejected === 'number' ? rejected : 0,
    message: Buffer.isBuffer(message) ? message.toString('utf8') : '',
  };
}
