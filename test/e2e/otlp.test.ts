import { describe, expect, it } from 'vitest';
import { startGrpcReceiver } from '../otel/grpc-receiver.ts';
import type { Received } from '../otel/received.ts';
import { startReceiver, unusedUrl } from '../otel/receiver.ts';
import { startTarget } from '../targets/harness.ts';
import { parseReport, type ReportDocument, runCli, startCli, verdicts } from './cli.ts';

/* What a tracing backend gets of a run; the receiver stands in for it and decodes by the official .proto files. */

const PROTOCOLS = ['http/json', 'http/protobuf', 'grpc'] as const;
const PLAN = { kinds: ['sleep'], durations: [300], reps: 200, startS: 0.2, seconds: 60 } as const;

/** The verdicts on the planted block; a machine that stands still beside it may add one of its own. */
const planted = (report: ReportDocument): readonly unknown[] =>
  verdicts(report).filter(({ where }) => JSON.stringify(where).includes('blocking_sleep'));

const attributesOf = (span: Received | undefined): Readonly<Record<string, unknown>> =>
  (span?.['attributes'] ?? {}) as Readonly<Record<string, unknown>>;

describe.concurrent.each(PROTOCOLS)('a run exported as %s', (protocol) => {
  it('is one trace: a root span with the blocks as its children, and metrics of the process', async () => {
    const receiver = await (protocol === 'grpc' ? startGrpcReceiver() : startReceiver());
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
      for (const block of blocks) expect(block['parentSpanId']).toEqual(root?.['spanId']);
      // Where the machine itself stood still, nobody saw the stack: those are marked, and are not the program's.
      const seen = blocks
        .map(attributesOf)
        .filter((attributes) => attributes['tracewright.block.starved'] !== true);
      expect(seen.length).toBeGreaterThanOrEqual(3);
      for (const attributes of seen) {
        expect(attributes).toMatchObject({
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
      expect(planted(parseReport(run))).toHaveLength(1);
      expect(run.stderr).toContain(endpoint);
    } finally {
      await target.stop();
    }
  });
});

describe.concurrent('an endpoint that takes a request and never answers', () => {
  it.each(PROTOCOLS)('by %s is given up at Ctrl-C, and the report is out', async (protocol) => {
    const receiver = await (protocol === 'grpc'
      ? startGrpcReceiver({ hangs: true })
      : startReceiver({ delay: Number.POSITIVE_INFINITY }));
    const target = await startTarget('asyncio', PLAN);
    try {
      const args = ['attach', String(target.pid), '-d', '0', '--json', '--no-recording'];
      const run = startCli([...args, '--otlp-endpoint', receiver.url, '--otlp-protocol', protocol]);
      await receiver.arrival;
      // The first ends the run, as --duration 0 has it; the second ends the waiting.
      run.child.kill('SIGINT');
      await run.said('still sending to the OTLP receiver; Ctrl-C gives up');
      run.child.kill('SIGINT');
      const ended = await run.ended;
      expect(ended.signal).toBeNull();
      expect(ended.code).toBe(1);
      const report = parseReport(ended);
      expect(planted(report)).toHaveLength(1);
      expect(report.problems.join('\n')).toMatch(/OTLP: not delivered: \d+ of \d+ spans/);
      expect(report.trace_url).toBeNull();
    } finally {
      await target.stop();
      await receiver.close();
    }
  });

  it('that is interrupted in the end of a run with a duration exits 130 with the whole report', async () => {
    const receiver = await startReceiver({ delay: Number.POSITIVE_INFINITY });
    const target = await startTarget('asyncio', PLAN);
    try {
      const args = ['attach', String(target.pid), '-d', '2', '--json', '--no-recording'];
      const run = startCli([...args, '--otlp-endpoint', receiver.url]);
      await run.said('still sending to the OTLP receiver');
      run.child.kill('SIGINT');
      const ended = await run.ended;
      expect(ended.code).toBe(130);
      expect(planted(parseReport(ended))).toHaveLength(1);
    } finally {
      await target.stop();
      await receiver.close();
    }
  });
});
