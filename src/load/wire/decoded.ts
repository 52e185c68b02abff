import { asArray, asObject, asString } from '../../core/otlp-values.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** What one event, or a whole answer, says; reused from one to the next. Strings are from outside: untrusted. */
export class Decoded {
  /** Every non-empty piece of output: content, reasoning, refusal, a call's name and arguments. */
  readonly outputs: string[] = [];
  /** The part of it that is the answer's text (of the first choice). */
  text = '';
  /** These outputs were in earlier events already; they count only where none came. */
  repeated = false;
  /** The API's own last event. */
  ended = false;
  finishReason: string | null = null;
  responseId: string | null = null;
  /** Whether there was a usage at all. */
  usage = false;
  inputTokens: number | null = null;
  outputTokens: number | null = null;
  cachedTokens: number | null = null;
  reasoningTokens: number | null = null;
  /** What an error said; null when it was none. */
  error: string | null = null;

  reset(): void {
    this.outputs.length = 0;
    this.text = '';
    this.repeated = false;
    this.ended = false;
    this.finishReason = null;
    this.responseId = null;
    this.usage = false;
    this.inputTokens = null;
    this.outputTokens = null;
    this.cachedTokens = null;
    this.reasoningTokens = null;
    this.error = null;
  }

  /** Takes a piece of output, if it is a non-empty string. */
  output(value: unknown): void {
    if (typeof value === 'string' && value !== '') this.outputs.push(value);
  }

  /** Takes the counts of a `usage`, by either of the two names that the APIs have for them. */
  readUsage(value: unknown): void {
    const usage = asObject(value);
    if (usage === undefined) return;
    this.usage = true;
    this.inputTokens = count(usage['prompt_tokens'] ?? usage['input_tokens']);
    this.outputTokens = count(usage['completion_tokens'] ?? usage['output_tokens']);
    const input = asObject(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
    const output = asObject(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
    this.cachedTokens = count(input?.['cached_tokens']);
    this.reasoningTokens = count(output?.['reasoning_tokens']);
  }

  readId(value: unknown): void {
    if (typeof value === 'string' && value !== '') this.responseId = value;
  }
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/**
 * What an error object says; null for something else. OpenAI's and vLLM's are `{"error":{"message",…}}`, Dynamo's are `{"message","type","code"}`
 * without a wrapper, older vLLM's `{"object":"error","message"}`, FastAPI's `{"detail":…}`.
 */
export function errorOf(value: JsonObject): string | null {
  const wrapped = value['error'];
  if (wrapped !== undefined && wrapped !== null && wrapped !== false) return described(wrapped);
  // `detail` and `message` are names that an ordinary answer could have too.
  if (value['choices'] !== undefined || value['data'] !== undefined) return null;
  const isError =
    value['object'] === 'error' ||
    value['type'] === 'error' ||
    (typeof value['message'] === 'string' &&
      (value['code'] !== undefined || value['type'] !== undefined)) ||
    (value['detail'] !== undefined && value['id'] === undefined);
  return isError ? described(value) : null;
}

/** What an error value says, in one string. */
export function described(value: unknown): string {
  if (typeof value === 'string') return value === '' ? 'error' : value;
  const error = asObject(value);
  const message = error?.['message'] ?? error?.['detail'];
  if (error === undefined || message === undefined || message === null) {
    return JSON.stringify(value) ?? 'error';
  }
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  const type = asString(error['type']);
  const kind = type === 'error' || type === '' ? asString(error['code']) : type;
  return kind === '' ? text : `${kind}: ${text}`;
}

/** Content in parts, `[{"type":"text","text":…}]`, nested where it is thinking. */
export function readParts(parts: unknown, into: Decoded, depth = 0): string {
  let text = '';
  if (depth > 4) return text;
  for (const item of asArray(parts)) {
    const part = asObject(item);
    if (part === undefined) continue;
    into.output(part['text']);
    into.output(part['refusal']);
    if (part['type'] !== 'reasoning_text' && part['type'] !== 'summary_text') {
      text += asString(part['text']);
    }
    if (typeof part['thinking'] === 'string') into.output(part['thinking']);
    else readParts(part['thinking'], into, depth + 1);
  }
  return text;
}
