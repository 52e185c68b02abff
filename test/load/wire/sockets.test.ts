import { describe, expect, test } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EndpointPlan } from '../../../src/load/plan.ts';
import { makeCertificate } from '../../otel/certificate.ts';
import { chatStream, streamed } from './answers.ts';
import { ask } from './exchange.ts';
import { wireTests } from './wire-tests.ts';

const { serve, wireTo } = wireTests();

const long = Array.from({ length: 2000 }, (_, i) => `word ${i} `);
const answer = streamed(chatStream(...long));

describe('TLS', () => {
  const certificate = makeCertificate({ name: 'server.test' });
  const tlsOf = (tls: Partial<NonNullable<EndpointPlan['tls']>>) => ({
    servername: 'server.test',
    verify: true,
    ca: certificate.cert,
    ...tls,
  });

  test('carries streams, keeps the connection and tells times in order', async () => {
    const server = await serve(() => [answer], { tls: certificate });
    const wire = wireTo(server, { endpoint: { ...server.endpoint, tls: tlsOf({}) } });
    const first = await ask(wire);
    const second = await ask(wire);
    for (const exchange of [first, second]) {
      expect(exchange).toMatchObject({ error: null, text: long.join('') });
      expect(exchange.startedAt).toBeLessThanOrEqual(exchange.sentAt);
      expect(exchange.sentAt).toBeLessThanOrEqual(exchange.endedAt);
      expect(exchange.bytesReceived).toBe(answer.length);
    }
    expect(first.connectedAt).toBeGreaterThan(0);
    expect(second.connectedAt).toBeNull();
    expect(server.connections()).toBe(1);
  });

  test.each([
    ['nobody vouches for', { ca: null }],
    ['is of another name', { servername: 'other.test' }],
  ])('refuses a certificate that %s', async (_, tls) => {
    const server = await serve(() => [answer], { tls: certificate });
    const exchange = await ask(
      wireTo(server, { endpoint: { ...server.endpoint, tls: tlsOf(tls) } }),
    );
    expect(exchange.error?.class).toBe('tls');
    expect(server.requests).toEqual([]);
  });

  test('refuses a certificate that has expired', async () => {
    const expired = makeCertificate({ name: 'server.test', days: -1 });
    const server = await serve(() => [answer], { tls: expired });
    const tls = tlsOf({ ca: expired.cert });
    const exchange = await ask(wireTo(server, { endpoint: { ...server.endpoint, tls } }));
    expect(exchange.error).toMatchObject({ class: 'tls' });
    expect(exchange.error?.detail).toMatch(/expired/);
  });

  test('takes any certificate where none is to be verified', async () => {
    const server = await serve(() => [answer], { tls: certificate });
    const tls = tlsOf({ ca: null, verify: false, servername: 'other.test' });
    const exchange = await ask(wireTo(server, { endpoint: { ...server.endpoint, tls } }));
    expect(exchange.error).toBeNull();
  });

  test('verifies an address as well', async () => {
    const ofAddress = makeCertificate({ name: '127.0.0.1' });
    const server = await serve(() => [answer], { tls: ofAddress });
    const tls = tlsOf({ ca: ofAddress.cert, servername: '127.0.0.1' });
    const exchange = await ask(wireTo(server, { endpoint: { ...server.endpoint, tls } }));
    expect(exchange.error).toBeNull();
  });

  test('to a server that has none is an error of TLS', async () => {
    const server = await serve(() => [answer], {
      greeting: ['HTTP/1.1 400 Bad Request\r\n\r\n', 'FIN'],
    });
    const exchange = await ask(
      wireTo(server, { endpoint: { ...server.endpoint, tls: tlsOf({}) } }),
    );
    expect(exchange.error?.class).toBe('tls');
  });

  test('to a server that closes at once is an error of TLS', async () => {
    const server = await serve(() => [answer], { greeting: ['FIN'] });
    const exchange = await ask(
      wireTo(server, { endpoint: { ...server.endpoint, tls: tlsOf({}) } }),
    );
    expect(exchange.error?.class).toBe('tls');
  });

  test('to a server that resets the connection is a reset', async () => {
    const server = await serve(() => [answer], { greeting: ['RST'] });
    const exchange = await ask(
      wireTo(server, { endpoint: { ...server.endpoint, tls: tlsOf({}) } }),
    );
    expect(exchange.error?.class).toBe('reset');
  });

  test('in place of plain HTTP is malformed', async () => {
    const server = await serve(() => [answer], { tls: certificate });
    const exchange = await ask(wireTo(server));
    expect(['malformed', 'reset']).toContain(exchange.error?.class);
  });
});

describe('a unix socket', () => {
  test('carries streams and keeps the connection', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wire-'));
    try {
      const server = await serve(() => [answer], { path: join(folder, 'socket') });
      const wire = wireTo(server);
      expect(await ask(wire)).toMatchObject({ error: null, text: long.join('') });
      expect(await ask(wire)).toMatchObject({ error: null, connectedAt: null });
      expect(server.connections()).toBe(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
