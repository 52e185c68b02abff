import { usageError } from '../../../core/errors.ts';
import { printable } from '../../../core/text.ts';
import { retryAfter } from '../../../otel/http-status.ts';
import { askForJson, type JsonAnswer } from '../../../platform/json-request.ts';
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

/** A Linear ticket with its comments, by GraphQL. */

type Env = Readonly<Record<string, string | undefined>>;
type Answer = Extract<JsonAnswer, { ended: 'answer' }>;

const QUERY = `query Issue($id: String!, $after: String) {
  issue(id: $id) {
    identifier title description url
    creator { name }
    comments(first: 50, after: $after) {
      nodes { body createdAt user { name } }
      pageInfo { hasNextPage endCursor }
    }
  }
}`;
const HOW =
  'Create a key under Settings, Security & access, Personal API keys, and set LINEAR_API_KEY to it.';

export async function fetchLinearTicket(text: string, env: Env): Promise<ImportedReport> {
  const id = ticketOf(text);
  const key = env['LINEAR_API_KEY']?.trim() ?? '';
  if (key === '') throw usageError('--linear needs LINEAR_API_KEY, which is not set', HOW);
  checkCredential('LINEAR_API_KEY', key);
  const url = apiOf(env);
  const until = Date.now() + TOTAL_LIMIT * 1e3;
  const comments: ImportedComment[] = [];
  let issue: unknown;
  let isWhole = false;
  const first: { readonly after: string | null } = { after: null };
  for await (const page of commentPages(first, async ({ after }) => {
    const found = await ask(url, { key, id, after, until });
    issue ??= found;
    const list = member(found, 'comments');
    const info = member(list, 'pageInfo');
    const next = member(info, 'hasNextPage') === true ? textMember(info, 'endCursor') : null;
    return {
      comments: listOf(member(list, 'nodes')).map(commentOf),
      next: next === null ? null : { after: next },
    };
  })) {
    comments.push(...page.comments);
    isWhole = page.next === null;
  }
  return {
    title: textMember(issue, 'title') ?? '',
    body: textMember(issue, 'description') ?? '',
    url: textMember(issue, 'url') ?? id,
    author: textMember(member(issue, 'creator'), 'name'),
    // The API gives the latest first.
    comments: comments.toSorted((a, b) => (a.at ?? '').localeCompare(b.at ?? '')),
    missing: isWhole ? null : `only ${comments.length} comments were read`,
  };
}

function ticketOf(text: string): string {
  const fromUrl =
    /^https:\/\/linear\.app\/[\w-]{1,100}\/issue\/([A-Za-z0-9]{1,10}-\d{1,9})(?:[/?#].*)?$/.exec(
      text,
    )?.[1];
  const id = fromUrl ?? text;
  if (!/^[A-Za-z][A-Za-z0-9]{0,9}-\d{1,9}$/.test(id))
    throw usageError(`--linear wants a ticket such as DYN-123, not "${printable(text, 120)}"`);
  return id.toUpperCase();
}

function apiOf(env: Env): URL {
  const text = env['TRACEWRIGHT_LINEAR_API']?.trim() || 'https://api.linear.app/graphql';
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLocal = url !== null && /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(url.hostname);
  if (url === null || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLocal)))
    throw usageError(
      `TRACEWRIGHT_LINEAR_API is "${printable(text, 120)}"`,
      'Set it to the https address of a GraphQL endpoint (http only on this machine), or unset it.',
    );
  return url;
}

/** The ticket, with one page of its comments. */
async function ask(
  url: URL,
  {
    key,
    id,
    after,
    until,
  }: {
    readonly key: string;
    readonly id: string;
    readonly after: string | null;
    readonly until: number;
  },
): Promise<unknown> {
  const answer = await askForJson({
    url,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'tracewright',
      // A personal key stands alone, a token of OAuth behind its scheme.
      authorization: key.startsWith('lin_oauth_') ? `Bearer ${key}` : key,
    },
    body: JSON.stringify({ query: QUERY, variables: { id, after } }),
    limit: Math.max(0.1, Math.min(REQUEST_LIMIT, (until - Date.now()) / 1e3)),
    size: ANSWER_LIMIT,
  });
  if (answer.ended === 'unanswered')
    throw notFetched(
      'ERR_LINEAR_UNREACHABLE',
      `${url.host} could not be asked: ${printable(answer.why)}`,
      'Check the network, or save the ticket into a file and start from that: trace session start FILE.',
    );
  const issue = member(member(answer.json, 'data'), 'issue');
  if (answer.status === 200 && typeof issue === 'object' && issue !== null) return issue;
  throw refusal(id, answer);
}

/** Linear says what is wrong in `errors`, with statuses that vary: the code in there decides first. */
function refusal(id: string, { status, headers, json }: Answer): Error {
  const errors = member(json, 'errors');
  const error: unknown = Array.isArray(errors) ? errors[0] : undefined;
  const extensions = member(error, 'extensions');
  const code = textMember(extensions, 'code') ?? '';
  const said = printable(
    textMember(extensions, 'userPresentableMessage') ?? textMember(error, 'message') ?? '',
  );
  const why = `${id}: ${status === 200 ? '' : `HTTP ${status}`}${status !== 200 && said !== '' ? ', ' : ''}${said}`;
  if (code === 'RATELIMITED' || status === 429) {
    const again = limitedUntil(headers);
    return notFetched(
      'ERR_LINEAR_RATE_LIMIT',
      `${why}: the rate limit is used up`,
      `Try again ${again === null ? 'in an hour' : againAt(again)}.`,
    );
  }
  if (status === 401 || code === 'AUTHENTICATION_ERROR')
    return notFetched('ERR_LINEAR_AUTH', why, `The key is wrong or was revoked. ${HOW}`);
  if (status === 403 || code === 'FORBIDDEN')
    return notFetched(
      'ERR_LINEAR_AUTH',
      why,
      'The key may not read this ticket: ask for access to its team.',
    );
  const isMissing =
    /not found/i.test(said) || (status === 200 && error === undefined && json !== undefined);
  if (status === 404 || isMissing)
    return notFetched(
      'ERR_LINEAR_NOT_FOUND',
      `${id}: there is no such ticket`,
      'Check its number, and that the key is of the right workspace.',
    );
  if (json === undefined)
    return notFetched(
      'ERR_LINEAR',
      `${id}: the answer (HTTP ${status}) is no JSON`,
      'Check that no proxy answers in Linear’s place, and try again later.',
    );
  return notFetched(
    'ERR_LINEAR',
    why,
    'Try again later; https://linearstatus.com says how Linear is.',
  );
}

function limitedUntil(headers: Answer['headers']): Date | null {
  const after = retryAfter(headers['retry-after'] ?? null);
  if (after !== null) return new Date(Date.now() + after * 1e3);
  const at = ['x-ratelimit-requests-reset', 'x-ratelimit-complexity-reset']
    .map((name) => Number(headers[name]))
    .find((ms) => ms > Date.now());
  return at === undefined || at > 1e14 ? null : new Date(at);
}

function commentOf(comment: unknown): ImportedComment {
  return {
    author: textMember(member(comment, 'user'), 'name'),
    at: textMember(comment, 'createdAt'),
    body: textMember(comment, 'body') ?? '',
  };
}
