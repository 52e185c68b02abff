import { validateHeaderName, validateHeaderValue } from 'node:http';
import { usageError } from '../core/errors.ts';
import { maskAttributes } from '../core/secrets/exchanges.ts';
import { maskText } from '../core/secrets/mask.ts';
import { ATTR } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Attributes, Seconds } from '../core/types.ts';
import { parseKeyValues } from './key-values.ts';
import { type TlsSettings, readTls } from './tls.ts';

/**
 * Where OTLP goes, from `--otlp-endpoint`, `--otlp-protocol` and the standard variables
 * (opentelemetry.io/docs/specs/otel/protocol/exporter and …/configuration/sdk-environment-variables).
 */

export type Signal = 'traces' | 'metrics' | 'logs';
const SIGNALS: readonly Signal[] = ['traces', 'metrics', 'logs'];
export const PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** One signal's receiver. */
export interface SignalTarget {
  readonly signal: Signal;
  /** May hold nothing secret: credentials of the URL have become a header. */
  readonly url: URL;
  /** May hold credentials: never to be printed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: Protocol;
  readonly timeout: Seconds;
  readonly gzip: boolean;
  readonly tls: TlsSettings;
}

/** Where each signal goes, null for those that are not sent; and as whom. */
export interface OtlpConfig {
  readonly targets: Readonly<Record<Signal, SignalTarget | null>>;
  /** `service.name` and OTEL_RESOURCE_ATTRIBUTES. */
  readonly resource: Attributes;
  readonly temporality: 'cumulative' | 'delta';
  /** What was set and could not be used, for the user to read. */
  readonly warnings: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The specification's default for OTEL_EXPORTER_OTLP_TIMEOUT. */
const DEFAULT_TIMEOUT: Seconds = 10;
/** The ports registered for OTLP (opentelemetry.io/docs/specs/otlp): a number that gives a wrong protocol away. */
const GRPC_PORT = '4317';
const HTTP_PORT = '4318';
/** Of HTTP/1.1 or of gRPC itself: HTTP/2 refuses them, or the call would not be one. */
const NOT_METADATA =
  /^(?:connection|host|keep-alive|proxy-connection|transfer-encoding|upgrade|http2-settings|te|grpc-.*)$/;

/** What to send where; null when nothing asks for it. Throws a `TraceError` for a setting that cannot be meant. */
export function otlpConfig(options: {
  readonly env: Environment;
  /** `--otlp-endpoint`, which stands above every endpoint variable. */
  readonly endpoint: string | undefined;
  /** `--otlp-protocol`, which stands above every protocol variable. */
  readonly protocol?: Protocol | undefined;
  /** Whether a signal without an endpoint goes to the specification's default, and OTEL_SDK_DISABLED does not count. */
  readonly orDefault?: boolean;
}): OtlpConfig | null {
  const reader = new EnvironmentReader(options);
  const asked = options.endpoint !== undefined || options.orDefault === true;
  if (!asked && reader.isDisabled()) return null;
  const [traces = null, metrics = null, logs = null] = SIGNALS.map((signal) =>
    reader.target(signal),
  );
  if (traces === null && metrics === null && logs === null) return null;
  return {
    targets: { traces, metrics, logs },
    resource: reader.resource(),
    temporality: reader.temporality(),
    warnings: reader.warnings,
  };
}

class EnvironmentReader {
  readonly warnings: string[] = [];
  readonly #env: Environment;
  readonly #options: Parameters<typeof otlpConfig>[0];

  constructor(options: Parameters<typeof otlpConfig>[0]) {
    this.#env = options.env;
    this.#options = options;
  }

  isDisabled(): boolean {
    return this.#get('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  }

  target(signal: Signal): SignalTarget | null {
    const found = this.#isExported(signal) ? this.#endpointOf(signal) : null;
    if (found === null) return null;
    const { variable, text, path } = found;
    const protocol = this.#protocol(signal);
    const url = parseEndpoint(
      variable,
      protocol === 'grpc' ? this.#withScheme(signal, text) : text,
    );
    if (protocol === 'grpc') this.#dropPath(url, variable);
    else if (path !== '') url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`;
    const headers = { ...this.#headers(signal, protocol), ...basicAuthorization(url) };
    url.username = '';
    url.password = '';
    this.#checkPort(url, variable, protocol);
    return {
      signal,
      url,
      headers,
      protocol,
      timeout: this.#timeout(signal),
      gzip: this.#isGzip(signal),
      tls: url.protocol === 'https:' ? readTls((setting) => this.#named(signal, setting)) : {},
    };
  }

  resource(): Attributes {
    const text = this.#get('OTEL_RESOURCE_ATTRIBUTES') ?? '';
    const parsed = parseKeyValues(text);
    // The specification has the whole value discarded when a part of it is wrong.
    if (!parsed.ok) this.warnings.push('OTEL_RESOURCE_ATTRIBUTES is not key=value,…: ignored');
    const service = this.#get('OTEL_SERVICE_NAME');
    return {
      ...(parsed.ok ? maskAttributes(Object.fromEntries(parsed.pairs)) : {}),
      ...(service === undefined ? {} : { [ATTR.serviceName]: service }),
    };
  }

  temporality(): 'cumulative' | 'delta' {
    const name = 'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE';
    const value = this.#get(name)?.toLowerCase();
    // `lowmemory` asks for delta histograms, and histograms are all that it concerns here.
    if (value === 'delta' || value === 'lowmemory') return 'delta';
    if (value !== undefined && value !== 'cumulative') this.#ignored(name, value);
    return 'cumulative';
  }

  /** Logs need to be asked for: back ends for traces alone are common, and what logs hold is in the recording. */
  #isExported(signal: Signal): boolean {
    const name = `OTEL_${signal.toUpperCase()}_EXPORTER`;
    const value = this.#get(name);
    if (value === undefined) return signal !== 'logs';
    const exporters = value.split(',').map((exporter) => exporter.trim());
    const others = exporters.filter((exporter) => exporter !== 'otlp' && exporter !== 'none');
    if (others.length > 0) this.#ignored(name, others.join(','));
    return exporters.includes('otlp');
  }

  #endpointOf(signal: Signal): { variable: string; text: string; path: string } | null {
    const path = `/v1/${signal}`;
    const { endpoint, orDefault = false } = this.#options;
    if (endpoint !== undefined) return { variable: '--otlp-endpoint', text: endpoint, path };
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`;
    const ownText = this.#get(own);
    // A signal's own endpoint is used as it is; the common one is a base.
    if (ownText !== undefined) return { variable: own, text: ownText, path: '' };
    const base = 'OTEL_EXPORTER_OTLP_ENDPOINT';
    const text = this.#get(base);
    if (text !== undefined) return { variable: base, text, path };
    return orDefault ? { variable: '--otel', text: this.#defaultEndpoint(signal), path } : null;
  }

  #defaultEndpoint(signal: Signal): string {
    const port = this.#protocol(signal) === 'grpc' ? GRPC_PORT : HTTP_PORT;
    return `http://localhost:${port}`;
  }

  /** gRPC's endpoints are also written `host:port`; OTEL_EXPORTER_OTLP_INSECURE says whether that is without TLS. */
  #withScheme(signal: Signal, text: string): string {
    if (text.includes('://')) return text;
    const [, insecure = 'false'] = this.#named(signal, 'INSECURE');
    return `${insecure.toLowerCase() === 'true' ? 'http' : 'https'}://${text}`;
  }

  /** The service's name is the path of gRPC. */
  #dropPath(url: URL, variable: string): void {
    if (url.pathname !== '/' && url.pathname !== '')
      this.#warnOnce(`${variable} has a path, which gRPC does not use: ignored`);
    url.pathname = '';
    url.search = '';
  }

  #checkPort(url: URL, variable: string, protocol: Protocol): void {
    if (url.port === GRPC_PORT && protocol !== 'grpc')
      this.#warnOnce(
        `${variable} has port 4317, which is gRPC's: --otlp-protocol grpc speaks it; OTLP over HTTP is usually at 4318`,
      );
    if (url.port === HTTP_PORT && protocol === 'grpc')
      this.#warnOnce(
        `${variable} has port 4318, which is that of OTLP over HTTP; gRPC is usually at 4317`,
      );
  }

  #headers(signal: Signal, protocol: Protocol): Record<string, string> {
    const [name, text] = this.#named(signal, 'HEADERS');
    const parsed = parseKeyValues(text ?? '');
    if (!parsed.ok) {
      this.#warnOnce(`${name} is not key=value,…: no headers are sent`);
      return {};
    }
    const headers: Record<string, string> = {};
    for (const [key, value] of parsed.pairs) {
      try {
        validateHeaderName(key);
        validateHeaderValue(key, value);
        if (protocol === 'grpc' && NOT_METADATA.test(key.toLowerCase())) throw new TypeError(key);
        headers[key.toLowerCase()] = value;
      } catch {
        this.#warnOnce(`${name} has a header that HTTP does not allow: not sent`);
      }
    }
    return headers;
  }

  #protocol(signal: Signal): Protocol {
    if (this.#options.protocol !== undefined) return this.#options.protocol;
    const [name, value = 'http/protobuf'] = this.#named(signal, 'PROTOCOL');
    const known = PROTOCOLS.find((protocol) => protocol === value);
    if (known !== undefined) return known;
    throw usageError(
      `${name} is ${printable(value, 40)}, not ${PROTOCOLS.slice(0, -1).join(', ')} or ${PROTOCOLS.at(-1)}`,
      `Set ${name}=http/protobuf.`,
    );
  }

  #timeout(signal: Signal): Seconds {
    const [name, value] = this.#named(signal, 'TIMEOUT');
    if (value === undefined) return DEFAULT_TIMEOUT;
    const milliseconds = Number(value);
    if (Number.isFinite(milliseconds) && milliseconds > 0) return milliseconds / 1e3;
    this.#ignored(name, value);
    return DEFAULT_TIMEOUT;
  }

  #isGzip(signal: Signal): boolean {
    const [name, value = 'none'] = this.#named(signal, 'COMPRESSION');
    if (value !== 'gzip' && value !== 'none') this.#ignored(name, value);
    return value === 'gzip';
  }

  /** The signal's own variable, else the common one: its name and value. */
  #named(signal: Signal, setting: string): readonly [name: string, value: string | undefined] {
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${setting}`;
    const common = `OTEL_EXPORTER_OTLP_${setting}`;
    const ownValue = this.#get(own);
    return ownValue === undefined ? [common, this.#get(common)] : [own, ownValue];
  }

  /** The specification has an empty variable mean an unset one. */
  #get(name: string): string | undefined {
    const value = this.#env[name]?.trim();
    return value === '' ? undefined : value;
  }

  #ignored(name: string, value: string): void {
    this.#warnOnce(`${name}: ${printable(value, 40)} is not supported and ignored`);
  }

  /** A common setting is read for each signal. */
  #warnOnce(text: string): void {
    if (!this.warnings.includes(text)) this.warnings.push(text);
  }
}

function parseEndpoint(variable: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  const shown = printable(maskText(text), 100);
  throw usageError(
    `${variable} is ${shown}, not an http:// or https:// URL`,
    `Write it as http://host:4318.`,
  );
}

function basicAuthorization(url: URL): Record<string, string> {
  if (url.username === '' && url.password === '') return {};
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  const encoded = Buffer.from(`${user ?? ''}:${password ?? ''}`).toString('base64');
  return { authorization: `Basic ${encoded}` };
}

/** An endpoint as it may be printed: no query, which may hold a key. */
export function displayUrl(url: URL): string {
  return printable(maskText(`${url.origin}${url.pathname === '/' ? '' : url.pathname}`));
}
