import type { EndpointPlan } from '../plan.ts';
import { TOKEN } from './response-head.ts';

// What a field value may hold (RFC 9110, 5.5): visible characters, spaces and tabs; beyond ASCII only what latin1 has.
const VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;
/** These tell where the message ends: only the wire knows. */
const OURS = [
  'content-length',
  'transfer-encoding',
  'connection',
  'expect',
  'upgrade',
  'te',
  'trailer',
];

/** Throws a RangeError for what would end the header, or be no header: whoever made the plan should have refused it. */
function checkHeader(name: string, value: string): void {
  if (!TOKEN.test(name) || OURS.includes(name.toLowerCase()) || !VALUE.test(value)) {
    throw new RangeError('a request header that cannot be sent');
  }
}

/** The bytes of requests to one endpoint: everything but `traceparent`, length and body is made once. */
export class RequestBytes {
  readonly #prefix: Buffer;

  constructor(endpoint: EndpointPlan, streaming: boolean) {
    const named = new Set(endpoint.headers.map(([name]) => name.toLowerCase()));
    const own: (readonly [string, string])[] = [
      ['Host', endpoint.authority],
      ['User-Agent', 'tracewright'],
      ['Accept', streaming ? 'text/event-stream' : 'application/json'],
      ['Content-Type', 'application/json'],
    ];
    const headers = [
      ...own.filter(([name]) => !named.has(name.toLowerCase())),
      ...endpoint.headers,
    ];
    for (const [name, value] of headers) checkHeader(name, value);
    if (!/^[!-~]+$/.test(endpoint.path)) throw new RangeError('a path that cannot be sent');
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
    this.#prefix = Buffer.from(`POST ${endpoint.path} HTTP/1.1\r\n${lines.join('')}`, 'latin1');
  }

  /** One buffer, so that a small request is one packet. */
  of(body: Buffer, traceparent: string | null): Buffer {
    const trace = traceparent === null ? '' : `traceparent: ${traceparent}\r\n`;
    const rest = `${trace}Content-Length: ${body.length}\r\n\r\n`;
    const head = this.#prefix.length + rest.length;
    const bytes = Buffer.allocUnsafe(head + body.length);
    this.#prefix.copy(bytes, 0);
    bytes.write(rest, this.#prefix.length, 'latin1');
    body.copy(bytes, head);
    return bytes;
  }
}
