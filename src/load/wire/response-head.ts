import type { Seconds } from '../../core/types.ts';

/** How the end of a body is told (RFC 9112, 6.3). */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }
  /** The end of the connection is the end of the body. */
  | { readonly kind: 'close' };

/** What is wanted of status line and headers. Values are from outside: untrusted. */
export interface ResponseHead {
  readonly status: number;
  readonly framing: Framing;
  /** Whether the connection can be used again after this answer. */
  readonly reusable: boolean;
  /** How long the server keeps an idle connection, as it said in `Keep-Alive`; null when it did not. */
  readonly keepAlive: Seconds | null;
  /** Lower case, without parameters; empty when there was none. */
  readonly contentType: string;
  /** Lower case; empty for none (and for `identity`). */
  readonly contentEncoding: string;
  readonly retryAfter: string | null;
  /** `Date`, as Unix time; null when there was none that could be read. */
  readonly date: Seconds | null;
}

/** What a field name may be (RFC 9110, 5.6.2). */
export const TOKEN: RegExp = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d{2})(?: .*)?$/s;

/** The last head and what it says: that of most answers is the same, but for the second in its `Date`. */
let last: { readonly text: string; readonly head: ResponseHead | string } = { text: '', head: '' };

/** Status line and headers, without the empty line after them. A string says what is wrong with them. */
export function parseHead(text: string): ResponseHead | string {
  if (text !== last.text || text === '') last = { text, head: parse(text) };
  return last.head;
}

function parse(text: string): ResponseHead | string {
  const lines = text.split(/\r?\n/);
  const statusLine = STATUS_LINE.exec(lines[0] ?? '');
  if (statusLine === null) return 'no HTTP/1.1 status line';
  const fields = new Fields();
  let name = '';
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] ?? '';
    if (line.startsWith(' ') || line.startsWith('\t')) {
      // Obsolete line folding: a client must take it for a space (RFC 9112, 5.2).
      if (name === '') return 'a header that begins with a space';
      fields.extend(name, line.trim());
      continue;
    }
    const colon = line.indexOf(':');
    name = line.slice(0, Math.max(colon, 0)).toLowerCase();
    if (!TOKEN.test(name)) return 'a header line without a name';
    fields.add(name, line.slice(colon + 1).trim());
  }
  return judge(Number(statusLine[2]), statusLine[1] === '1', fields);
}

/** Header fields; those that came several times are one list. */
class Fields {
  readonly #values = new Map<string, string>();

  add(name: string, value: string): void {
    const before = this.#values.get(name);
    this.#values.set(name, before === undefined ? value : `${before}, ${value}`);
  }

  extend(name: string, value: string): void {
    this.#values.set(name, `${this.#values.get(name) ?? ''} ${value}`.trim());
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }

  /** Members of a comma-separated list, in lower case. */
  list(name: string): string[] {
    const value = this.#values.get(name);
    if (value === undefined) return [];
    return value
      .toLowerCase()
      .split(',')
      .map((member) => member.trim())
      .filter((member) => member !== '');
  }
}

function judge(status: number, http11: boolean, fields: Fields): ResponseHead | string {
  const framing = framingOf(status, fields);
  if (typeof framing === 'string') return framing;
  const connection = fields.list('connection');
  const kept = http11 ? !connection.includes('close') : connection.includes('keep-alive');
  const encodings = fields.list('content-encoding').filter((coding) => coding !== 'identity');
  const timeout = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,6})/i.exec(fields.get('keep-alive') ?? '');
  return {
    status,
    framing,
    // Both lengths in one answer is how responses are smuggled: the connection ends with it (RFC 9112, 6.3).
    reusable:
      kept &&
      framing.kind !== 'close' &&
      !(framing.kind === 'chunked' && fields.get('content-length') !== null),
    keepAlive: timeout === null ? null : Number(timeout[1]),
    contentType: (fields.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '',
    contentEncoding: encodings.join(','),
    retryAfter: fields.get('retry-after'),
    date: unixTimeOf(fields.get('date')),
  };
}

function unixTimeOf(date: string | null): Seconds | null {
  const ms = date === null ? Number.NaN : Date.parse(date);
  return Number.isNaN(ms) ? null : ms / 1e3;
}

function framingOf(status: number, fields: Fields): Framing | string {
  if (status < 200 || status === 204 || status === 304) return { kind: 'none' };
  const codings = fields.list('transfer-encoding');
  if (codings.length > 0) {
    if (codings.length === 1 && codings[0] === 'chunked') return { kind: 'chunked' };
    return `transfer coding ${codings.join(', ')}`;
  }
  const lengths = new Set(fields.list('content-length'));
  if (lengths.size === 0) return { kind: 'close' };
  const [length] = lengths;
  if (lengths.size > 1 || length === undefined || !/^\d{1,15}$/.test(length)) {
    return 'a Content-Length that is no number';
  }
  return Number(length) === 0 ? { kind: 'none' } : { kind: 'length', length: Number(length) };
}
