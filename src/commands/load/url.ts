import { usageError } from '../../core/errors.ts';
import type { LoadApi } from '../../core/load-types.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import { contradiction, type LoadValues } from './values.ts';
import { LOAD_APIS } from './apis.ts';
import { parseChoice } from '../command-line/parse.ts';

/** Where requests go, as the command line says it: nothing is resolved or asked yet. */
export interface EndpointOptions {
  readonly secure: boolean;
  /** As in the URL, without brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** Value of the Host header. */
  readonly authority: string;
  /** Path and query. */
  readonly path: string;
  /** Where this server lists its models; null where the path tells nothing about it. */
  readonly modelsPath: string | null;
  readonly api: LoadApi;
  /** Without credentials, and without the values in its query. */
  readonly shown: string;
  readonly unix: string | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Whether requests carry an API key, and where it came from. */
  readonly key: 'flag' | 'environment' | 'header' | 'url' | null;
  readonly verify: boolean;
  /** File with certificates to trust. */
  readonly caFile: string | null;
}

const API_PATHS: Readonly<Record<LoadApi, string>> = {
  chat: '/chat/completions',
  completions: '/completions',
  responses: '/responses',
  embeddings: '/embeddings',
};

/** Set by the wire for each request. */
const OWN_HEADERS = [
  'content-length',
  'transfer-encoding',
  'connection',
  'upgrade',
  'te',
  'expect',
];

export function parseEndpoint(
  values: LoadValues,
  positional: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): EndpointOptions {
  const flag = values.text('url') ?? undefined;
  if (positional !== undefined && flag !== undefined && positional !== flag) {
    throw contradiction(positional, `--url ${flag}`);
  }
  const unix = values.text('unix');
  const text = positional ?? flag ?? (unix === null ? undefined : 'http://localhost');
  if (text === undefined) {
    throw usageError('no URL given', 'Such as: trace load http://127.0.0.1:8000 -m my-model -c 8');
  }
  const url = parseUrl(text);
  const secure = url.protocol === 'https:';
  for (const name of ['insecure', 'cacert'] as const) {
    if (values.has(name) && !secure) throw usageError(`--${name} is for https URLs`);
  }
  const { api, path, modelsPath } = choosePath(url, values);
  const { headers, key } = chooseHeaders(values, url, env);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const authority = headers.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? url.host;
  const query = url.search === '' ? '' : `?${[...url.searchParams.keys()].join('&')}`;
  return {
    secure,
    host,
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    authority,
    path: `${path}${url.search}`,
    modelsPath,
    api,
    shown: maskText(
      `${unix === null ? '' : `${printable(unix)} `}${url.protocol}//${url.host}${path}${query}`,
    ),
    unix,
    headers: headers.filter(([name]) => name.toLowerCase() !== 'host'),
    key,
    verify: !values.isSet('insecure'),
    caFile: values.text('cacert'),
  };
}

function parseUrl(text: string): URL {
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.host === '') {
    throw usageError(
      `expected the URL of a server, got '${printable(maskText(text), 100)}'`,
      'Such as http://127.0.0.1:8000, or https://host/v1',
    );
  }
  return url;
}

/** The API from the path, the path from the API: `/v1` and no path are completed, any other path is taken as it is. */
function choosePath(
  url: URL,
  values: LoadValues,
): { readonly api: LoadApi; readonly path: string; readonly modelsPath: string | null } {
  const endpoint = values.text('path');
  const given = `${url.pathname.replace(/\/+$/, '')}${endpoint ?? ''}`.replace(/\/+$/, '');
  const named = values.text('api');
  const asked = named === null ? null : parseChoice(named, LOAD_APIS, '--api');
  // Chat before completions, whose path is the end of it.
  const api = LOAD_APIS.find((one) => given.endsWith(API_PATHS[one])) ?? null;
  if (api !== null) {
    // vLLM's own --backend openai-chat stands beside --endpoint /v1/chat/completions, its `vllm` beside either.
    if (asked !== null && asked !== api && endpoint === null) {
      throw contradiction(`--api ${asked}`, given);
    }
    const base = given.slice(0, -API_PATHS[api].length);
    return { api, path: given, modelsPath: `${base}/models` };
  }
  const chosen = asked ?? 'chat';
  if (given === '' || /\/v\d+(?:beta)?$/.test(given)) {
    const base = given === '' ? '/v1' : given;
    return { api: chosen, path: `${base}${API_PATHS[chosen]}`, modelsPath: `${base}/models` };
  }
  return { api: chosen, path: given, modelsPath: null };
}

function chooseHeaders(
  values: LoadValues,
  url: URL,
  env: Readonly<Record<string, string | undefined>>,
): Pick<EndpointOptions, 'headers' | 'key'> {
  const headers = values.texts('header').map(parseHeader);
  const own = headers.some(([name]) => name.toLowerCase() === 'authorization');
  const flag = values.text('api-key');
  if (flag !== null && own) throw contradiction('--api-key', "-H 'Authorization: …'");
  if (own) return { headers, key: 'header' };
  const bearer = (key: string, from: string): readonly [string, string] => [
    'Authorization',
    `Bearer ${checkValue(key.trim(), from)}`,
  ];
  if (flag !== null) return { headers: [...headers, bearer(flag, '--api-key')], key: 'flag' };
  if (url.username !== '' || url.password !== '') {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    const basic = `Basic ${Buffer.from(pair).toString('base64')}`;
    return { headers: [...headers, ['Authorization', basic]], key: 'url' };
  }
  const variable = env['OPENAI_API_KEY'] ?? '';
  if (variable.trim() === '') return { headers, key: null };
  return {
    headers: [...headers, bearer(variable, 'OPENAI_API_KEY')],
    key: 'environment',
  };
}

/** `Name: value`, as curl has it, or `Name=value`, as vLLM has it. The value may be a secret: no message shows it. */
function parseHeader(text: string): readonly [string, string] {
  const [, name, value = ''] = /^([!#$%&'*+.^_`|~\w-]+?)\s*[:=]\s*(.*)$/s.exec(text) ?? [];
  if (name === undefined) throw usageError("-H, --header takes 'Name: value'");
  if (OWN_HEADERS.includes(name.toLowerCase())) {
    throw usageError(`-H ${name}: trace sets this header itself`);
  }
  return [name, checkValue(value.trim(), `-H ${name}`)];
}

/** RFC 9110: visible ASCII, spaces and tabs, and bytes above; never a line break, which would begin another header. */
function checkValue(value: string, from: string): string {
  if (/^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value)) return value;
  throw usageError(`${from}: the value holds characters that no header may hold`);
}
