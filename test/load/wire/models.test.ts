import { describe, expect, test } from 'vitest';
import type { TraceError } from '../../../src/core/errors.ts';
import { listModels } from '../../../src/load/wire/models.ts';
import { resolveAddress } from '../../../src/load/wire/resolve.ts';
import { makeCertificate } from '../../otel/certificate.ts';
import { json } from './answers.ts';
import type { Step } from './scripted-server.ts';
import { wireTests } from './wire-tests.ts';

const { serve } = wireTests();

const list = json({ object: 'list', data: [{ id: 'a' }, { id: 'b' }, { name: 'c' }] });

describe('the models of a server', () => {
  test('are asked for with its headers and no others', async () => {
    const server = await serve(() => [list]);
    const headers = [['Authorization', 'Bearer x']] as const;
    expect(await listModels({ ...server.endpoint, headers }, '/v1/models', 5)).toEqual(['a', 'b']);
    const head = server.requests[0]?.head ?? '';
    expect(head).toMatch(/^GET \/v1\/models HTTP\/1\.1\r\n/);
    expect(head).toMatch(/\r\nAuthorization: Bearer x\r\n/);
    expect(head).toMatch(new RegExp(`\r\nhost: 127.0.0.1:${server.port}\r\n`, 'i'));
  });

  test('come over TLS, too', async () => {
    const certificate = makeCertificate({ name: 'server.test' });
    const server = await serve(() => [list], { tls: certificate });
    const tls = { servername: 'server.test', verify: true, ca: certificate.cert };
    expect(await listModels({ ...server.endpoint, tls }, '/v1/models', 5)).toEqual(['a', 'b']);
    await expect(
      listModels({ ...server.endpoint, tls: { ...tls, ca: null } }, '/v1/models', 5),
    ).rejects.toMatchObject({ code: 'ERR_SERVER_UNREACHABLE', remedy: /--cacert/ });
  });

  test.each<[string, Step[], RegExp]>([
    ['ERR_SERVER_KEY', [json({ error: 'no' }, 401)], /answered 401/],
    ['ERR_NO_MODELS', [json({ detail: 'Not Found' }, 404)], /answered 404: Not Found/],
    ['ERR_NO_MODELS', [json({ data: [] })], /lists no model/],
    ['ERR_NO_MODELS', ['HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\u001b[31m!'], /\\x1b\[31m!/],
    ['ERR_SERVER_UNREACHABLE', ['FIN'], /could not be asked: reset/],
    ['ERR_SERVER_UNREACHABLE', ['HANG'], /no answer in 200 ms/],
  ])('fail with %s: %j', async (code, steps, message) => {
    const server = await serve(() => steps);
    const error = await listModels(server.endpoint, '/v1/models', 0.2).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code, exitCode: 3 });
    expect((error as TraceError).message).toMatch(message);
  });

  test('of a server that is not there', async () => {
    const server = await serve(() => []);
    const { endpoint } = server;
    const gone = { ...endpoint, address: { kind: 'tcp', host: '127.0.0.1', port: 1 } } as const;
    await expect(listModels(gone, '/v1/models', 5)).rejects.toThrow(/refused/);
  });
});

describe('the address of a name', () => {
  test('is itself where it is one', async () => {
    expect(await resolveAddress('127.0.0.2', 7)).toEqual({
      kind: 'tcp',
      host: '127.0.0.2',
      port: 7,
    });
    expect(await resolveAddress('::1', 7)).toEqual({ kind: 'tcp', host: '::1', port: 7 });
  });

  test('is the one that somebody listens on', async () => {
    const server = await serve(() => []);
    expect(await resolveAddress('localhost', server.port)).toMatchObject({ host: '127.0.0.1' });
  });

  test('is missing where there is none', async () => {
    await expect(resolveAddress('no-such-host.invalid', 80)).rejects.toMatchObject({
      code: 'ERR_NAME_NOT_FOUND',
      exitCode: 3,
    });
  });
});
