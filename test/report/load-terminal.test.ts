import { describe, expect, it } from 'vitest';
import type { LoadResult } from '../../src/core/load-types.ts';
import { LOAD_ATTR, LOAD_METRIC } from '../../src/core/semconv-load.ts';
import { compareResults } from '../../src/load/results/compare.ts';
import { mergeResults } from '../../src/load/results/merge.ts';
import { evaluateThreshold } from '../../src/load/results/threshold-evaluate.ts';
import { parseThreshold } from '../../src/load/results/threshold-parse.ts';
import { displayWidth } from '../../src/report/layout.ts';
import { renderLoadTerminal } from '../../src/report/load-terminal.ts';
import { buildLoadReport } from '../../src/report/load-report.ts';
import type { Surface } from '../../src/report/style.ts';
import { failure, histogram, request } from '../load/results/sample-run.ts';
import {
  concurrency,
  failing,
  healthy,
  loadResult,
  loadView,
  sweep,
  withoutDescriptors,
} from './sample-load.ts';
import { noteFinding, sampleView, series, TERMINAL_CONTROLS } from './sample-report.ts';

const few = loadResult([{ label: 'c=1', asked: concurrency(1), seconds: 10, perSecond: 4 }]);
const limited = loadResult([
  {
    label: 'c=4',
    asked: concurrency(4),
    seconds: 20,
    perSecond: 20,
    client: { coreShare: 0.98, readLag: histogram([0.03, 0.04, 0.05]) },
  },
]);
const overrun = loadResult([
  {
    label: 'c=4',
    asked: concurrency(4),
    seconds: 20,
    perSecond: 20,
    make: (at, i) =>
      i < 200
        ? request({ scheduledAt: at })
        : failure({ class: 'refused' }, { scheduledAt: at, startedAt: at, endedAt: at + 0.001 }),
    client: { coreShare: 0.98 },
  },
]);
const part = (index: number, complete = true): LoadResult => ({
  ...healthy,
  parts: {
    expected: 3,
    present: healthy.parts.present.map((one) => ({
      ...one,
      index,
      host: `client-${index}`,
      complete,
    })),
  },
});

function shown(
  result: LoadResult,
  options: { surface?: Partial<Surface>; failOn?: readonly string[]; baseline?: LoadResult } = {},
): string {
  const { failOn = [], baseline, surface } = options;
  const report = buildLoadReport(loadView, [noteFinding], {
    recording: '/recordings/x',
    result,
    thresholds: failOn.map((one) => evaluateThreshold(parseThreshold(one), result.total, null)),
    comparison: baseline === undefined ? null : compareResults(result, baseline, 'last.json'),
  });
  return renderLoadTerminal(report, { color: false, width: 80, unicode: true, ...surface });
}

const first = (text: string): string => text.split('\n\n')[0]?.replaceAll('\n', ' ') ?? '';

describe('the verdict comes first', () => {
  it.each<[string, string, RegExp]>([
    [
      'healthy',
      shown(healthy),
      /^Answered: 400 requests, all answered, 19\.9 req\/s; TTFT p50 100 ms, p99 100 ms$/,
    ],
    ['failures', shown(failing), /^FAILING: 360 of 400 requests answered, 10 % failed/],
    [
      'the client',
      shown(limited),
      /^CLIENT LIMITED: the load generator was the limit: a worker used 98 % of a core$/,
    ],
    [
      'too few descriptors',
      shown(withoutDescriptors(50)),
      /^CLIENT LIMITED: .*: 200 requests had no descriptor for their connection \(connect EMFILE/,
    ],
    [
      'none at all',
      shown(withoutDescriptors(100)),
      /^CLIENT LIMITED: .*: 400 requests had no descriptor/,
    ],
    [
      'failures of the server, before a client that they keep busy',
      shown(overrun),
      /^FAILING: 200 of 400 requests .*50 % failed.*; the load generator was the limit: a worker used 98 % of a core$/,
    ],
    [
      'a gate',
      shown(healthy, { failOn: ['e2e.p50>100ms'] }),
      /^FAILED: e2e\.p50>100ms: 19\d ms, from 400$/,
    ],
    [
      'no verdict',
      shown(few, { failOn: ['ttft.p99>200ms'] }),
      /^CANNOT TELL: ttft\.p99>200ms: 100 ms, too few samples: 40, and 299 are needed$/,
    ],
    [
      'a sweep',
      shown(sweep),
      /^Answered: 525 requests, all answered, in 3 levels; the knee is at 10 req\/s$/,
    ],
    [
      'parts',
      shown(mergeResults([part(0), part(2, false)])),
      /^PARTIAL: part 2 of 3 missing, part 3 cut short; of the rest: 800 requests/,
    ],
    ['interrupted', shown({ ...healthy, interrupted: true }), /^INTERRUPTED: 400 requests/],
    ['nothing', shown(loadResult([])), /^NOTHING SENT: no request was measured$/],
  ])('%s', (_, text, verdict) => {
    expect(first(text)).toMatch(verdict);
  });

  it.each([
    ['with what was under way', [3, 1], /^KILLED: before the first answer, 4 under way/],
    ['where nothing was written of it', [], /^KILLED: before the first answer$/],
  ])('of a run that was killed before an answer says so, %s', (_, underWay, verdict) => {
    const { name, unit } = LOAD_METRIC.inFlight;
    const workers = underWay.map((count, i) => ({
      ...series(name, unit, [0, 9, count]),
      attributes: { [LOAD_ATTR.workerIndex]: i },
    }));
    const view = sampleView({
      metricNames: () => [name],
      series: (metric) => (metric === name ? workers : []),
      histograms: () => [],
    });
    const result = loadResult([], { complete: false });
    const report = buildLoadReport(view, [], { recording: '/recordings/x', result });
    const text = renderLoadTerminal(report, { color: false, width: 80, unicode: true });
    expect(first(text)).toMatch(verdict);
  });

  it('is about the client before anything else: what it measured is worth nothing', () => {
    expect(first(shown(limited, { failOn: ['ttft.p50>1ms'] }))).toMatch(/^CLIENT LIMITED/);
  });
});

describe('the table', () => {
  it('has mean, median and tail of each latency', () => {
    const lines = shown(healthy).split('\n');
    const header = lines.find((line) => /^ +mean/.test(line));
    expect(header?.trim().split(/\s+/)).toEqual(['mean', 'p50', 'p90', 'p95', 'p99', 'max']);
    for (const name of ['TTFT', 'ITL', 'TPOT', 'E2E']) {
      expect(lines.some((line) => line.startsWith(name))).toBe(true);
    }
  });

  it('marks what too few samples or the client itself cannot support, and says what the marks mean', () => {
    expect(shown(few)).toMatch(/^TTFT .* 100 ms\? +100 ms\? +100 ms *$/m);
    expect(shown(few)).toContain('? too few values: a p95 takes 59, a p99 takes 299');
    expect(shown(few)).toContain('for a p99: -n 299 (about 75 s)');
    expect(shown(limited)).toMatch(/^TTFT .* 100 ms!/m);
    expect(shown(limited)).toMatch(/! more than 5 % of it may be this client's own delay/);
    expect(shown(limited)).toContain('spread the load over more threads: --workers 2');
  });

  it('shows both starts where there is a schedule', () => {
    const open = loadResult([
      { label: '5 req/s', asked: { kind: 'rate', value: 5 }, seconds: 5, perSecond: 5 },
    ]);
    expect(shown(open)).toMatch(/^TTFT sched\. /m);
    expect(shown(open)).toMatch(/^sent +5 req\/s of 5 asked$/m);
    expect(shown(healthy)).not.toContain('sched.');
  });

  it('of a sweep has a row for each level, with what was seen at it', () => {
    const text = shown(sweep);
    expect(text).toMatch(/^10 req\/s .* knee$/m);
    expect(text).toMatch(/^20 req\/s .* not kept up$/m);
    expect(text).toMatch(/;\s+it\s+handled\s+1[12](?:\.\d)? req\/s/);
  });
});

describe('the rest', () => {
  it('counts errors by class with what one of them was told', () => {
    expect(shown(failing)).toMatch(/^errors +20 × http\.429: =cmd.*; Retry-After 3 s$/m);
    expect(shown(failing)).toMatch(/^goodput +90 % of the requests met ttft ≤ 200 ms/m);
  });

  it('says which parts there are, and how far their clocks are apart', () => {
    const text = shown(mergeResults([part(0), part(2, false)]));
    expect(text).toMatch(/^parts +2 of 3: 1 client-0, 3 client-2 \(cut short\); missing: 2$/m);
    expect(text).toContain('part 3 began 0 ms after the first by its own clock');
  });

  it('of one part alone does not miss the others', () => {
    expect(first(shown(part(1)))).toMatch(/^Answered: /);
    expect(shown(part(1))).toMatch(
      /^part +part 2 of 3, on client-1; trace load merge joins them$/m,
    );
    expect(first(shown(part(1, false)))).toMatch(
      /^PARTIAL: the run was killed before its end; of the/,
    );
  });

  it('sets a baseline beside the run', () => {
    const slower: LoadResult = loadResult([
      {
        label: 'c=4',
        asked: concurrency(4),
        seconds: 20,
        perSecond: 20,
        make: (at, i) =>
          request({ scheduledAt: at, startedAt: at, firstOutputAt: at + 0.2 + (i % 7) / 1000 }),
      },
    ]);
    const text = shown(slower, { baseline: healthy });
    expect(text).toMatch(/^ +ttft\.p99 .* → 206 ms .* \+106 % +worse/m);
    expect(text).toContain('Against last.json');
  });

  it.each([40, 60, 80, 100, 120])('fits %i columns', (width) => {
    for (const result of [healthy, failing, sweep, few, limited, loadResult([])]) {
      const text = shown(result, {
        surface: { width },
        failOn: ['ttft.p99>1s'],
        baseline: healthy,
      });
      const wide = text
        .split('\n')
        .filter((line) => displayWidth(line) > width && !/^(?:recording|again) /.test(line));
      expect(wide).toEqual([]);
    }
  });

  it('has no colour, no escape and no letter beyond ASCII where these are not wanted', () => {
    for (const result of [failing, sweep, limited]) {
      expect(shown(result)).not.toMatch(TERMINAL_CONTROLS);
      const ascii = shown(result, { surface: { unicode: false }, baseline: healthy });
      // oxlint-disable-next-line no-control-regex -- all of ASCII
      expect(ascii).toMatch(/^[\u0000-\u007f]*$/);
      expect(ascii).not.toContain('\\u{');
    }
    expect(shown(failing, { surface: { color: true } })).toContain('\u001b[');
  });
});
