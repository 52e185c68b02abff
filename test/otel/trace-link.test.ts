import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { rootSpanId } from '../../src/core/otlp-encode.ts';
import { configuredLink, jaegerLink } from '../../src/otel/trace-link.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

let address = 1;

/** A host of its own (all of 127.0.0.0/8 is this machine) with something at Jaeger's port. */
async function host(answer: RequestListener): Promise<string> {
  const name = `127.77.${process.pid % 250}.${address++}`;
  const server = createServer(answer);
  server.listen(16_686, name);
  await once(server, 'listening');
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return name;
}

const never = new AbortController().signal;
const ask = (name: string, signal = never) =>
  jaegerLink({
    receiver: { url: new URL(`http://${name}:4318/v1/traces`), tls: {} },
    traceId: TRACE,
    signal,
  });

const NOT_FOUND =
  '{"data":null,"total":0,"limit":0,"offset":0,"errors":[{"code":404,"msg":"trace not found"}]}';
const found = (id: string, ...spans: string[]) =>
  JSON.stringify({
    data: [{ traceID: id, spans: spans.map((spanID) => ({ traceID: id, spanID })) }],
  });
const ROOT = rootSpanId(TRACE);

describe('the link to a trace', () => {
  it('is given when the Jaeger at the host of the receiver has its root span, which may take a moment', async () => {
    let asked = 0;
    const paths = new Set<string | undefined>();
    const headers = new Set<string>();
    const name = await host((request, response) => {
      paths.add(request.url);
      for (const header of Object.keys(request.headers)) headers.add(header);
      response.statusCode = ++asked < 3 ? 404 : 200;
      const answers = [NOT_FOUND, NOT_FOUND, found(TRACE, 'b1'), found(TRACE, 'b1', ROOT)];
      response.end(answers[asked - 1]);
    });
    expect(await ask(name)).toBe(`http://${name}:16686/trace/${TRACE}`);
    expect(asked).toBe(4);
    expect([...paths]).toEqual([`/api/traces/${TRACE}`]);
    expect([...headers].toSorted()).toEqual(['connection', 'host']);
  });

  it('is given when a part of the trace is all that comes', async () => {
    const name = await host((_, response) => response.end(found(TRACE, 'b1')));
    expect(await ask(name)).not.toBeNull();
  });

  it('is given for a trace without an end, which is not read to its end', async () => {
    const name = await host((_, response) => {
      response.write(found(TRACE));
      const more = () => {
        if (!response.destroyed) response.write('x'.repeat(65_536), more);
      };
      more();
    });
    expect(await ask(name)).not.toBeNull();
  });

  it.each([
    ['something else', 200, '<html>Grafana</html>'],
    ['an empty page', 404, ''],
    ['another trace', 200, found('1'.repeat(32), ROOT)],
    ['a password dialog', 401, ''],
  ])('is not given for %s at that port', async (_, status, body) => {
    const name = await host((_request, response) => {
      response.statusCode = status;
      response.end(body);
    });
    expect(await ask(name)).toBeNull();
  });

  it('is not given, and costs no time, where nothing listens', async () => {
    expect(await ask(`127.77.${process.pid % 250}.${address++}`)).toBeNull();
  });

  it('is not waited for when nobody wants to wait', async () => {
    const name = await host(() => {});
    const tired = new AbortController();
    const asked = ask(name, tired.signal);
    tired.abort();
    expect(await asked).toBeNull();
  });

  it('is what the user configured, with the id where they want it', () => {
    expect(configuredLink('https://g/explore?q={trace_id}#{trace_id}', TRACE)).toBe(
      `https://g/explore?q=${TRACE}#${TRACE}`,
    );
    expect(configuredLink('https://bob:S3cretValue9@g/trace/{trace_id}', TRACE)).toBe(
      `https://bob:***@g/trace/${TRACE}`,
    );
  });
});
