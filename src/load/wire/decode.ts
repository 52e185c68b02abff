import type { LoadApi } from '../../core/load-types.ts';
import { asArray, asObject } from '../../core/otlp-values.ts';
import { type Decoded, errorOf, type JsonObject, readParts } from './decoded.ts';
import { decodeResponse, decodeResponseEvent } from './decode-responses.ts';

/** Reads one JSON object of an answer into `into`, which was reset before. */
export type Decode = (value: JsonObject, into: Decoded) => void;

/** How the events of a stream of this API are read. */
export function eventDecoder(api: LoadApi): Decode {
  return api === 'responses' ? decodeResponseEvent : decodeChoices;
}

/** How a whole answer of this API is read. */
export function answerDecoder(api: LoadApi): Decode {
  if (api === 'responses') return decodeResponse;
  return api === 'embeddings' ? decodeEmbeddings : decodeChoices;
}

/** Reads what stands around the output; false where that is an error. */
function readEnvelope(value: JsonObject, into: Decoded): boolean {
  into.error = errorOf(value);
  if (into.error !== null) return false;
  into.readId(value['id']);
  into.readUsage(value['usage']);
  return true;
}

/** Chat and (legacy) completions, whole or in deltas: the names differ, the meaning does not. */
function decodeChoices(value: JsonObject, into: Decoded): void {
  if (!readEnvelope(value, into)) return;
  const choices = value['choices'];
  if (!Array.isArray(choices)) return;
  for (let i = 0; i < choices.length; i++) {
    const choice = asObject(choices[i]);
    if (choice === undefined) continue;
    const reason = choice['finish_reason'];
    if (typeof reason === 'string') into.finishReason ??= reason;
    const text = choice['text'];
    into.output(text);
    let content = typeof text === 'string' ? text : '';
    const message = asObject(choice['delta'] ?? choice['message']);
    if (message !== undefined) content += decodeMessage(message, into);
    const index = choice['index'];
    if (index === undefined ? i === 0 : index === 0) into.text += content;
  }
}

/** Returns the content: the text that a next turn repeats. */
function decodeMessage(message: JsonObject, into: Decoded): string {
  const content = message['content'];
  into.output(content);
  // DeepSeek, vLLM and SGLang say reasoning_content, newer vLLM, OpenRouter and Ollama say reasoning; some say both.
  into.output(message['reasoning_content']);
  into.output(message['reasoning']);
  into.output(message['refusal']);
  readCall(message['function_call'], into);
  for (const item of asArray(message['tool_calls'])) {
    const call = asObject(item);
    readCall(call?.['function'], into);
    readCall(call?.['custom'], into);
  }
  return typeof content === 'string' ? content : readParts(content, into);
}

function readCall(value: unknown, into: Decoded): void {
  const call = asObject(value);
  if (call === undefined) return;
  into.output(call['name']);
  into.output(call['arguments']);
  into.output(call['input']);
}

function decodeEmbeddings(value: JsonObject, into: Decoded): void {
  if (!readEnvelope(value, into)) return;
  for (const item of asArray(value['data'])) {
    const embedding = asObject(item)?.['embedding'];
    // As numbers, or as base64 of them.
    if (Array.isArray(embedding) && embedding.length > 0) into.output('embedding');
    else into.output(embedding);
  }
}
