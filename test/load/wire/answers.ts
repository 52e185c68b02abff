/** Bytes of answers. */

/** What the events of a chat stream have in common. */
const CHUNK = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'm',
};

/** A chunk of a chat stream with this delta. */
export function chunk(delta: object, more: object = {}): object {
  return { ...CHUNK, choices: [{ index: 0, delta, finish_reason: null, ...more }] };
}

export const ROLE: object = chunk({ role: 'assistant', content: '' });
export const STOP: object = chunk({}, { finish_reason: 'stop' });

/** The chunk with the usage, and no choices. */
export function usageChunk(input: number, output: number): object {
  return {
    ...CHUNK,
    choices: [],
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      prompt_tokens_details: { cached_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 1 },
    },
  };
}

/** Server-sent events of these data; a string goes as it is. */
export function sse(...data: (object | string)[]): string {
  return data
    .map((one) => `data: ${typeof one === 'string' ? one : JSON.stringify(one)}\n\n`)
    .join('');
}

/** A whole chat stream with these contents. */
export function chatStream(...contents: string[]): string {
  return sse(ROLE, ...contents.map((content) => chunk({ content })), STOP, '[DONE]');
}

/** In chunked transfer coding, each piece one chunk. */
export function chunked(...pieces: (string | Buffer)[]): Buffer {
  const parts = pieces.flatMap((piece) => {
    const bytes = Buffer.from(piece);
    return bytes.length === 0
      ? []
      : [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')];
  });
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

export const SSE_HEAD =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

/** A stream as most servers send it. */
export function streamed(text: string, head: string = SSE_HEAD): Buffer {
  return Buffer.concat([Buffer.from(head), chunked(text)]);
}

/** A JSON answer with a length. */
export function json(value: unknown, status = 200, headers = ''): string {
  const body = JSON.stringify(value);
  return `HTTP/1.1 ${status} Whatever\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** A whole chat answer. */
export function completion(content: string): object {
  return {
    id: 'chatcmpl-2',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
  };
}
