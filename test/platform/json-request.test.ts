import { afterEach, describe, expect, it } from 'vitest';
import { askForJson } from '../../src/platform/json-request.ts';
import { type ApiServer, apiServer, sendJson } from '../commands/session/api-server.ts';

const open: ApiServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

async function serverOf(answer: Parameters<typeof apiServer>[0]): Promise<URL> {
  const server = await apiServer(answer);
  open.push(server);
  return new URL(server.url);
}

const question = { headers: {}, body: null, limit: 10, size: 1024 };

describe('a question for JSON', () => {
  it('has its answer with status and headers, whatever these are', async () => {
    const url = await serverOf((_, response) => sendJson(response, 418, { a: 1 }, { 'x-b': 'c' }));
    expect(await askForJson({ ...question, url })).toMatchObject({
      ended: 'answer',
      status: 418,
      headers: { 'x-b': 'c' },
      json: { a: 1 },
    });
  });

  it('has no JSON in what is nested so deep that it would be dear to parse', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const url = await serverOf((_, response) => response.end(deep));
    const answer = await askForJson({ ...question, url, size: 2 ** 20 });
    expect(answer).toMatchObject({ ended: 'answer', status: 200 });
    expect(answer.ended === 'answer' ? answer.json : 0).toBeUndefined();
  });

  it('ends when nobody answers within its limit', async () => {
    const url = await serverOf(() => {});
    expect(await askForJson({ ...question, url, limit: 0.05 })).toEqual({
      ended: 'unanswered',
      why: 'it did not answer within 50 ms',
    });
  });

  it('ends when an answer does not', async () => {
    const url = await serverOf((_, response) => {
      response.writeHead(200);
      response.write('{"a":');
    });
    expect(await askForJson({ ...question, url, limit: 0.2 })).toMatchObject({
      ended: 'unanswered',
    });
  });

  it('ends when an answer is too large or breaks off', async () => {
    const large = await serverOf((_, response) => response.end('x'.repeat(2000)));
    expect(await askForJson({ ...question, url: large })).toMatchObject({ ended: 'unanswered' });
    const broken = await serverOf((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{');
      setImmediate(() => response.destroy());
    });
    expect(await askForJson({ ...question, url: broken })).toMatchObject({
      ended: 'unanswered',
      why: 'the connection broke within its answer',
    });
  });

  it('says what the system calls a refusal', async () => {
    const url = await serverOf(() => {});
    await open.splice(0)[0]?.close();
    expect(await askForJson({ ...question, url })).toEqual({
      ended: 'unanswered',
      why: 'ECONNREFUSED',
    });
  });
});
