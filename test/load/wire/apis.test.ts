import { describe, expect, test } from 'vitest';
import type { WireOptions } from '../../../src/load/contracts.ts';
import { completion, json, sse, streamed } from './answers.ts';
import { ask } from './exchange.ts';
import type { ScriptedServer } from './scripted-server.ts';
import { wireTests } from './wire-tests.ts';

const { serve, wireTo, seen } = wireTests();

describe('other endpoints', () => {
  const apiOf = (server: ScriptedServer, api: WireOptions['endpoint']['api']) => ({
    endpoint: { ...server.endpoint, api },
  });

  test('completions, streamed', async () => {
    const events = ['a', 'b'].map((text) => ({
      id: 'cmpl-1',
      choices: [{ index: 0, text, finish_reason: null }],
    }));
    const last = { id: 'cmpl-1', choices: [{ index: 0, text: '', finish_reason: 'length' }] };
    const server = await serve(() => [streamed(sse(...events, last, '[DONE]'))]);
    const exchange = await ask(wireTo(server, apiOf(server, 'completions')));
    expect(exchange).toMatchObject({
      error: null,
      text: 'ab',
      finishReason: 'length',
      responseId: 'cmpl-1',
    });
    expect(exchange.outputs).toHaveLength(2);
  });

  /** Typed events: the type is in the JSON and in an event line. */
  const typed = (...events: { type: string }[]) =>
    events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const created = {
    type: 'response.created',
    response: { id: 'resp-1', status: 'in_progress', output: [] },
  };
  const delta = (type: string, n: number, text: string) => ({
    type: `response.${type}.delta`,
    item_id: 'i',
    output_index: 0,
    sequence_number: n,
    delta: text,
  });
  const completed = {
    type: 'response.completed',
    response: {
      id: 'resp-1',
      status: 'completed',
      error: null,
      incomplete_details: null,
      output: [{ type: 'message', content: [{ type: 'output_text', text: 'abc' }] }],
      usage: {
        input_tokens: 4,
        output_tokens: 6,
        input_tokens_details: { cached_tokens: 1 },
        output_tokens_details: { reasoning_tokens: 3 },
      },
    },
  };

  test('responses, streamed', async () => {
    const text = typed(
      created,
      delta('reasoning_text', 1, 'r'),
      delta('reasoning_summary_text', 2, 'r'),
      delta('output_text', 3, 'a'),
      delta('output_text', 4, 'b'),
      delta('output_text', 5, ''),
      delta('output_text', 6, 'c'),
      delta('function_call_arguments', 7, '{}'),
      completed,
    );
    const server = await serve(() => [streamed(text)]);
    const exchange = await ask(wireTo(server, apiOf(server, 'responses')));
    expect(exchange).toMatchObject({
      error: null,
      text: 'abc',
      responseId: 'resp-1',
      finishReason: 'completed',
      inputTokens: 4,
      outputTokens: 6,
      cachedTokens: 1,
      reasoningTokens: 3,
    });
    expect(exchange.outputs).toHaveLength(6);
  });

  test('responses whose only output is in the last event', async () => {
    const server = await serve(() => [streamed(typed(created, completed))]);
    const exchange = await ask(wireTo(server, apiOf(server, 'responses')));
    expect(exchange).toMatchObject({ error: null, text: 'abc' });
    expect(exchange.outputs).toHaveLength(1);
  });

  test.each([
    [
      {
        type: 'response.failed',
        response: { id: 'r', status: 'failed', error: { code: 'server_error', message: 'boom' } },
      },
    ],
    [{ type: 'error', code: 'server_error', message: 'boom', param: null }],
    [{ type: 'error', error: { type: 'server_error', message: 'boom' } }],
  ])('responses that fail: %o', async (event) => {
    const server = await serve(() => [
      streamed(typed(created, delta('output_text', 1, 'a'), event)),
    ]);
    const exchange = await ask(wireTo(server, apiOf(server, 'responses')));
    expect(exchange.error).toMatchObject({ class: 'error_event', detail: 'server_error: boom' });
  });

  test('responses that stop at a limit', async () => {
    const event = {
      type: 'response.incomplete',
      response: {
        ...completed.response,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      },
    };
    const server = await serve(() => [
      streamed(typed(created, delta('output_text', 1, 'a'), event)),
    ]);
    const exchange = await ask(wireTo(server, apiOf(server, 'responses')));
    expect(exchange).toMatchObject({ error: null, finishReason: 'max_output_tokens' });
  });

  test('responses without their last event are cut', async () => {
    const server = await serve(() => [streamed(typed(created, delta('output_text', 1, 'a')))]);
    const exchange = await ask(wireTo(server, apiOf(server, 'responses')));
    expect(exchange.error?.class).toBe('cut');
  });

  test('chat that is not streamed', async () => {
    const exchange = await seen([json(completion('hello'))], { streaming: false });
    expect(exchange).toMatchObject({
      error: null,
      text: 'hello',
      inputTokens: 5,
      outputTokens: 3,
      finishReason: 'stop',
    });
    expect(exchange.outputs).toEqual([exchange.endedAt]);
  });

  test('responses that are not streamed', async () => {
    const server = await serve(() => [json(completed.response)]);
    const exchange = await ask(wireTo(server, { ...apiOf(server, 'responses'), streaming: false }));
    expect(exchange).toMatchObject({ error: null, text: 'abc', outputTokens: 6 });
  });

  test.each([[[0.5, 1]], ['AAAAPw==']])('embeddings: %o', async (embedding) => {
    const answer = { object: 'list', data: [{ index: 0, embedding }], usage: { prompt_tokens: 8 } };
    const server = await serve(() => [json(answer)]);
    const exchange = await ask(
      wireTo(server, { ...apiOf(server, 'embeddings'), streaming: false }),
    );
    expect(exchange).toMatchObject({ error: null, inputTokens: 8, outputTokens: null });
    expect(exchange.outputs).toHaveLength(1);
  });
});
