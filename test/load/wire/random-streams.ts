import type { LoadApi } from '../../../src/core/load-types.ts';

/** Streams of events made up from random numbers: any shape that a server may send, and, corrupted, those that none should. */

/** Uniform on [0, 1). */
export type RandomNumber = () => number;

export function oneOf<T>(random: RandomNumber, values: readonly [T, ...T[]]): T {
  return values[Math.floor(random() * values.length)] ?? values[0];
}

function chance(random: RandomNumber, share: number): boolean {
  return random() < share;
}

/** How one server writes its events: the same for all events of a stream. */
interface Style {
  readonly api: LoadApi;
  readonly indent: number | undefined;
  readonly spaced: boolean;
  readonly ascii: boolean;
  readonly reversed: boolean;
  readonly field: string;
  readonly usage: boolean;
  readonly logprobs: boolean;
  readonly obfuscation: boolean;
  readonly choices: number;
  readonly clock: boolean;
  readonly lineEnd: string;
  readonly prefix: string;
  readonly eventField: boolean;
  readonly comments: number;
}

const CONTENTS = [
  'a',
  ' word',
  ' Wort für Wort',
  '\n',
  '"quoted"',
  '\\',
  '\\"',
  '',
  '😀',
  'content',
  '{"content":"x"}',
  'data: [DONE]\n\n',
  'm',
  '0',
  '\u2028',
  '\u0000',
  '\ud800',
  'x'.repeat(300),
] as const;

function randomStyle(random: RandomNumber): Style {
  return {
    api: oneOf<LoadApi>(random, ['chat', 'chat', 'completions', 'responses']),
    indent: chance(random, 0.1) ? 2 : undefined,
    spaced: chance(random, 0.3),
    ascii: chance(random, 0.3),
    reversed: chance(random, 0.3),
    field: oneOf(random, [
      'content',
      'content',
      'reasoning_content',
      'reasoning',
      'both',
      'arguments',
    ]),
    usage: chance(random, 0.2),
    logprobs: chance(random, 0.15),
    obfuscation: chance(random, 0.1),
    choices: oneOf(random, [1, 1, 1, 2, 3]),
    clock: chance(random, 0.3),
    lineEnd: oneOf(random, ['\n', '\n', '\n', '\r\n', '\r', '']),
    prefix: oneOf(random, ['data: ', 'data: ', 'data:']),
    eventField: chance(random, 0.2),
    comments: oneOf(random, [0, 0, 0.2]),
  };
}

/** One stream: its API and its bytes. */
export function randomStream(random: RandomNumber): {
  readonly api: LoadApi;
  readonly bytes: Buffer;
} {
  const style = randomStyle(random);
  let text = chance(random, 0.05) ? '\ufeff' : '';
  const count = Math.floor(random() * 30);
  for (let n = 0; n < count; n++) text += encode(random, style, outputEvent(random, style, n));
  const last = random();
  if (last < 0.8) text += encode(random, style, finalEvent(style, count));
  if (style.api !== 'responses' && last < 0.75) text += encode(random, style, usageEvent(count));
  if (last > 0.95) text += encode(random, style, { error: { message: 'boom', code: 500 } });
  if (chance(random, 0.75)) text += encode(random, style, '[DONE]');
  return { api: style.api, bytes: Buffer.from(text) };
}

function outputEvent(random: RandomNumber, style: Style, n: number): object {
  const content = oneOf(random, CONTENTS);
  const more = style.obfuscation ? { obfuscation: oneOf(random, CONTENTS) } : {};
  if (style.api === 'responses') {
    const type = oneOf(random, [
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.reasoning_text.delta',
      'response.in_progress',
    ]);
    return {
      type,
      item_id: 'msg-1',
      sequence_number: n,
      content_index: 0,
      delta: content,
      ...more,
    };
  }
  const index = Math.floor(random() * style.choices);
  const choice =
    style.api === 'completions'
      ? { index, text: content, finish_reason: null }
      : { index, delta: deltaOf(style, content), finish_reason: null };
  const logprobs = { content: [{ token: content, logprob: -random(), bytes: [1, 2, n] }] };
  return {
    id: 'm',
    created: style.clock ? 1_700_000_000 + n : 1_700_000_000,
    model: 'm',
    choices: [style.logprobs ? { ...choice, logprobs } : choice],
    ...more,
    ...(style.usage
      ? { usage: { prompt_tokens: 5, completion_tokens: n, total_tokens: 5 + n } }
      : {}),
  };
}

function deltaOf(style: Style, content: string): object {
  if (style.field === 'both')
    return { content: null, reasoning: content, reasoning_content: content };
  if (style.field === 'arguments') {
    return { tool_calls: [{ index: 0, function: { arguments: content } }] };
  }
  return { [style.field]: content };
}

function finalEvent(style: Style, count: number): object {
  if (style.api === 'responses') {
    const usage = { input_tokens: 5, output_tokens: count };
    return { type: 'response.completed', response: { id: 'r', status: 'completed', usage } };
  }
  return { id: 'm', choices: [{ index: 0, delta: {}, text: '', finish_reason: 'stop' }] };
}

function usageEvent(count: number): object {
  return { id: 'm', choices: [], usage: { prompt_tokens: 5, completion_tokens: count } };
}

/** An event as lines. */
function encode(random: RandomNumber, style: Style, event: object | string): string {
  const end = () => style.lineEnd || oneOf(random, ['\n', '\r\n', '\r']);
  let text = '';
  if (chance(random, style.comments)) text += `: a comment${end()}`;
  if (chance(random, style.comments)) text += `id: 7${end()}${end()}`;
  if (style.eventField && typeof event === 'object') {
    text += `event: ${'type' in event ? String(event.type) : 'message'}${end()}`;
  }
  for (const line of jsonOf(style, event).split('\n')) text += `${style.prefix}${line}${end()}`;
  return text + end();
}

function jsonOf(style: Style, event: object | string): string {
  if (typeof event === 'string') return event;
  const ordered = style.reversed ? Object.fromEntries(Object.entries(event).toReversed()) : event;
  let text = JSON.stringify(
    ordered,
    null,
    style.spaced && style.indent === undefined ? 1 : style.indent,
  );
  // As Python's json.dumps writes it.
  if (style.spaced && style.indent === undefined) text = text.replaceAll(/\n */g, ' ');
  if (!style.ascii) return text;
  return text.replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const EVIL = Buffer.from('"\\{}[]:,\n\r 0-9eE.u\u0000\u001fdata: \u00e4tn');

/** The same with a few bytes changed, lost, doubled or added. */
export function corrupted(random: RandomNumber, bytes: Buffer): Buffer {
  let result: Buffer = Buffer.from(bytes);
  const changes = 1 + Math.floor(random() * 3);
  for (let i = 0; i < changes && result.length > 0; i++) {
    const at = Math.floor(random() * result.length);
    const to = at + 1 + Math.floor(random() * 3);
    const evil = EVIL[Math.floor(random() * EVIL.length)] ?? 0;
    const [before, after] = [result.subarray(0, at), result.subarray(at)];
    result = oneOf<() => Buffer>(random, [
      () => Buffer.concat([before, Buffer.from([evil]), after.subarray(1)]),
      () => Buffer.concat([before, Buffer.from([evil]), after]),
      () => Buffer.concat([before, result.subarray(to)]),
      () => Buffer.concat([before, result.subarray(at, to), after]),
      () => Buffer.concat([before, Buffer.from([Math.floor(random() * 256)]), after.subarray(1)]),
    ])();
  }
  return result;
}

/** The bytes in pieces, cut anywhere: few large ones, many small ones, or each byte alone. */
export function pieces(random: RandomNumber, bytes: Buffer): Buffer[] {
  const size = oneOf(random, [1, 60, 400, 4000, 4000]);
  const result: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = size === 1 ? 1 : 1 + Math.floor(random() * 2 * size);
    result.push(bytes.subarray(at, at + length));
    at += length;
  }
  return result;
}
