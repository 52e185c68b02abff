import type { Seconds } from '../../core/types.ts';
import { words } from './synthetic.ts';
import { STREAM } from './random.ts';
import { datasetError, type Line } from './lines.ts';
import type { Ask, Message } from './body.ts';

/** What a record of a data set asks, whatever tool it was written for. */
export interface RecordedPrompt {
  readonly kind: 'prompt';
  /** What the user says, turn by turn; a record of whole messages is one turn. */
  readonly turns: readonly Ask[];
  readonly outputTokens: number | null;
  readonly due: Seconds | null;
}
export interface RecordedBody {
  readonly kind: 'body';
  readonly body: Readonly<Record<string, unknown>>;
  readonly due: Seconds | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** Tokens of a block that `hash_ids` name (Mooncake's traces: https://github.com/kvcache-ai/Mooncake, FAST25 release). */
const MOONCAKE_BLOCK = 512;
/** Characters of a token of English text, about: for answers whose length a data set does not say. */
const CHARACTERS_PER_TOKEN = 4;
const MOST_TOKENS = 16_000_000;

/** Reads a record; throws a TraceError that names the line when it asks nothing. */
export function readRecord(
  path: string,
  { line, value }: Line,
  seed: number,
): RecordedPrompt | RecordedBody {
  const fail = (what: string) => datasetError(path, line, what);
  if (typeof value === 'string') return prompt([value], {});
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw fail('is no JSON object');
  }
  const fields = value as Fields;
  const due = dueOf(fields, fail);
  const body = fields['body'];
  if (isObject(body)) return { kind: 'body', body, due };
  if (typeof fields['input_length'] === 'number') {
    return { ...prompt([traceText(fields, line, seed, fail)], fields), due };
  }
  const turns = turnsOf(fields, fail);
  if (turns === null) {
    throw fail(
      'asks nothing: expected prompt, messages, text, input, conversations, turns, body or input_length',
    );
  }
  return { ...prompt(turns, fields), due };
}

function prompt(turns: readonly Ask[], fields: Fields): RecordedPrompt {
  return { kind: 'prompt', turns, outputTokens: outputTokensOf(fields), due: null };
}

function turnsOf(fields: Fields, fail: (what: string) => Error): readonly Ask[] | null {
  const { messages, conversations, turns } = fields;
  if (Array.isArray(messages)) {
    if (messages.length === 0 || !messages.every(isMessage)) {
      throw fail('messages is no list of {role, content}');
    }
    return [messages];
  }
  const said = conversations ?? fields['conversation'];
  if (Array.isArray(said)) return shareGptTurns(said, fail);
  if (Array.isArray(turns)) {
    const texts = turns.map((turn) => (typeof turn === 'string' ? turn : firstText(turn)));
    if (texts.length === 0 || texts.some((text) => text === null)) {
      throw fail('turns is no list of texts');
    }
    return texts.filter((text) => text !== null);
  }
  const { input } = fields;
  if (Array.isArray(input) && input.length > 0 && input.every(isMessage)) return [input];
  const text = firstText(fields);
  return text === null ? null : [text];
}

/** What a record or a turn calls its text. */
function firstText(fields: unknown): string | null {
  if (!isObject(fields)) return null;
  for (const name of ['prompt', 'text', 'text_input', 'input', 'question', 'instruction']) {
    const value = fields[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  return null;
}

/** ShareGPT: `from` human or user, gpt or assistant. */
function shareGptTurns(said: readonly unknown[], fail: (what: string) => Error): readonly string[] {
  const turns = said
    .filter(isObject)
    .filter(({ from, role }) => ['human', 'user'].includes(String(from ?? role)))
    .map(({ value, content }) => value ?? content)
    .filter((text) => typeof text === 'string' && text !== '') as string[];
  if (turns.length === 0) throw fail('holds no turn of a human');
  return turns;
}

/** What the answer may be long, in any of the names that there are; of ShareGPT about as long as the answer that is there. */
function outputTokensOf(fields: Fields): number | null {
  for (const name of [
    'output_length',
    'max_tokens',
    'max_completion_tokens',
    'max_output_tokens',
    'output_tokens',
    'output_tokens_count',
  ]) {
    const value = fields[name];
    if (typeof value === 'number' && value >= 1 && value <= MOST_TOKENS) return Math.round(value);
  }
  const said = fields['conversations'] ?? fields['conversation'];
  const answer = Array.isArray(said)
    ? said
        .filter(isObject)
        .find(({ from, role }) => ['gpt', 'assistant'].includes(String(from ?? role)))
    : undefined;
  const text = answer?.['value'] ?? answer?.['content'];
  if (typeof text !== 'string') return null;
  return Math.max(1, Math.round(text.length / CHARACTERS_PER_TOKEN));
}

/** A `timestamp` is milliseconds from the beginning of the data, as Mooncake's and AIPerf's are. */
function dueOf(fields: Fields, fail: (what: string) => Error): Seconds | null {
  const { timestamp } = fields;
  if (timestamp === undefined || timestamp === null) return null;
  if (typeof timestamp === 'number' && Number.isFinite(timestamp) && timestamp >= 0) {
    return timestamp / 1e3;
  }
  throw fail('timestamp is no number of milliseconds');
}

/** Words of the length that a trace tells; equal `hash_ids` are equal blocks, so that prefixes are shared as they were. */
function traceText(
  fields: Fields,
  line: number,
  seed: number,
  fail: (what: string) => Error,
): string {
  const length = fields['input_length'];
  if (
    typeof length !== 'number' ||
    !Number.isInteger(length) ||
    length < 1 ||
    length > MOST_TOKENS
  ) {
    throw fail('input_length is no number of tokens');
  }
  const ids = Array.isArray(fields['hash_ids']) ? fields['hash_ids'] : [];
  const blocks: string[] = [];
  let left = length;
  for (const id of ids) {
    if (left <= 0) break;
    if (typeof id !== 'number' || !Number.isSafeInteger(id))
      throw fail('hash_ids is no list of numbers');
    blocks.push(words(seed, STREAM.block, id, Math.min(left, MOONCAKE_BLOCK)));
    left -= MOONCAKE_BLOCK;
  }
  if (left > 0) blocks.push(words(seed, STREAM.words, line, left));
  return blocks.join(' ');
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isMessage(value: unknown): value is Message {
  return (
    isObject(value) &&
    typeof value['role'] === 'string' &&
    ('content' in value || 'tool_calls' in value)
  );
}
