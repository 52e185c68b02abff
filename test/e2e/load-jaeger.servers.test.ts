import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDynamo } from '../servers/dynamo.ts';
import {
  BUILD_LIMIT_MS,
  type Jaeger,
  jaegerProgram,
  spansOf,
  startJaeger,
} from '../servers/jaeger/jaeger.ts';
import type { Server } from '../servers/servers.ts';
import { DONE, load, removeRequestLogs } from './loading.ts';

/*
 * One run, one trace: a real NVIDIA Dynamo and `trace load` send their spans to a real Jaeger (`.ci/run` only, as jaeger.test.ts), and the
 * server's hang below ours.
 */

const REQUESTS = 8;
const SERVICE = 'dynamo';
/** An address of its own leaves the default ports of 127.0.0.1 alone. */
const HOST = `127.87.${process.pid % 250}.1`;
const folder = mkdtempSync(join(tmpdir(), 'trace-load-jaeger-'));
let jaeger: Jaeger;
let server: Server;

beforeAll(async () => {
  await jaegerProgram();
  jaeger = await startJaeger(HOST, join(folder, 'data'));
  server = await startDynamo({
    OTEL_EXPORT_ENABLED: '1',
    OTEL_SERVICE_NAME: SERVICE,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://${HOST}:4317`,
    DYN_LOGGING_JSONL: '1',
  });
}, BUILD_LIMIT_MS);

afterAll(async () => {
  await server.stop();
  await jaeger.stop('SIGKILL');
  removeRequestLogs();
  rmSync(folder, { recursive: true, force: true });
});

describe('requests to NVIDIA Dynamo', () => {
  it('are spans of ours, under which its own spans hang', async () => {
    const otlp = ['--otlp-endpoint', `http://${HOST}:4318`];
    const { run, log } = await load(server.port, '-n', String(REQUESTS), '-c', '2', ...otlp);
    expect(DONE).toContain(run.code);
    const { trace_id: traceId } = JSON.parse(run.stdout) as { trace_id: string };
    const spans = await spansOf(jaeger, traceId, { service: SERVICE, atLeast: 3 * log.length });
    const ours = new Set(spans.filter(({ service }) => service !== SERVICE).map(({ id }) => id));
    const requests = spans.filter(({ name }) => name === 'http-request');
    expect(requests).toHaveLength(log.length);
    for (const { parent } of requests) expect(ours).toContain(parent);
  });
});
