import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { fetchGithubIssue } from '../../../src/commands/session/sources/github.ts';
import { TraceError } from '../../../src/core/errors.ts';
import { type ApiServer, apiServer, sendJson } from './api-server.ts';

const URL_OF_ISSUE = 'https://github.com/acme/engine/issues/42';
const TOKEN = 'ghp_planted0123456789abcdef';
const ISSUE = {
  number: 42,
  title: '[Bug]: decode stalls',
  body: 'It stalls.',
  user: { login: 'maya' },
  comments: 0,
};

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

/** An API whose answers are by path, without its query. */
async function api(
  answers: Readonly<Record<string, (response: ServerResponse, path: string) => void>>,
): Promise<ApiServer> {
  const server = await apiServer((request, response) => {
    const path = request.url ?? '';
    const answer = answers[path.split('?')[0] ?? ''];
    if (answer === undefined) sendJson(response, 404, { message: 'Not Found', status: '404' });
    else answer(response, path);
  });
  open.push(server);
  return server;
}

function envOf(server: ApiServer, token: string | null = TOKEN): Record<string, string> {
  return { TRACEWRIGHT_GITHUB_API: server.url, ...(token === null ? {} : { GITHUB_TOKEN: token }) };
}

async function failureOf(promise: Promise<unknown>): Promise<TraceError> {
  const error = await promise.then(
    () => null,
    (one: unknown) => one,
  );
  expect(error).toBeInstanceOf(TraceError);
  return error as TraceError;
}

const PATH = '/repos/acme/engine/issues/42';

describe('a GitHub issue', () => {
  it('comes with its comments, page by page, by the Link header', async () => {
    const server = await api({
      [PATH]: (response) => sendJson(response, 200, { ...ISSUE, comments: 3 }),
      [`${PATH}/comments`]: (response, path) => {
        const page = Number(/[?&]page=(\d+)/.exec(path)?.[1]);
        const next = `<${server.url}${PATH}/comments?per_page=100&page=${page + 1}>; rel="next", <${server.url}${PATH}/comments?page=3>; rel="last"`;
        const comment = {
          user: { login: `user${page}` },
          created_at: '2026-01-02T03:04:05Z',
          body: `comment ${page}`,
        };
        sendJson(response, 200, [comment], page < 3 ? { link: next } : {});
      },
    });
    const issue = await fetchGithubIssue(URL_OF_ISSUE, envOf(server));
    expect(issue).toMatchObject({
      title: '[Bug]: decode stalls',
      body: 'It stalls.',
      author: 'maya',
      url: URL_OF_ISSUE,
      missing: null,
    });
    expect(issue.comments.map(({ author, body }) => `${author}: ${body}`)).toEqual([
      'user1: comment 1',
      'user2: comment 2',
      'user3: comment 3',
    ]);
    expect(server.asked.every(({ authorization }) => authorization === `Bearer ${TOKEN}`)).toBe(
      true,
    );
  });

  it('is asked for without a token where there is none', async () => {
    const server = await api({ [PATH]: (response) => sendJson(response, 200, ISSUE) });
    await fetchGithubIssue(`${URL_OF_ISSUE}#issuecomment-1`, envOf(server, null));
    expect(server.asked.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  it('may be a pull request, and have no body', async () => {
    const server = await api({
      [PATH]: (response) => sendJson(response, 200, { ...ISSUE, body: null }),
    });
    const issue = await fetchGithubIssue('https://github.com/acme/engine/pull/42', envOf(server));
    expect(issue.body).toBe('');
  });

  it('of 1 MB is read whole', async () => {
    const body = 'é'.repeat(2 ** 20);
    const server = await api({ [PATH]: (response) => sendJson(response, 200, { ...ISSUE, body }) });
    expect((await fetchGithubIssue(URL_OF_ISSUE, envOf(server))).body).toBe(body);
  });

  it('keeps what there is when its comments cannot be had', async () => {
    const server = await api({
      [PATH]: (response) => sendJson(response, 200, { ...ISSUE, comments: 7 }),
    });
    const issue = await fetchGithubIssue(URL_OF_ISSUE, envOf(server));
    expect(issue.title).toBe('[Bug]: decode stalls');
    expect(issue.missing).toContain('404');
  });

  it('has at most ten pages of comments read, and says so', async () => {
    const server = await api({
      [PATH]: (response) => sendJson(response, 200, { ...ISSUE, comments: 5000 }),
      [`${PATH}/comments`]: (response, path) =>
        sendJson(response, 200, [{ body: 'x' }], { link: `<${server.url}${path}>; rel="next"` }),
    });
    const issue = await fetchGithubIssue(URL_OF_ISSUE, envOf(server));
    expect(issue.missing).toBe('only the first 10 of 5000 comments were read');
    expect(server.asked).toHaveLength(11);
  });

  it('is followed where its repository was renamed', async () => {
    const server = await api({
      [PATH]: (response) =>
        sendJson(
          response,
          301,
          { message: 'Moved Permanently' },
          { location: '/repositories/7/issues/42' },
        ),
      '/repositories/7/issues/42': (response) => sendJson(response, 200, ISSUE),
    });
    expect((await fetchGithubIssue(URL_OF_ISSUE, envOf(server))).title).toBe(
      '[Bug]: decode stalls',
    );
  });
});

describe('a GitHub that refuses', () => {
  const reset = Math.floor(Date.now() / 1e3) + 1800;
  const clock = new Date(reset * 1e3).toISOString().slice(11, 19);

  it.each([
    [401, { message: 'Bad credentials' }, {}, 'ERR_GITHUB_AUTH', /Bad credentials/, /GITHUB_TOKEN/],
    [
      403,
      { message: 'API rate limit exceeded' },
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) },
      'ERR_GITHUB_RATE_LIMIT',
      /rate limit is used up/,
      new RegExp(`at ${clock} UTC, in 30 min`),
    ],
    [
      429,
      { message: 'You have exceeded a secondary rate limit' },
      { 'retry-after': '60' },
      'ERR_GITHUB_RATE_LIMIT',
      /secondary/,
      /UTC, in 1 min/,
    ],
    [
      403,
      { message: 'Resource protected by organization SAML enforcement' },
      {},
      'ERR_GITHUB_AUTH',
      /SAML/,
      /single sign-on/,
    ],
    [404, { message: 'Not Found' }, {}, 'ERR_GITHUB_NOT_FOUND', /HTTP 404/, /Check the address/],
    [410, { message: 'This issue was deleted' }, {}, 'ERR_GITHUB_NOT_FOUND', /deleted/, /deleted/],
    [502, { message: 'Server Error' }, {}, 'ERR_GITHUB', /HTTP 502/, /later/],
  ] as const)(
    'with %i says why and what to do',
    async (status, body, headers, code, why, remedy) => {
      const server = await api({ [PATH]: (response) => sendJson(response, status, body, headers) });
      const error = await failureOf(fetchGithubIssue(URL_OF_ISSUE, envOf(server)));
      expect(error.code).toBe(code);
      expect(error.exitCode).toBe(3);
      expect(error.message).toMatch(why);
      expect(error.remedy).toMatch(remedy);
      expect(`${error.message} ${error.remedy} ${error.stack}`).not.toContain(TOKEN);
    },
  );

  it('by silence is given up', async () => {
    const server = await api({ [PATH]: (response) => response.destroy() });
    const error = await failureOf(fetchGithubIssue(URL_OF_ISSUE, envOf(server)));
    expect(error.code).toBe('ERR_GITHUB_UNREACHABLE');
  });

  it('by a page that is no JSON is told from one', async () => {
    const server = await api({
      [PATH]: (response) => response.end('<html>Sign in to the hotel network</html>'),
    });
    const error = await failureOf(fetchGithubIssue(URL_OF_ISSUE, envOf(server)));
    expect(error.message).toContain('no JSON');
  });

  it('by an endless answer is cut off', async () => {
    const server = await api({
      [PATH]: (response) => {
        const chunk = Buffer.alloc(2 ** 20, 'x');
        const pump = (): void => {
          while (!response.destroyed && response.write(chunk));
          if (!response.destroyed) response.once('drain', pump);
        };
        pump();
      },
    });
    const error = await failureOf(fetchGithubIssue(URL_OF_ISSUE, envOf(server)));
    expect(error.message).toContain('larger than 32 MiB');
  });
});

describe('the token', () => {
  it('goes to no other host: neither by a redirect nor by a next page', async () => {
    const other = await api({ [PATH]: (response) => sendJson(response, 200, ISSUE) });
    const redirecting = await api({
      [PATH]: (response) => sendJson(response, 302, {}, { location: `${other.url}${PATH}` }),
    });
    const error = await failureOf(fetchGithubIssue(URL_OF_ISSUE, envOf(redirecting)));
    expect(error.message).toContain('another host');
    const paging = await api({
      [PATH]: (response) => sendJson(response, 200, { ...ISSUE, comments: 2 }),
      [`${PATH}/comments`]: (response) =>
        sendJson(response, 200, [{ body: 'x' }], { link: `<${other.url}/more>; rel="next"` }),
    });
    expect((await fetchGithubIssue(URL_OF_ISSUE, envOf(paging))).missing).toContain('another host');
    expect(other.asked).toEqual([]);
  });

  it('of GitHub is not sent to a server that the address names', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trace-gh-'));
    try {
      // gh would be asked when there is no token: it shows what it was called with.
      writeFileSync(
        join(folder, 'gh'),
        `#!/bin/sh\n[ "$1" = auth ] && exit 0\necho "$@" >> ${folder}/asked\necho '{"title":"by gh","comments":0}'\n`,
      );
      chmodSync(join(folder, 'gh'), 0o755);
      const env = { GITHUB_TOKEN: TOKEN, PATH: `${folder}:/usr/bin:/bin` };
      const issue = await fetchGithubIssue('https://git.example.test/acme/engine/issues/42', env);
      expect(issue.title).toBe('by gh');
      const { readFileSync } = await import('node:fs');
      expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe(
        'api --hostname git.example.test repos/acme/engine/issues/42\n',
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each(['line\nend', 'quoted “token”'])(
    'that no header takes is refused, and not shown',
    async (token) => {
      const server = await api({});
      const error = await failureOf(fetchGithubIssue(URL_OF_ISSUE, envOf(server, token)));
      expect(error.exitCode).toBe(2);
      expect(error.message).not.toContain(token);
    },
  );
});

describe('an address', () => {
  it.each([
    'acme/engine#42',
    'http://github.com/acme/engine/issues/42',
    'https://user:pw@github.com/acme/engine/issues/42',
    'https://github.com/acme/engine/issues',
    'https://github.com/../engine/issues/42',
    'https://github.com/acme/../../x/issues/42',
    'file:///etc/passwd',
    '',
  ])('"%s" is a mistake on the command line', async (url) => {
    expect((await failureOf(fetchGithubIssue(url, {}))).exitCode).toBe(2);
  });

  it('of an API is taken over plain http on this machine alone', async () => {
    const env = { TRACEWRIGHT_GITHUB_API: 'http://api.example.test' };
    expect((await failureOf(fetchGithubIssue(URL_OF_ISSUE, env))).exitCode).toBe(2);
  });
});
