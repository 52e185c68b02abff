import { usageError } from '../../../core/errors.ts';
import { printable } from '../../../core/text.ts';
import { retryAfter } from '../../../otel/http-status.ts';
import { askForJson, type JsonAnswer } from '../../../platform/json-request.ts';
import { findProgram } from '../../../platform/find-program.ts';
import { askGh } from './gh-program.ts';
import {
  againAt,
  checkCredential,
  ANSWER_LIMIT,
  commentPages,
  type ImportedComment,
  type ImportedReport,
  listOf,
  member,
  notFetched,
  REQUEST_LIMIT,
  textMember,
  TOTAL_LIMIT,
} from './imported.ts';

/** A GitHub issue (or pull request, which is one) with its comments, by REST. */

type Env = Readonly<Record<string, string | undefined>>;

/** `https://HOST/OWNER/NAME/issues/N`. */
interface IssueAddress {
  readonly host: string;
  readonly path: string;
  readonly shown: string;
}

interface Api {
  readonly base: URL;
  readonly token: string | null;
}

const PAGE_SIZE = 100;
/** A renamed repository answers with one. */
const REDIRECTS_LIMIT = 3;
const SET_TOKEN = 'Set GITHUB_TOKEN to a token that may read the issues of this repository.';

export async function fetchGithubIssue(url: string, env: Env): Promise<ImportedReport> {
  const address = addressOf(url);
  const api = apiOf(address, env);
  if (api.token !== null) checkCredential('GITHUB_TOKEN', api.token);
  const until = Date.now() + TOTAL_LIMIT * 1e3;
  const viaGh = api.token === null ? await throughGh(address, env) : null;
  const ask = viaGh ?? ((path: string) => askApi(new URL(path, api.base), { api, address, until }));
  const issue = await ask(`repos/${address.path}`);
  const { comments, missing } = await commentsOf(ask, address, member(issue.json, 'comments'));
  return {
    title: textMember(issue.json, 'title') ?? '',
    body: textMember(issue.json, 'body') ?? '',
    url: address.shown,
    author: textMember(member(issue.json, 'user'), 'login'),
    comments,
    missing,
  };
}

function addressOf(text: string): IssueAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  const [, path, number] =
    /^\/([\w.-]{1,100}\/[\w.-]{1,100})\/(?:issues|pull)\/(\d{1,10})\/?$/.exec(
      url?.pathname ?? '',
    ) ?? [];
  const isPlain = url?.protocol === 'https:' && url.username === '' && url.password === '';
  if (
    url === null ||
    !isPlain ||
    path === undefined ||
    path.split('/').some((one) => /^\.+$/.test(one))
  )
    throw usageError(
      `--github wants the address of an issue, not "${printable(text, 120)}"`,
      'For example --github https://github.com/vllm-project/vllm/issues/1234',
    );
  const issue = `${path}/issues/${number}`;
  return { host: url.host, path: issue, shown: `https://${url.host}/${issue}` };
}

/** A token is for the host that gave it: GitHub's own goes to no other. */
function apiOf({ host }: IssueAddress, env: Env): Api {
  const own = filled(env['GITHUB_TOKEN']) ?? filled(env['GH_TOKEN']);
  const override = filled(env['TRACEWRIGHT_GITHUB_API']);
  if (override !== null) return { base: baseOf(override), token: own };
  const isGithub = host === 'github.com' || host === 'www.github.com';
  if (isGithub) return { base: new URL('https://api.github.com/'), token: own };
  const base = new URL(
    host.endsWith('.ghe.com') ? `https://api.${host}/` : `https://${host}/api/v3/`,
  );
  // On a runner of an enterprise server GITHUB_TOKEN is that server's.
  const isServer =
    URL.canParse(env['GITHUB_SERVER_URL'] ?? '') &&
    new URL(env['GITHUB_SERVER_URL'] ?? '').host === host;
  const enterprise = filled(env['GH_ENTERPRISE_TOKEN']) ?? filled(env['GITHUB_ENTERPRISE_TOKEN']);
  return { base, token: isServer ? own : enterprise };
}

function filled(value: string | undefined): string | null {
  const text = value?.trim() ?? '';
  return text === '' ? null : text;
}

function baseOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text.endsWith('/') ? text : `${text}/`) : null;
  const isLocal = url !== null && /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url.hostname);
  if (url === null || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLocal)))
    throw usageError(
      `TRACEWRIGHT_GITHUB_API is "${printable(text, 120)}"`,
      'Set it to the https address of a GitHub API (http only on this machine), or unset it.',
    );
  return url;
}

/** What was answered and is good. */
interface Good {
  readonly json: unknown;
  /** The next page, on the same host; null for none. */
  readonly next: string | null;
}
type Ask = (path: string) => Promise<Good>;

/** `gh`, where it is there and knows who its user is; null otherwise. */
async function throughGh(address: IssueAddress, env: Env): Promise<Ask | null> {
  if (filled(env['TRACEWRIGHT_GITHUB_API']) !== null) return null;
  const program = findProgram('gh', env['PATH']);
  if (
    program === null ||
    !(await askGh(program, ['auth', 'status', '--hostname', address.host], env)).ok
  )
    return null;
  return async (path) => {
    const answer = await askGh(program, ['api', '--hostname', address.host, path], env);
    if (!answer.ok)
      throw notFetched(
        'ERR_GITHUB',
        `gh could not read ${address.shown}: ${printable(answer.why)}`,
        'Run gh auth status, or set GITHUB_TOKEN.',
      );
    // gh gives no headers: a full page may have another one.
    const page = Number(/[?&]page=(\d+)/.exec(path)?.[1] ?? 0);
    const isFull = Array.isArray(answer.json) && answer.json.length === PAGE_SIZE;
    return {
      json: answer.json,
      next: isFull ? path.replace(/page=\d+$/, `page=${page + 1}`) : null,
    };
  };
}

interface Asking {
  readonly api: Api;
  readonly address: IssueAddress;
  /** Unix, ms. */
  readonly until: number;
}

async function askApi(first: URL, asking: Asking): Promise<Good> {
  const { api, address, until } = asking;
  let url = first;
  for (let i = 0; i <= REDIRECTS_LIMIT; i++) {
    // A page or a redirect that leads elsewhere would take the token there.
    if (url.origin !== api.base.origin)
      throw notFetched(
        'ERR_GITHUB',
        `${api.base.host} sends us to ${printable(url.host)}, which is another host`,
        'Use the address to which the issue was moved.',
      );
    const answer = await askForJson({
      url,
      headers: {
        accept: 'application/vnd.github+json',
        'x-github-api-version': '2022-11-28',
        'user-agent': 'tracewright',
        ...(api.token === null ? {} : { authorization: `Bearer ${api.token}` }),
      },
      body: null,
      limit: Math.max(0.1, Math.min(REQUEST_LIMIT, (until - Date.now()) / 1e3)),
      size: ANSWER_LIMIT,
    });
    if (answer.ended === 'unanswered')
      throw notFetched(
        'ERR_GITHUB_UNREACHABLE',
        `${url.host} could not be asked: ${printable(answer.why)}`,
        'Check the network, or save the issue into a file and start from that: trace session start FILE.',
      );
    const { status, headers, json } = answer;
    const location = headers.location;
    if (
      ![301, 302, 307, 308].includes(status) ||
      location === undefined ||
      !URL.canParse(location, url.href)
    ) {
      if (status === 200 && json !== undefined && json !== null)
        return { json, next: nextPage(headers['link'], url) };
      throw refusal(answer, asking);
    }
    url = new URL(location, url);
  }
  throw notFetched(
    'ERR_GITHUB',
    `${address.shown} leads from one address to the next`,
    'Use the address that a browser ends at.',
  );
}

/** Of `Link: <…>; rel="next"` (RFC 8288). */
function nextPage(link: string | string[] | undefined, url: URL): string | null {
  const text = [link ?? ''].flat().join(', ').slice(0, 8192);
  const target = /<([^<>\s]+)>\s*;[^<]*\brel="?next\b/.exec(text)?.[1];
  return target !== undefined && URL.canParse(target, url.href) ? new URL(target, url).href : null;
}

function refusal(
  { status, headers, json }: Extract<JsonAnswer, { ended: 'answer' }>,
  { api, address }: Asking,
): Error {
  const said = printable(textMember(json, 'message') ?? '');
  const again = status === 403 || status === 429 ? limitedUntil(headers) : null;
  const why = `${address.shown}: HTTP ${status}${said === '' ? '' : `, ${said}`}`;
  if (again !== null || status === 429 || (status === 403 && /rate limit/i.test(said)))
    return notFetched(
      'ERR_GITHUB_RATE_LIMIT',
      `${why}: the rate limit is used up`,
      `Try again ${again === null ? 'in a minute' : againAt(again)}${api.token === null ? ', or set GITHUB_TOKEN: with one 5000 requests an hour are free' : ''}.`,
    );
  if (status === 401)
    return notFetched(
      'ERR_GITHUB_AUTH',
      why,
      'The token is wrong or expired: set GITHUB_TOKEN to a new one.',
    );
  if (status === 403)
    return notFetched(
      'ERR_GITHUB_AUTH',
      why,
      api.token === null
        ? SET_TOKEN
        : `${SET_TOKEN} Where the organisation has single sign-on, authorise the token for it.`,
    );
  if (status === 404)
    return notFetched(
      'ERR_GITHUB_NOT_FOUND',
      why,
      api.token === null
        ? `Check the address. If it is private: ${SET_TOKEN}`
        : `Check the address. ${SET_TOKEN}`,
    );
  if (status === 410)
    return notFetched(
      'ERR_GITHUB_NOT_FOUND',
      why,
      'The issue was deleted, or the repository has none.',
    );
  if (status >= 200 && status < 300)
    return notFetched(
      'ERR_GITHUB',
      `${address.shown}: the answer is no JSON`,
      'Check that the host is a GitHub server, and that no proxy answers in its place.',
    );
  return notFetched(
    'ERR_GITHUB',
    why,
    'Try again later; https://www.githubstatus.com says how GitHub is.',
  );
}

/** When a primary or secondary rate limit lets us again; null where this is none. */
function limitedUntil(headers: Extract<JsonAnswer, { ended: 'answer' }>['headers']): Date | null {
  const after = retryAfter(headers['retry-after'] ?? null);
  if (after !== null) return new Date(Date.now() + after * 1e3);
  const reset = Number(one(headers['x-ratelimit-reset']));
  const isUsedUp = one(headers['x-ratelimit-remaining']) === '0';
  return isUsedUp && reset > 0 && reset < 1e11 ? new Date(reset * 1e3) : null;
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** What could not be had of the comments is said; the issue itself is not lost with them. */
async function commentsOf(
  ask: Ask,
  address: IssueAddress,
  count: unknown,
): Promise<Pick<ImportedReport, 'comments' | 'missing'>> {
  const comments: ImportedComment[] = [];
  if (count === 0) return { comments, missing: null };
  let isWhole = false;
  try {
    const first = `repos/${address.path}/comments?per_page=${PAGE_SIZE}&page=1`;
    for await (const page of commentPages(first, async (at) => {
      const { json, next } = await ask(at);
      return { comments: listOf(json).map(commentOf), next };
    })) {
      comments.push(...page.comments);
      isWhole = page.next === null;
    }
  } catch (error) {
    return { comments, missing: error instanceof Error ? error.message : String(error) };
  }
  const total = typeof count === 'number' ? ` of ${count}` : '';
  return {
    comments,
    missing: isWhole ? null : `only the first ${comments.length}${total} comments were read`,
  };
}

function commentOf(comment: unknown): ImportedComment {
  return {
    author: textMember(member(comment, 'user'), 'login'),
    at: textMember(comment, 'created_at'),
    body: textMember(comment, 'body') ?? '',
  };
}
