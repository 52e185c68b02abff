import type { LoadApi, LoadErrorClass } from '../../../src/core/load-types.ts';

/** What a stream says, read in the plainest way from all of its bytes at once. Slow, short, and nothing of it is the wire's. */
export interface PlainReading {
  readonly outputs: number;
  readonly text: string;
  readonly error: LoadErrorClass | null;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly finishReason: string | null;
}

interface PlainEvent {
  readonly data: string;
  readonly type: string;
}

/** Server-sent events as the standard words it. */
export function plainEvents(bytes: Buffer): { events: PlainEvent[]; unfinished: string } {
  const events: PlainEvent[] = [];
  let data: string[] = [];
  let type = '';
  let comment = '';
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\r|\n/);
  // What comes after the last line end is no line.
  const rest = lines.pop() ?? '';
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (line === '') {
      if (data.length > 0) events.push({ data: data.join('\n'), type });
      else if (type === 'error') events.push({ data: JSON.stringify({ error: comment }), type });
      data = [];
      type = '';
      comment = '';
    } else if (name === '') comment = value;
    else if (name === 'data') data.push(value);
    else if (name === 'event') type = value;
    else if (name === 'error') [type, comment] = [name, value];
  }
  const lastData = /^data: ?(.*)$/s.exec(rest)?.[1];
  if (rest !== '') data = data.length === 0 && lastData !== undefined ? [lastData] : [];
  return { events, unfinished: data.join('\n') };
}

// oxlint-disable-next-line typescript/no-explicit-any -- any JSON
type Json = any;

/** Reads the stream of one API. */
export function readPlainly(api: LoadApi, bytes: Buffer): PlainReading {
  const reading: { -readonly [K in keyof PlainReading]: PlainReading[K] } = {
    outputs: 0,
    text: '',
    error: null,
    inputTokens: null,
    outputTokens: null,
    finishReason: null,
  };
  let ended = false;
  const { events, unfinished } = plainEvents(bytes);
  for (const { data, type } of events) {
    if (data === '') continue;
    if (data === '[DONE]') {
      ended = true;
      continue;
    }
    let json: Json;
    try {
      json = JSON.parse(data);
    } catch {
      json = null;
    }
    const isObject = typeof json === 'object' && json !== null && !Array.isArray(json);
    if (!isObject || type === 'error' || isError(api, json)) {
      reading.error = type === 'error' || isObject ? 'error_event' : 'malformed';
      break;
    }
    const usage =
      api !== 'responses'
        ? json.usage
        : json.type === 'response.completed'
          ? json.response?.usage
          : null;
    if (typeof usage === 'object' && usage !== null && !Array.isArray(usage)) {
      reading.inputTokens =
        countOf(usage.prompt_tokens ?? usage.input_tokens) ?? reading.inputTokens;
      reading.outputTokens =
        countOf(usage.completion_tokens ?? usage.output_tokens) ?? reading.outputTokens;
    }
    const said = api === 'responses' ? readTyped(json) : readChoices(json);
    if (said.some) reading.outputs++;
    reading.text += said.text;
    reading.finishReason ??= said.finish;
    ended ||= said.ended;
  }
  if (reading.error !== null) return reading;
  if (bytes.length === 0) reading.error = 'empty';
  else if (!ended && unfinished !== '[DONE]') {
    if (events.length === 0) reading.error = 'malformed';
    else if (reading.finishReason === null) reading.error = 'cut';
  }
  if (reading.error === null && reading.outputs === 0) reading.error = 'empty';
  return reading;
}

function countOf(value: unknown): number | null {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : null;
}

function isError(api: LoadApi, json: Json): boolean {
  if (api === 'responses') {
    if (String(json.type).endsWith('.delta') || json.response) return false;
  }
  if (json.error !== undefined && json.error !== null && json.error !== false) return true;
  if (json.choices !== undefined || json.data !== undefined) return false;
  if (json.object === 'error' || json.type === 'error') return true;
  if (json.detail !== undefined && json.id === undefined) return true;
  return typeof json.message === 'string' && (json.code !== undefined || json.type !== undefined);
}

interface Said {
  readonly some: boolean;
  readonly text: string;
  readonly finish: string | null;
  readonly ended: boolean;
}

function readTyped(json: Json): Said {
  const none = { some: false, text: '', finish: null, ended: false };
  if (String(json.type).endsWith('.delta')) {
    const some = typeof json.delta === 'string' && json.delta !== '';
    const isText = json.type === 'response.output_text.delta' && typeof json.delta === 'string';
    return { ...none, some, text: isText ? json.delta : '' };
  }
  if (json.type !== 'response.completed' || typeof json.response !== 'object') return none;
  return { ...none, ended: true, finish: json.response?.status ?? null };
}

function readChoices(json: Json): Said {
  const choices: Json[] = Array.isArray(json.choices) ? json.choices : [];
  const strings: string[] = [];
  let text = '';
  let finish: string | null = null;
  for (const [i, choice] of choices.entries()) {
    if (typeof choice !== 'object' || choice === null || Array.isArray(choice)) continue;
    if (typeof choice.finish_reason === 'string') finish ??= choice.finish_reason;
    const delta = choice.delta ?? {};
    const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    const pieces = [
      choice.text,
      delta.content,
      delta.reasoning_content,
      delta.reasoning,
      delta.refusal,
    ];
    for (const call of calls) pieces.push(call?.function?.name, call?.function?.arguments);
    for (const piece of pieces) if (typeof piece === 'string' && piece !== '') strings.push(piece);
    if (choice.index === 0 || (choice.index === undefined && i === 0)) {
      for (const piece of [choice.text, delta.content])
        if (typeof piece === 'string') text += piece;
    }
  }
  return { some: strings.length > 0, text, finish, ended: false };
}
