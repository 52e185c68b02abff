import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { displayUrl, otlpConfig } from '../../src/otel/environment.ts';
import { makeCertificate } from './certificate.ts';

type Environment = Record<string, string>;
const read = (env: Environment, endpoint?: string) => otlpConfig({ env, endpoint });
const TRUSTED = makeCertificate({ name: '127.0.0.1' });
const BASE = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://host:4318' };

describe('where OTLP goes', () => {
  it.each<[string, Environment, string | undefined]>([
    ['nothing is set', {}, undefined],
    ['the SDK is disabled', { ...BASE, OTEL_SDK_DISABLED: 'TRUE' }, undefined],
    ['the variable is empty', { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, undefined],
    [
      'no signal is exported',
      { ...BASE, OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' },
      undefined,
    ],
  ])('is nowhere when %s', (_, env, endpoint) => {
    expect(read(env, endpoint)).toBeNull();
  });

  it.each([
    ['http://host:4318', 'http://host:4318/v1/traces', 'http://host:4318/v1/metrics'],
    ['http://host:4318/', 'http://host:4318/v1/traces', 'http://host:4318/v1/metrics'],
    ['https://host/base/', 'https://host/base/v1/traces', 'https://host/base/v1/metrics'],
  ])('is below the base %s', (endpoint, traces, metrics) => {
    const config = read({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
    expect(config?.targets.traces?.url.href).toBe(traces);
    expect(config?.targets.metrics?.url.href).toBe(metrics);
    expect(config?.targets.logs).toBeNull();
  });

  it("is a signal's own endpoint as it stands", () => {
    const config = read({
      ...BASE,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://jaeger/otlp',
    });
    expect(config?.targets.traces?.url.href).toBe('https://jaeger/otlp');
    expect(config?.targets.metrics?.url.href).toBe('http://host:4318/v1/metrics');
  });

  it('is what the flag says, above every variable and the switch', () => {
    const env = {
      ...BASE,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://jaeger/otlp',
      OTEL_SDK_DISABLED: 'true',
    };
    expect(read(env, 'http://flag:1')?.targets.traces?.url.href).toBe('http://flag:1/v1/traces');
  });
});

describe('settings', () => {
  it('have the defaults of the specification', () => {
    expect(read(BASE)?.targets.traces).toMatchObject({
      protocol: 'http/protobuf',
      timeout: 10,
      gzip: false,
      headers: {},
    });
    expect(read(BASE)).toMatchObject({ resource: {}, temporality: 'cumulative', warnings: [] });
  });

  it("of one signal stand above everybody's", () => {
    const config = read({
      ...BASE,
      OTEL_EXPORTER_OTLP_HEADERS: 'a=1,B=%C3%BC%2C',
      OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'c=3',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_TIMEOUT: '2500',
      OTEL_EXPORTER_OTLP_METRICS_COMPRESSION: 'gzip',
    });
    expect(config?.targets.traces).toMatchObject({
      headers: { a: '1', b: 'ü,' },
      protocol: 'http/json',
      timeout: 2.5,
      gzip: false,
    });
    expect(config?.targets.metrics).toMatchObject({
      headers: { c: '3' },
      protocol: 'http/protobuf',
      gzip: true,
    });
  });

  it('name the service and its resource; OTEL_SERVICE_NAME wins', () => {
    const env = { ...BASE, OTEL_RESOURCE_ATTRIBUTES: 'service.name=a,deployment=x%3Dy' };
    expect(read(env)?.resource).toEqual({ 'service.name': 'a', deployment: 'x=y' });
    expect(read({ ...env, OTEL_SERVICE_NAME: 'b' })?.resource['service.name']).toBe('b');
  });

  it('send no credential among the attributes of the resource', () => {
    const own = 'process.command_line=x --password S3cretValue9 --port 8000';
    const given = `service.name=a,${own},api.token=S3cretValue9`;
    const env = { ...BASE, OTEL_RESOURCE_ATTRIBUTES: given };
    expect(read(env)?.resource).toEqual({
      'service.name': 'a',
      'process.command_line': 'x --password *** --port 8000',
      'api.token': '***',
    });
  });

  it.each([
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=1,b', 'OTEL_RESOURCE_ATTRIBUTES is not key=value,…: ignored'],
    ['OTEL_RESOURCE_ATTRIBUTES', 'a=%zz', 'OTEL_RESOURCE_ATTRIBUTES is not key=value,…: ignored'],
    ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'soon', 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: soon is not'],
    ['OTEL_EXPORTER_OTLP_TRACES_COMPRESSION', 'br', 'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: br is'],
    ['OTEL_TRACES_EXPORTER', 'otlp,console', 'OTEL_TRACES_EXPORTER: console is not supported'],
    ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'secret', 'no headers are sent'],
    ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'a=secret%0d%0ab', 'a header that HTTP does not allow'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'http://h:4317', "port 4317, which is gRPC's"],
  ])('%s=%s is a warning', (name, value, warning) => {
    const config = read({ ...BASE, [name]: value });
    expect(config?.warnings).toEqual([expect.stringContaining(warning)]);
    expect(config?.warnings.join()).not.toContain('secret');
  });

  it('name a protocol for all signals or for one; the flag stands above them', () => {
    const env = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json',
    };
    const { traces, metrics } = read(env, 'http://h:9')?.targets ?? {};
    expect([traces?.protocol, metrics?.protocol]).toEqual(['grpc', 'http/json']);
    expect([traces?.url.href, metrics?.url.href]).toEqual(['http://h:9/', 'http://h:9/v1/metrics']);
    const forced = otlpConfig({ env, endpoint: 'http://h:9', protocol: 'http/protobuf' });
    expect(forced?.targets.traces?.protocol).toBe('http/protobuf');
  });

  it("leave the default to each signal's protocol, when the default is asked for", () => {
    const env = { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' };
    expect(read(env)).toBeNull();
    const { traces, metrics } =
      otlpConfig({ env, endpoint: undefined, orDefault: true })?.targets ?? {};
    expect(traces?.url.href).toBe('http://localhost:4317/');
    expect(metrics?.url.href).toBe('http://localhost:4318/v1/metrics');
  });

  it.each([
    [{}, 'https://collector:4317/'],
    [{ OTEL_EXPORTER_OTLP_INSECURE: 'true' }, 'http://collector:4317/'],
    [
      { OTEL_EXPORTER_OTLP_INSECURE: 'true', OTEL_EXPORTER_OTLP_TRACES_INSECURE: 'false' },
      'https://collector:4317/',
    ],
  ])('%j decides about TLS for a gRPC endpoint without a scheme', (env, url) => {
    const endpoint = 'collector:4317';
    const all = { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };
    const config = read({ ...all, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });
    expect(config?.targets.traces?.url.href).toBe(url);
    expect(() => read(all)).toThrow('not an http:// or https:// URL');
  });

  it.each([
    ['http://h:4318', 'port 4318, which is that of OTLP over HTTP; gRPC is usually at 4317'],
    ['http://h:4317/v1/traces', 'has a path, which gRPC does not use'],
  ])('that gRPC at %s has no use for are a warning, once', (endpoint, warning) => {
    const config = otlpConfig({ env: {}, endpoint, protocol: 'grpc' });
    expect(config?.warnings).toEqual([expect.stringContaining(warning)]);
    expect(config && config.targets.traces && displayUrl(config.targets.traces.url)).toBe(
      endpoint.replace('/v1/traces', ''),
    );
  });

  it('name no header of HTTP or of gRPC itself as metadata', () => {
    const env = { OTEL_EXPORTER_OTLP_HEADERS: 'te=x,grpc-timeout=1S,connection=close,key=v' };
    const config = otlpConfig({ env, endpoint: 'http://h', protocol: 'grpc' });
    expect(config?.targets.traces?.headers).toEqual({ key: 'v' });
    expect(config?.warnings).toEqual([expect.stringContaining('that HTTP does not allow')]);
  });

  it('name files of certificates, which are read before the run', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'trace-tls-')), 'a.pem');
    const env = { OTEL_EXPORTER_OTLP_CERTIFICATE: file };
    expect(() => read(env, 'https://h')).toThrow(
      `OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read ${file}: ENOENT`,
    );
    writeFileSync(file, 'something');
    expect(() => read(env, 'https://h')).toThrow('holds no certificate in PEM form');
    writeFileSync(file, TRUSTED.cert);
    expect(read(env, 'https://h')?.targets.traces?.tls).toEqual({ ca: TRUSTED.cert });
    expect(read(env, 'http://h')?.targets.traces?.tls).toEqual({});
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'host:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT is host:4318, not'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://u:secret@h' }, 'is ftp://u:***@h, not an http:// or'],
    [{ ...BASE, OTEL_EXPORTER_OTLP_PROTOCOL: 'udp' }, 'udp, not http/protobuf, http/json or grpc'],
  ])('%j are a usage error', (env, message) => {
    expect(() => read(env)).toThrow(
      expect.objectContaining({
        exitCode: 2,
        message: expect.stringContaining(message) as string,
      }) as Error,
    );
  });
});

it('credentials of a URL become a header and are never shown', () => {
  const target = read({}, 'http://us%40er:pa%3Ass@host:4318/x?key=1')?.targets.traces;
  expect(target?.headers).toEqual({
    authorization: `Basic ${Buffer.from('us@er:pa:ss').toString('base64')}`,
  });
  expect(target && displayUrl(target.url)).toBe('http://host:4318/x/v1/traces');
  expect(target?.url.href).toBe('http://host:4318/x/v1/traces?key=1');
});
