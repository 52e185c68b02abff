import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';

/** An OpenAI-compatible server for tests of the command: it answers what a test tells it to, and keeps what it was asked. */
export interface LoadServer {
  readonly url: string;
  /** Bodies of the requests so far, in the order in which they came. */
  readonly asked: Record<string, unknown>[];
  readonly headers: IncomingMessage['headers'][];
  models: string[];
  /** What the next requests get; `stream` by default. */
  answer: 'stream' | 'slow' | '404' | '500' | 'cut';
  close(): Promise<void>;
}

/** Time to the first token, and between tokens; a slow answer takes many times as long. */
const FIRST_MS = 5;
const NEXT_MS = 2;
const SLOW_FACTOR = 200;

/** On a free port of the loopback, or on a unix socket. */
export async function startLoadServer(socket?: string): Promise<LoadServer> {
  const state: LoadServer = {
    url: '',
    asked: [],
    headers: [],
    models: ['tiny'],
    answer: 'stream',
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const server = createServer((request, response) => {
    void handle(request, response, state);
  });
  if (socket === undefined) server.listen(0, '127.0.0.1');
  else server.listen(socket);
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return Object.assign(state, { url: `http://127.0.0.1:${port}` });
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  state: LoadServer,
): Promise<void> {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: state.models.map((id) => ({ id })) }));
    return;
  }
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const body = JSON.parse(text) as Record<string, unknown>;
  state.asked.push(body);
  state.headers.push(request.headers);
  if (state.answer === '404' || state.answer === '500') {
    response.writeHead(Number(state.answer), { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `no model ${String(body['model'])}` } }));
    return;
  }
  await stream(response, body, state.answer);
}

async function stream(
  response: ServerResponse,
  body: Record<string, unknown>,
  answer: LoadServer['answer'],
): Promise<void> {
  const factor = answer === 'slow' ? SLOW_FACTOR : 1;
  const tokens = typeof body['max_tokens'] === 'number' ? body['max_tokens'] : 4;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (event: unknown) => response.write(`data: ${JSON.stringify(event)}\n\n`);
  await pause(FIRST_MS * factor);
  for (let token = 0; token < tokens && !response.destroyed; token++) {
    if (token > 0) await pause(NEXT_MS * factor);
    if (answer === 'cut' && token === 1) {
      response.destroy();
      return;
    }
    send({ choices: [{ index: 0, delta: { content: 'word ' } }] });
  }
  const prompt = JSON.stringify(body).split(' ').length;
  send({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: tokens } });
  response.end('data: [DONE]\n\n');
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
