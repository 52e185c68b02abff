import { describe, expect, it } from 'vitest';
import { displayUrl, otlpConfig } from '../../src/otel/environment.ts';

type Environment = Record<string, string>;
const read = (env: Environment, endpoint?: string) => otlpConfig({ env, endpoint });
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

  it('asking for gRPC are told what to set instead', () => {
    expect(() => read({ ...BASE, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toThrow(
      expect.objectContaining({
        code: 'ERR_OTLP_GRPC',
        exitCode: 2,
        remedy: expect.stringContaining('OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf') as string,
      }) as Error,
    );
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'host:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT is host:4318, not'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://u:secret@h' }, 'is ftp://***@h, not an http:// or'],
    [{ ...BASE, OTEL_EXPORTER_OTLP_PROTOCOL: 'udp' }, 'OTEL_EXPORTER_OTLP_PROTOCOL is udp, not'],
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
