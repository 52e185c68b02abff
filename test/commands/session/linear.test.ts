import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { fetchLinearTicket } from '../../../src/commands/session/sources/linear.ts';
import { TraceError } from '../../../src/core/errors.ts';
import { type ApiServer, apiServer, sendJson } from './api-server.ts';

const KEY = 'lin_api_planted0123456789';
const open: ApiServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

async function api(
  answer: (response: ServerResponse, variables: { id: string; after: string | null }) => void,
) {
  const server = await apiServer((_, response, body) =>
    answer(response, JSON.parse(body).variables),
  );
  open.push(server);
  return { server, env: { TRACEWRIGHT_LINEAR_API: `${server.url}/graphql`, LINEAR_API_KEY: KEY } };
}

function ticket(comments: readonly string[], endCursor: string | null = null) {
  return {
    data: {
      issue: {
        identifier: 'DYN-123',
        title: 'Prefill queue is not drained',
        description: 'After a restart of NATS.',
        url: 'https://linear.app/acme/issue/DYN-123/prefill',
        creator: { name: 'Maya' },
        comments: {
          nodes: comments.map((body) => ({
            body,
            createdAt: `2026-01-0${body}T00:00:00Z`,
            user: { name: 'Tom' },
          })),
          pageInfo: { hasNextPage: endCursor !== null, endCursor },
        },
      },
    },
  };
}

async function failureOf(promise: Promise<unknown>): Promise<TraceError> {
  const error = await promise.then(
    () => null,
    (one: unknown) => one,
  );
  expect(error).toBeInstanceOf(TraceError);
  return error as TraceError;
}

describe('a Linear ticket', () => {
  it('comes with its comments, page by page, the oldest first', async () => {
    const { server, env } = await api((response, { after }) =>
      sendJson(response, 200, after === null ? ticket(['4', '3'], 'cursor') : ticket(['2', '1'])),
    );
    const found = await fetchLinearTicket('dyn-123', env);
    expect(found).toMatchObject({
      title: 'Prefill queue is not drained',
      body: 'After a restart of NATS.',
      author: 'Maya',
      missing: null,
    });
    expect(found.comments.map(({ body }) => body)).toEqual(['1', '2', '3', '4']);
    expect(server.asked.map(({ body }) => JSON.parse(body).variables)).toEqual([
      { id: 'DYN-123', after: null },
      { id: 'DYN-123', after: 'cursor' },
    ]);
    expect(server.asked.map(({ authorization }) => authorization)).toEqual([KEY, KEY]);
  });

  it('is found by its address too', async () => {
    const { server, env } = await api((response) => sendJson(response, 200, ticket([])));
    await fetchLinearTicket('https://linear.app/acme/issue/DYN-123/prefill-queue', env);
    expect(JSON.parse(server.asked[0]?.body ?? '').variables.id).toBe('DYN-123');
  });

  it('of 1 MB is read whole, and one without text is empty', async () => {
    const long = ticket([]);
    long.data.issue.description = 'x'.repeat(2 ** 20);
    const first = await api((response) => sendJson(response, 200, long));
    expect((await fetchLinearTicket('DYN-123', first.env)).body).toHaveLength(2 ** 20);
    const empty = { data: { issue: { ...ticket([]).data.issue, description: null } } };
    const second = await api((response) => sendJson(response, 200, empty));
    expect((await fetchLinearTicket('DYN-123', second.env)).body).toBe('');
  });

  it('has at most ten pages of comments read, and says so', async () => {
    const { server, env } = await api((response) =>
      sendJson(response, 200, ticket(['1'], 'again')),
    );
    expect((await fetchLinearTicket('DYN-123', env)).missing).toBe('only 10 comments were read');
    expect(server.asked).toHaveLength(10);
  });
});

describe('a Linear that refuses', () => {
  const errors = (message: string, code: string) => ({
    errors: [{ message, extensions: { code } }],
  });
  it.each([
    [
      401,
      errors('Authentication required, not authenticated', 'AUTHENTICATION_ERROR'),
      {},
      'ERR_LINEAR_AUTH',
      /key is wrong/,
    ],
    [
      400,
      errors('Authentication required', 'AUTHENTICATION_ERROR'),
      {},
      'ERR_LINEAR_AUTH',
      /key is wrong/,
    ],
    [
      400,
      errors('Rate limit exceeded', 'RATELIMITED'),
      { 'x-ratelimit-requests-reset': String(Date.now() + 1700e3) },
      'ERR_LINEAR_RATE_LIMIT',
      /UTC, in 29 min/,
    ],
    [429, {}, {}, 'ERR_LINEAR_RATE_LIMIT', /in an hour/],
    [
      200,
      { data: null, ...errors('Entity not found: Issue', 'INPUT_ERROR') },
      {},
      'ERR_LINEAR_NOT_FOUND',
      /number/,
    ],
    [200, { data: { issue: null } }, {}, 'ERR_LINEAR_NOT_FOUND', /number/],
    [404, {}, {}, 'ERR_LINEAR_NOT_FOUND', /number/],
    [403, errors('Forbidden', 'FORBIDDEN'), {}, 'ERR_LINEAR_AUTH', /access to its team/],
    [500, errors('Internal error', 'INTERNAL_SERVER_ERROR'), {}, 'ERR_LINEAR', /later/],
  ] as const)('with %i says why and what to do', async (status, body, headers, code, remedy) => {
    const { env } = await api((response) => sendJson(response, status, body, headers));
    const error = await failureOf(fetchLinearTicket('DYN-123', env));
    expect([error.code, error.exitCode]).toEqual([code, 3]);
    expect(error.remedy).toMatch(remedy);
    expect(`${error.message} ${error.remedy} ${error.stack}`).not.toContain(KEY);
  });

  it('by a page that is no JSON, or by silence, is told', async () => {
    const first = await api((response) => response.end('<html>'));
    expect((await failureOf(fetchLinearTicket('DYN-123', first.env))).message).toContain('no JSON');
    const second = await api((response) => response.destroy());
    expect((await failureOf(fetchLinearTicket('DYN-123', second.env))).code).toBe(
      'ERR_LINEAR_UNREACHABLE',
    );
  });

  it('by a redirect is not followed: the key stays here', async () => {
    const other = await api((response) => sendJson(response, 200, ticket([])));
    const { env } = await api((response) =>
      sendJson(response, 307, {}, { location: `${other.server.url}/graphql` }),
    );
    expect((await failureOf(fetchLinearTicket('DYN-123', env))).code).toBe('ERR_LINEAR');
    expect(other.server.asked).toEqual([]);
  });
});

describe('what is asked for', () => {
  it.each([
    '123',
    'DYN',
    'DYN-12-3',
    '../DYN-1',
    'DYN-1"}',
    'https://linear.app.example.test/acme/issue/DYN-1',
  ])('"%s" is a mistake on the command line', async (id) => {
    expect((await failureOf(fetchLinearTicket(id, { LINEAR_API_KEY: KEY }))).exitCode).toBe(2);
  });

  it('needs a key, and says where it comes from', async () => {
    const error = await failureOf(fetchLinearTicket('DYN-1', {}));
    expect(error.exitCode).toBe(2);
    expect(error.remedy).toContain('Personal API keys');
  });
});
