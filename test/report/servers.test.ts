import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { PROBE_METRIC, SERVER_EVENT } from '../../src/core/semconv-server.ts';
import type { Observation } from '../../src/core/types.ts';
import { renderJson } from '../../src/report/json.ts';
import { buildReport, type Report } from '../../src/report/report.ts';
import { serverLines } from '../../src/report/servers.ts';
import { renderTerminal } from '../../src/report/terminal.ts';
import { START, T0 } from '../analysis/simulated-run.ts';
import { recordServer, type ServerState } from '../collectors/server-metrics/simulated-server.ts';

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
const validate = ajv.compile(
  JSON.parse(readFileSync('docs/schema/attach.schema.json', 'utf8')) as object,
);

function report(
  at: (second: number) => ServerState | readonly ServerState[],
  others: readonly Observation[] = [],
): Report {
  return buildReport(recordServer(START, 10, at, others), [], { recording: null });
}

const busy = (t: number): ServerState => ({
  running: t < 5 ? 3 : 7,
  waiting: t === 4 ? 2 : 0,
  kvUsage: t / 20,
  tokens: 1000 + 812 * t,
  promptTokens: 300 * t,
  finished: 6 * t,
  preemptions: t,
  ttft: Array.from({ length: 10 * t }, (_, i) => (i % 10 === 9 ? 200 : 0.2)),
  itl: Array.from({ length: 10 * t }, () => 0.005),
});

const text = (one: Report) => serverLines(one).map(({ label, text: line }) => `${label}: ${line}`);

const probes: readonly Observation[] = [
  ...[0.012, 0.03, 0.02].flatMap((seconds, i): readonly Observation[] => [
    { kind: 'sample', at: T0 + i, metric: PROBE_METRIC.ttft.name, value: seconds },
    { kind: 'sample', at: T0 + i, metric: PROBE_METRIC.e2e.name, value: 2 * seconds },
  ]),
  {
    kind: 'event',
    at: T0 + 5,
    name: SERVER_EVENT.probeFailed,
    severity: 'warn',
    body: 'timeout',
  },
];

describe('the server in the report', () => {
  it('says what it worked on, how fast, and its times as its buckets know them', () => {
    expect(text(report(busy))).toEqual([
      'server: vLLM at 127.0.0.1:8000: running median 7, max 7; waiting median 0, max 2; KV cache median 25 %, max 50 %; 10 preemptions',
      ': 812 tokens/s out, 300 in, 6 requests/s ended',
      ': by its own histograms: TTFT mean 20.2 s, p50 100–250 ms, p99 ≥ 80 s (100); ITL mean 5 ms, p50 ≤ 10 ms, p99 ≤ 10 ms (100)',
    ]);
  });

  it('lays several engines side by side', () => {
    const lines = text(
      report((t) => [
        { engine: '0', running: 4, waiting: 0, kvUsage: 0.4, tokens: 100 * t },
        { engine: '1', running: 9, waiting: 3, kvUsage: 0.9, tokens: 0 },
      ]),
    );
    expect(lines.slice(-2)).toEqual([
      ': engine 0: running 4, waiting at most 0, KV cache at most 40 %, 100 tokens/s',
      ': engine 1: running 9, waiting at most 3, KV cache at most 90 %, 0 tokens/s',
    ]);
  });

  it('says that it was restarted', () => {
    const restart: Observation = {
      kind: 'event',
      at: T0 + 3,
      name: SERVER_EVENT.restart,
      severity: 'warn',
      body: 'began anew',
      attributes: { 'server.address': '127.0.0.1', 'server.port': 8000 },
    };
    expect(text(report(busy, [restart]))[0]).toContain('restarted once');
  });

  it('has a line of its own for probes', () => {
    expect(text(report(busy, probes)).at(-1)).toBe(
      'probe: 4 requests; 1 failed; TTFT median 20 ms, max 30 ms; E2E median 40 ms, max 60 ms',
    );
  });

  it('stands in the terminal and in the JSON document as its schema says', () => {
    const whole = report(busy, probes);
    const surface = { color: false, unicode: true, width: 100 };
    expect(renderTerminal(whole, surface)).toContain('vLLM at 127.0.0.1:8000');
    const document = JSON.parse(renderJson(whole)) as Record<string, unknown>;
    expect(validate(document) ? [] : validate.errors).toEqual([]);
    expect(document).toMatchObject({
      servers: [
        {
          software: 'vllm',
          output_tokens_per_s: 812,
          latency: { ttft: { p99: { over_s: 80, up_to_s: null } }, e2e: null },
        },
      ],
      probes: { count: 4, failed: 1 },
    });
  });

  it('is not there where no page was read', () => {
    const none = report(() => []);
    expect(text(none)).toEqual([]);
    expect(JSON.parse(renderJson(none))).not.toHaveProperty('servers');
  });
});
