import { asArray, asObject, asString } from '../../core/otlp-values.ts';
import { described, type Decoded, errorOf, type JsonObject, readParts } from './decoded.ts';

/**
 * An event of /v1/responses: `response.output_text.delta`, `response.reasoning_text.delta`, `response.function_call_arguments.delta` and
 * their likes carry output in `delta`; the last one (`response.completed`, `.incomplete` or `.failed`) carries the whole response.
 */
export function decodeResponseEvent(value: JsonObject, into: Decoded): void {
  const type = asString(value['type']);
  if (type.endsWith('.delta')) {
    const delta = value['delta'];
    into.output(delta);
    if (type === 'response.output_text.delta') into.text = asString(delta);
    return;
  }
  const response = asObject(value['response']);
  if (response === undefined) {
    into.error = errorOf(value);
    return;
  }
  into.readId(response['id']);
  if (type === 'response.failed') {
    into.error = described(response['error'] ?? 'response.failed');
  } else if (type === 'response.completed' || type === 'response.incomplete') {
    decodeResponse(response, into);
    into.repeated = true;
    into.ended = true;
  }
}

/** A response object of /v1/responses. */
export function decodeResponse(value: JsonObject, into: Decoded): void {
  into.error = errorOf(value);
  if (into.error === null && value['status'] === 'failed') into.error = 'the response failed';
  if (into.error !== null) return;
  into.readId(value['id']);
  into.readUsage(value['usage']);
  const incomplete = asObject(value['incomplete_details'])?.['reason'];
  into.finishReason = asString(incomplete) || asString(value['status']) || null;
  for (const entry of asArray(value['output'])) {
    const item = asObject(entry);
    if (item === undefined) continue;
    const text = readParts(item['content'], into);
    if (item['type'] === 'message') into.text += text;
    readParts(item['summary'], into);
    into.output(item['arguments']);
    into.output(item['input']);
  }
}
