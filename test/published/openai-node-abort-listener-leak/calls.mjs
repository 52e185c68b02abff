// Requests with the one signal that ends the program's work.
import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import OpenAI from 'openai';

const BODY = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hi' } }],
});

export async function connect() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(BODY);
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
  const shutdown = new AbortController();
  setMaxListeners(0, shutdown.signal);
  return { client: new OpenAI({ apiKey: 'x', baseURL }), signal: shutdown.signal };
}

export async function ask({ client, signal }) {
  const messages = [{ role: 'user', content: 'hi' }];
  const answer = await client.chat.completions.create({ model: 'm', messages }, { signal });
  return answer.choices.length;
}
