import { describe, expect, it } from 'vitest';
import { figuresOf, matched, ttftErrors } from '../../load/truth-server/compare.ts';
import type { TruthRequest } from '../../load/truth-server/truth-log.ts';
import { barTable, TRACE } from './bars.ts';
import type { LoadRow } from './measure.ts';
import { worseList } from './worse.ts';

/* What is made of the rows; the rows themselves are docs/benchmarks.md. */

const quantiles = (p50: number, p99: number) => ({ p50, p99 });

function row(changed: Partial<LoadRow>): LoadRow {
  return {
    scenario: '256 streams',
    tool: TRACE,
    client: { ttft: quantiles(0.0201, 0.0262), itl: quantiles(0.005, 0.0065) },
    truth: { ttft: quantiles(0.02, 0.026), itl: quantiles(0.005, 0.0065) },
    perRequest: null,
    answered: 100,
    matched: 0,
    failed: 0,
    tokensPerSecond: 48_000,
    cpuPerToken: 10e-6,
    wholeCpuPerToken: 15e-6,
    coreShare: 0.5,
    resident: 100e6,
    firstRequest: 0.3,
    maxInFlight: 256,
    arrivals: null,
    ownLateness: null,
    serverLateness: { write: null, read: null },
    ...changed,
  };
}
const lineOf = (table: string, what: string): string =>
  table.split('\n').find((line) => line.includes(`| 256 streams | ${what} |`)) ?? '';
const off = (ms: number): LoadRow['client'] => ({
  ttft: quantiles(0.02 + ms / 1e3, 0.026 + ms / 1e3),
  itl: quantiles(0.005, 0.0065),
});
const LOCUST = 'locust, script of ours';

describe('a bar', () => {
  it('is held against the median of the rounds, absolutely and beside the best peer', () => {
    const ours = [0.1, -0.2, 5].map((ms) => row({ client: off(ms) }));
    const peers = [
      row({ tool: LOCUST, client: off(2.1) }),
      row({ tool: 'aiperf', client: off(9) }),
    ];
    const line = lineOf(barTable([...ours, ...peers]), 'error of TTFT p50');
    expect(line).toContain('| at most 0.300 ms | 0.200 ms (0.100 ms–5.000 ms) | met |');
    expect(line).toContain(`≤ 0.1 × ${LOCUST} (2.100 ms): met`);
  });

  it('is missed beyond its limit, and beyond its share of the best peer', () => {
    const rows = [row({ client: off(0.4) }), row({ tool: LOCUST, client: off(3.9) })];
    const line = lineOf(barTable(rows), 'error of TTFT p50');
    expect(line).toContain('| **missed** |');
    expect(line).toContain('(3.900 ms): **missed**');
  });

  it('says that nothing was measured instead of that it is met', () => {
    expect(lineOf(barTable([]), 'error of TTFT p50')).toContain('| not measured | – |');
  });
});

describe('the list of what is worse', () => {
  it('names a tool that kept up and was ahead, and none that did not keep up', () => {
    const ours = row({ cpuPerToken: 12e-6 });
    const ahead = row({ tool: 'k6, body discarded', cpuPerToken: 11e-6 });
    const slow = row({ tool: 'aiperf', cpuPerToken: 1e-6, tokensPerSecond: 9_000 });
    const list = worseList([ours, ahead, slow]);
    expect(list).toContain(
      '- 256 streams: CPU a token: trace load 12.0 µs; k6, body discarded 11.0 µs',
    );
    expect(list).not.toContain('aiperf');
  });
});

describe('the truth', () => {
  const request = (spanId: string, from: number, gaps: readonly number[]): TruthRequest => ({
    spanId,
    arrivedAt: from,
    readAt: from,
    firstAt: from + 0.02,
    lastAt: from + 0.02 + gaps.reduce((a, b) => a + b, 0),
    endedAt: from + 1,
    tokens: gaps.length + 1,
    status: 200,
    outcome: 'answered',
    gaps: Float64Array.from(gaps),
  });
  const log = {
    requests: [request('a', 1, [0.005, 0.007]), request('b', 2, [0.006])],
    writeLateness: Float64Array.of(),
  };

  it('has the gaps of all requests in one distribution', () => {
    expect(figuresOf(log.requests).itl?.p50).toBeCloseTo(0.006, 9);
    expect(figuresOf(log.requests).ttft?.p50).toBeCloseTo(0.02, 9);
  });

  it('is compared request by request, by span id', () => {
    const pairs = matched(log, [
      { spanId: 'b', ttft: 0.021 },
      { spanId: 'unknown', ttft: 5 },
    ]);
    expect([...ttftErrors(pairs)]).toEqual([expect.closeTo(0.001, 9)]);
  });
});
