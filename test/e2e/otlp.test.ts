import { describe, expect, it } from 'vitest';
import type { Received } from '../otel/received.ts';
import { startReceiver, unusedUrl } from '../otel/receiver.ts';
import { startTarget } from '../targets/harness.ts';
import { parseReport, runCli, verdicts } from './cli.ts';

/* What a tracing backend gets of a run; the receiver stands in for it and decodes by the official .proto files. */

const ENCODINGS = ['http/json', 'http/protobuf'] as const;
const PLAN = { kinds: ['sleep'], durations: [80], reps: 60, startS: 0.2, seconds: 30 } as const;

const attributesOf = (span: Received | undefined): Readonly<Record<string, unknown>> =>
  (span?.['attributes'] ?? {}) as Readonly<Record<string, unknown>>;

describe.concurrent.each(ENCODINGS)('a run exported as %s', (protocol) => {
  it('is one trace: a root span with the blocks as its children, and metrics of the process', async () => {
    const receiver = await startReceiver();
    const target = await startTarget('asyncio', PLAN);
    try {
      const run = await runCli(
        ['attach', String(target.pid), '-d', '4', '--json', '--no-recording', '--otel'],
        {
          env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
        },
      );
      const report = parseReport(run);
      expect(run.code).toBe(1);
      const spans = receiver.spans();
      expect(new Set(spans.map(({ traceId }) => String(traceId).toLowerCase()))).toEqual(
        new Set([report.trace_id]),
      );
      const [root, ...others] = spans.filter(({ parentSpanId }) => !parentSpanId);
      expect(others).toEqual([]);
      const blocks = spans.filter(({ name }) => name === 'tracewright.eventloop.blocked');
      expect(blocks.length).toBeGreaterThanOrEqual(5);
      for (const block of blocks) {
        expect(block['parentSpanId']).toEqual(root?.['spanId']);
        expect(attributesOf(block)).toMatchObject({
          'code.function.name': expect.stringContaining('blocking_sleep'),
          'code.stacktrace': expect.stringContaining('blocking_sleep'),
        });
      }
      expect(receiver.metrics().map(({ name }) => name)).toContain('process.memory.usage');
    } finally {
      await target.stop();
      await receiver.close();
    }
  });
});

describe.concurrent('an endpoint that does not answer', () => {
  it('neither delays nor changes the result, and is told of', async () => {
    const target = await startTarget('asyncio', PLAN);
    try {
      const endpoint = await unusedUrl();
      const run = await runCli([
        'attach',
        String(target.pid),
        '-d',
        '3',
        '--json',
        '--no-recording',
        '--otlp-endpoint',
        endpoint,
      ]);
      expect(run.code).toBe(1);
      expect(verdicts(parseReport(run))).toHaveLength(1);
      expect(run.stderr).toContain(endpoint);
    } finally {
      await target.stop();
    }
  });
});
