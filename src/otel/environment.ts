import { validateHeaderName, validateHeaderValue } from 'node:http';
import { TraceError, usageError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { ATTR } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Attributes, Seconds } from '../core/types.ts';
import { parseKeyValues } from './key-values.ts';

/**
 * Where OTLP goes, from `--otlp-endpoint` and the standard variables
 * (opentelemetry.io/docs/specs/otel/protocol/exporter and …/configuration/sdk-environment-variables).
 */

export type Signal = 'traces' | 'metrics' | 'logs';
const SIGNALS: readonly Signal[] = ['traces', 'metrics', 'logs'];
export type Protocol = 'http/protobuf' | 'http/json';

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
const GRPC_PORT = '4317';

/** What to send where; null when nothing asks for it. Throws a `TraceError` for a setting that cannot be meant. */
export function otlpConfig(options: {
  readonly env: Environment;
  /** `--otlp-endpoint`, which stands above every endpoint variable. */
  readonly endpoint: string | undefined;
}): OtlpConfig | null {
  const reader = new EnvironmentReader(options.env, options.endpoint);
  if (options.endpoint === undefined && reader.isDisabled()) return null;
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
  readonly #endpoint: string | undefined;

  constructor(env: Environment, endpoint: string | undefined) {
    this.#env = env;
    this.#endpoint = endpoint;
  }

  isDisabled(): boolean {
    return this.#get('OTEL_SDK_DISABLED')?.toLowerCase() === 'true';
  }

  target(signal: Signal): SignalTarget | null {
    const found = this.#isExported(signal) ? this.#endpointOf(signal) : null;
    if (found === null) return null;
    const { variable, text, path } = found;
    const url = parseEndpoint(variable, text);
    if (path !== '') url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`;
    const headers = { ...this.#headers(signal), ...basicAuthorization(url) };
    url.username = '';
    url.password = '';
    if (url.port === GRPC_PORT && signal === 'traces')
      this.warnings.push(
        `${variable} has port 4317, which is gRPC's; OTLP over HTTP is usually at 4318`,
      );
    return {
      signal,
      url,
      headers,
      protocol: this.#protocol(signal),
      timeout: this.#timeout(signal),
      gzip: this.#isGzip(signal),
    };
  }

  resource(): Attributes {
    const text = this.#get('OTEL_RESOURCE_ATTRIBUTES') ?? '';
    const parsed = parseKeyValues(text);
    // The specification has the whole value discarded when a part of it is wrong.
    if (!parsed.ok) this.warnings.push('OTEL_RESOURCE_ATTRIBUTES is not key=value,…: ignored');
    const service = this.#get('OTEL_SERVICE_NAME');
    return {
      ...(parsed.ok ? Object.fromEntries(parsed.pairs) : {}),
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
    if (this.#endpoint !== undefined)
      return { variable: '--otlp-endpoint', text: this.#endpoint, path };
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`;
    const ownText = this.#get(own);
    // A signal's own endpoint is used as it is; the common one is a base.
    if (ownText !== undefined) return { variable: own, text: ownText, path: '' };
    const base = 'OTEL_EXPORTER_OTLP_ENDPOINT';
    const text = this.#get(base);
    return text === undefined ? null : { variable: base, text, path };
  }

  #headers(signal: Signal): Record<string, string> {
    const [name, text] = this.#named(signal, 'HEADERS');
    const parsed = parseKeyValues(text ?? '');
    if (!parsed.ok) {
      this.warnings.push(`${name} is not key=value,…: no headers are sent`);
      return {};
    }
    const headers: Record<string, string> = {};
    for (const [key, value] of parsed.pairs) {
      try {
        validateHeaderName(key);
        validateHeaderValue(key, value);
        headers[key.toLowerCase()] = value;
      } catch {
        this.warnings.push(`${name} has a header that HTTP does not allow: not sent`);
      }
    }
    return headers;
  }

  #protocol(signal: Signal): Protocol {
    const [name, value = 'http/protobuf'] = this.#named(signal, 'PROTOCOL');
    if (value === 'http/protobuf' || value === 'http/json') return value;
    if (value === 'grpc')
      throw new TraceError('ERR_OTLP_GRPC', `${name} is grpc, which trace does not speak yet`, {
        exitCode: EXIT.usage,
        remedy: `Set ${name}=http/protobuf, and the endpoint's HTTP port (usually 4318).`,
      });
    throw usageError(
      `${name} is ${printable(value, 40)}, not http/protobuf or http/json`,
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
    this.warnings.push(`${name}: ${printable(value, 40)} is not supported and ignored`);
  }
}

function parseEndpoint(variable: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  const shown = printable(text.replace(/\/\/[^/@]*@/, '//***@'), 100);
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
  return printable(`${url.origin}${url.pathname}`);
}
