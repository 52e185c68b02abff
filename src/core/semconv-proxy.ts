/** Names of what `trace proxy` records that no convention has, and those of HTTP that it uses. */

export const PROXY_SPAN = {
  /** One request, from its head to the end of its answer. */
  request: 'tracewright.proxy.request',
} as const;

export const PROXY_ATTR = {
  method: 'http.request.method',
  path: 'url.path',
  /** Names alone, unless content is captured. */
  query: 'url.query',
  status: 'http.response.status_code',
  requestSize: 'http.request.body.size',
  responseSize: 'http.response.body.size',
  errorType: 'error.type',
  /** From 0, by when their heads came. */
  index: 'tracewright.proxy.request.index',
  /** From the recording's start to its head. */
  offset: 'tracewright.proxy.request.offset',
  /** The body's `Content-Type`, without parameters. */
  contentType: 'tracewright.proxy.request.content_type',
  /** From the request's head to the head of the answer. */
  head: 'tracewright.proxy.response.time_to_head',
} as const;

export const PROXY_SNAPSHOT = {
  /** What was said in one request: only with `--capture-content`. */
  content: 'proxy-content',
} as const;

/** The body of a snapshot `proxy-content`; credentials are masked in all of it. */
export interface ProxyContent {
  /** `tracewright.proxy.request.index` of its span. */
  readonly index: number;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly request: ProxyMessage;
  readonly response: ProxyMessage;
}

/** One side of an exchange. */
export interface ProxyMessage {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null where there was none. */
  readonly body: string | null;
  readonly encoding: 'utf8' | 'base64';
  /** It was longer than what is kept. */
  readonly cut: boolean;
}
