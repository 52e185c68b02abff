import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', 'demo', 'server.py');

describe.each([...interpreters()])('the demo server on CPython $version', ({ path }) => {
  let server: Running;
  beforeAll(async () => {
    server = await startReady(path, [PROGRAM, '--seconds', '60']);
  });
  afterAll(() => server.stop());

  const url = (route: string): string => `http://127.0.0.1:${server.port}${route}`;
  const complete = (body: unknown): Promise<Response> =>
    fetch(url('/v1/chat/completions'), { method: 'POST', body: JSON.stringify(body) });
  const messages = [{ role: 'user', content: 'hello' }];

  it('lists its model', async () => {
    expect(await (await fetch(url('/v1/models'))).json()).toMatchObject({
      object: 'list',
      data: [{ id: 'demo' }],
    });
  });

  it('answers a chat completion whole, with its usage', async () => {
    expect(await (await complete({ model: 'demo', messages, max_tokens: 3 })).json()).toMatchObject(
      {
        object: 'chat.completion',
        choices: [
          { message: { role: 'assistant', content: 'The event loop ' }, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 },
      },
    );
  });

  it('streams a chat completion as server-sent events that end with [DONE]', async () => {
    const answer = await complete({ model: 'demo', messages, max_tokens: 3, stream: true });
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    const events = (await answer.text()).split('\n\n').filter((event) => event !== '');
    expect(events.at(-1)).toBe('data: [DONE]');
    const chunks = events
      .slice(0, -1)
      .map(
        (event) =>
          JSON.parse(event.replace('data: ', '')) as { choices: { delta: { content?: string } }[] },
      );
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(
      'The event loop ',
    );
  });

  it.each([
    [
      'something that is no request',
      400,
      () => fetch(url('/v1/chat/completions'), { method: 'POST', body: 'x' }),
    ],
    ['a path it does not serve', 404, () => fetch(url('/v1/embeddings'))],
  ])('refuses %s as the API does', async (_, status, request) => {
    const answer = await request();
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
  });
});
