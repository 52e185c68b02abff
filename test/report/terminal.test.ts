import { describe, expect, it } from 'vitest';
import { METRIC } from '../../src/core/semconv.ts';
import type { Finding, Series } from '../../src/core/types.ts';
import { displayWidth } from '../../src/report/layout.ts';
import { buildReport } from '../../src/report/report.ts';
import { describeTarget } from '../../src/report/verdict.ts';
import { quoteForShell } from '../../src/core/text.ts';
import { renderTerminal } from '../../src/report/terminal.ts';
import {
  blockedFinding,
  delays,
  gaps,
  noteFinding,
  runStart,
  sampleView,
  TERMINAL_CONTROLS,
  series,
  STARTED_AT,
} from './sample-report.ts';

const plain = { color: false, width: 80, unicode: true } as const;
const recording = '.tracewright/20260102T030405Z-attach-4312';

describe('the terminal report', () => {
  it('says the verdict, then findings, blind spots, cost, and how to go on', () => {
    const report = buildReport(sampleView({ gaps }), [blockedFinding, noteFinding], { recording });
    expect(renderTerminal(report, plain)).toMatchInlineSnapshot(`
      "BLOCKED: the event loop of pid 4312 (python 3.11.7, uvicorn app:main --port
      8000) stood still 7 times, worst 820–846 ms, in Reranker.score
      (/srv/app/rerank.py:88)

      F1  critical  loop-blocked (TRC101), confirmed
          the event loop did not turn for 7 stretches while in Reranker.score
          where      93 %  Reranker.score (/srv/app/rerank.py:88), thread MainThread
          called by 100 %  answer (…teway/a/very/deep/tree/of/packages/routes.py:1204)
                    in gateway
          mechanism cpu
          measured  count 7, total 3.2 s, worst 820–846 ms, median 410 ms, share 32 %,
                    threshold 50 ms
          evidence  7 times one callback of the loop was seen to last
                      3.21 s after the start: 820–846 ms, on a core 800 ms, running
                      (38 of 40 samples)
                      9.8 s after the start: 200–210 ms, on a core 10 ms, waiting for
                      one 150 ms, in clock_nanosleep (9 of 10 samples), still going at
                      the end
                    41 stacks taken during them; Reranker.score holds 93 % of that
                    time
                      Reranker.score (/srv/app/rerank.py:88)
                      Handle._run (/usr/lib/python3.11/asyncio/events.py)
          remedy    Move the computation off the loop (a thread or process pool), or
                    split it.

      F2  note  loop-blocked (TRC101), confirmed
          the event loop was held up waiting for a CPU core, not by its own code
          mechanism starved
          measured  count 7, total 3.2 s, worst 820–846 ms, median 410 ms, share 32 %,
                    threshold 50 ms
          evidence  7 times one callback of the loop was seen to last
                      3.21 s after the start: 820–846 ms, on a core 800 ms, running
                      (38 of 40 samples)
                      9.8 s after the start: 200–210 ms, on a core 10 ms, waiting for
                      one 150 ms, in clock_nanosleep (9 of 10 samples), still going at
                      the end
                    41 stacks taken during them; Reranker.score holds 93 % of that
                    time
                      Reranker.score (/srv/app/rerank.py:88)
                      Handle._run (/usr/lib/python3.11/asyncio/events.py)
          remedy    Move the computation off the loop (a thread or process pool), or
                    split it.

      Not seen
        event-loop came late 2 times: 90 ms not covered, 0.9 % of the run, longest
          60 ms: the sampler waited for a core

      process    CPU median 34 %, max 50 % of a core, RSS 120 MiB → 121 MiB, threads
                 12, descriptors 24 → 31
      event loop age of its turn p50 3 ms, p99 7.99 ms, max 8 ms (5 readings)
      watched    10 s from 2026-01-02 03:04:05 UTC
      cost       trace used 1.2 % of a core (and 350 ms of CPU to start); target
                 paused 0 ms; 2,000 samples, 3 late

      more       trace explain TRC101
      recording  .tracewright/20260102T030405Z-attach-4312
      again      trace show .tracewright/20260102T030405Z-attach-4312
      "
    `);
  });

  it('counts the time that several processes were not seen at once as one time', () => {
    const beside = gaps.map((gap) => ({ ...gap, pid: 4313 }));
    const both = [...gaps, ...beside];
    const text = renderTerminal(
      buildReport(sampleView({ gaps: both }), [], { recording: null }),
      plain,
    );
    expect(text).toContain('event-loop came late 4 times: 90 ms not covered, 0.9 % of the run');
  });

  it('counts no more of a gap than lies within the run', () => {
    const [gap] = gaps;
    if (gap === undefined) throw new Error('no gap');
    const long = { ...gap, from: STARTED_AT - 3, to: STARTED_AT + 11.1 };
    const before = { ...gap, from: STARTED_AT - 3, to: STARTED_AT - 1 };
    const report = buildReport(sampleView({ gaps: [long, before] }), [], { recording: null });
    expect(report.gaps.map(({ from, to }) => [from - STARTED_AT, to - STARTED_AT])).toEqual([
      [0, 10],
      [0, 0],
    ]);
    expect(renderTerminal(report, plain)).toContain(
      'event-loop came late 2 times: 10 s not covered, 100 % of the run',
    );
  });

  it('says of silence how much it is worth', () => {
    const report = buildReport(sampleView(), [], { recording: null });
    expect(renderTerminal(report, plain)).toMatchInlineSnapshot(`
      "Nothing found: the event loop of pid 4312 (python 3.11.7, uvicorn app:main
      --port 8000) was never seen to stand still for 50 ms in 10 s (5 readings)

      process    CPU median 34 %, max 50 % of a core, RSS 120 MiB → 121 MiB, threads
                 12, descriptors 24 → 31
      event loop age of its turn p50 3 ms, p99 7.99 ms, max 8 ms (5 readings)
      watched    10 s from 2026-01-02 03:04:05 UTC
      cost       trace used 1.2 % of a core (and 350 ms of CPU to start); target
                 paused 0 ms; 2,000 samples, 3 late

      recording  none kept
      "
    `);
  });

  it('does not take blindness for silence', () => {
    const view = sampleView({
      metricNames: () => [],
      histograms: () => [],
      start: {
        ...runStart,
        collectors: [
          {
            name: 'event-loop',
            available: false,
            reason: 'the memory of pid 4312 may not be read: it belongs to root',
            remedy: 'sudo trace attach 4312\nor run trace as root',
          },
        ],
      },
    });
    const text = renderTerminal(buildReport(view, [], { recording: null }), plain);
    expect(text).toMatchInlineSnapshot(`
      "Nothing seen: the event loop of pid 4312 (python 3.11.7, uvicorn app:main --port
      8000) could not be watched; why stands below

      Not seen
        event-loop: the memory of pid 4312 may not be read: it belongs to root
          → sudo trace attach 4312
          → or run trace as root

      watched    10 s from 2026-01-02 03:04:05 UTC
      cost       trace used 1.2 % of a core (and 350 ms of CPU to start); target
                 paused 0 ms; 2,000 samples, 3 late

      recording  none kept
      "
    `);
  });

  it('says of a native program what was looked at, and where its CPU goes', () => {
    const pid = 22034;
    const at = Float64Array.from({ length: 10 }, (_, i) => STARTED_AT + i);
    const thread = (id: number, share: number): Series => ({
      metric: METRIC.threadCpuUtilization.name,
      unit: '1',
      attributes: { 'thread.id': id, 'thread.name': 'llama-server' },
      at,
      value: at.map(() => share),
    });
    const threads = [
      thread(pid, 0.17),
      ...[0.4, 0.07, 0.06, 0.05, 0.01].map((s, i) => thread(i, s)),
    ];
    const view = sampleView({
      metricNames: () => [METRIC.threadCpuUtilization.name],
      series: () => threads,
      histograms: () => [],
      start: {
        ...runStart,
        targets: runStart.targets.map((target) => ({
          ...target,
          pid,
          runtime: 'native',
          runtimeVersion: null,
          title: '/opt/llama.cpp/bin/llama-server -m tiny.gguf',
        })),
      },
    });
    expect(renderTerminal(buildReport(view, [], { recording: null }), plain))
      .toMatchInlineSnapshot(`
      "Nothing found: neither descriptors nor threads of pid 22034 (native,
      llama-server -m tiny.gguf) grew without levelling off in 10 s (memory is judged
      from 60 s on); it has no event loop that could be watched

      threads    CPU median of the busiest: llama-server (0) 40 %, llama-server (main)
                 17 %, llama-server (1) 7 %, llama-server (2) 6 %, 1 more 5 % together
      watched    10 s from 2026-01-02 03:04:05 UTC
      cost       trace used 1.2 % of a core (and 350 ms of CPU to start); target
                 paused 0 ms; 2,000 samples, 3 late

      recording  none kept
      "
    `);
  });

  it('does not take a silent master for silent workers', () => {
    const view = sampleView({
      start: {
        ...runStart,
        collectors: [
          {
            name: 'worker-processes',
            available: false,
            reason: 'pid 4312 started 2',
            remedy: null,
          },
        ],
      },
    });
    const text = renderTerminal(buildReport(view, [], { recording: null }), plain);
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      '; its worker processes were not watched Not seen',
    );
  });

  it('does not count notes as a verdict', () => {
    const text = renderTerminal(buildReport(sampleView(), [noteFinding], { recording }), plain);
    expect(text.split('\n')[0]).toBe('Nothing decisive: one note below');
  });

  it('counts the findings that the verdict does not name', () => {
    const findings = [blockedFinding, { ...blockedFinding, id: 'F2' }];
    const text = renderTerminal(buildReport(sampleView(), findings, { recording }), plain);
    expect(text.replaceAll(/\s+/g, ' ')).toContain('(/srv/app/rerank.py:88); 1 more finding below');
  });

  it('says when much of a block was waiting for a core', () => {
    const told = (wait: number) => {
      const measure = { ...blockedFinding.measure, run_queue_wait_s: wait };
      const report = buildReport(sampleView(), [{ ...blockedFinding, measure }], { recording });
      return renderTerminal(report, plain).replaceAll(/\s+/g, ' ');
    };
    expect(told(2.4)).toContain('(/srv/app/rerank.py:88); 75 % of that time it waited for a core');
    expect(told(0.1)).not.toContain('of that time it waited');
  });

  it('uses the detector’s own sentence for what it has no words for', () => {
    const finding: Finding = {
      ...blockedFinding,
      kind: 'cpu-spin',
      mechanism: null,
      summary: 'the loop spins',
    };
    const text = renderTerminal(buildReport(sampleView(), [finding], { recording }), plain);
    expect(text).toMatch(/^SPINNING: the loop spins\n/);
  });

  it('says that a recording has no end', () => {
    const view = sampleView({ end: null, problems: ['the last line is incomplete'] });
    const text = renderTerminal(buildReport(view, [], { recording }), plain);
    expect(text).toContain('; its end was not recorded');
    expect(text).toContain('  the last line is incomplete\n');
    expect(text).not.toContain('cost');
  });

  it('lists the targets when there are several', () => {
    const [first] = runStart.targets;
    if (first === undefined) throw new Error('the sample has a target');
    const start = { ...runStart, targets: [first, { ...first, pid: 4313, runtime: 'node' }] };
    const text = renderTerminal(buildReport(sampleView({ start }), [], { recording }), plain);
    expect(text).toMatch(/^ +PID +CPU +MEMORY/m);
    expect(text).toMatch(/^4313 .* uvicorn app:main --port 8000$/m);
  });
});

const hostile: Finding = {
  ...blockedFinding,
  summary: `\u001b[31mred\u001b[0m ${'very '.repeat(100)}long\nsecond line\u202e`,
  where: [
    {
      function: `${'f'.repeat(300)}\u001b]0;title\u0007`,
      file: `/${'d'.repeat(300)}/\u009b2J.py`,
      line: 1,
      module: '\u200bmodule',
      thread: '\rthread',
      share: 1,
    },
  ],
  evidence: [
    {
      kind: 'stack',
      summary: 'a\u0000b',
      data: { frames: [{ function: '\u001b[2J', file: '\u001b[H', line: 'x' }, null, 7] },
    },
    { kind: 'turns', summary: 'w'.repeat(300), data: { worst: 'not a list' } },
    {
      kind: 'turns',
      summary: '',
      data: { worst: [{ at_unix_s: 'x' }, { at_unix_s: STARTED_AT }] },
    },
  ],
  measure: { 'k\u001b[2J_s': 1, huge_bytes: 1e300, nan_s: Number.NaN },
  remedy: '\u001b[2Jremedy',
};

describe('a loop whose turns cannot be told apart', () => {
  it('is called busy, never blocked, and its silence is not taken for health', () => {
    const busy = {
      ...series(METRIC.loopUtilization.name, '1', [0.4]),
      attributes: { 'thread.id': 2 },
    };
    const view = sampleView({
      metricNames: () => [METRIC.loopUtilization.name],
      series: (metric) => (metric === busy.metric ? [busy] : []),
      histograms: () => [],
    });
    const text = renderTerminal(buildReport(view, [], { recording }), plain);
    expect(text).toMatch(/^Nothing seen: /);
    expect(text).toContain(
      'event loop busy 40 % of the time; how long its turns last cannot be read',
    );
  });
});

describe('hostile text', () => {
  const [target] = runStart.targets;
  if (target === undefined) throw new Error('the sample has a target');
  const start = {
    ...runStart,
    targets: [{ ...target, title: '\u001b[2J日本語のタイトル\u202e', runtime: '\u0007' }],
    collectors: [
      { name: '\u001bc', available: false, reason: '\u001b[1A', remedy: '\u0008\n\u001b' },
    ],
  };
  const view = sampleView({ start, problems: ['\u001b[2Jproblem'] });

  it('reaches the terminal only as visible escapes', () => {
    const text = renderTerminal(buildReport(view, [hostile], { recording: '/r\u001b[2J' }), plain);
    expect(text).not.toMatch(TERMINAL_CONTROLS);
    expect(text).toContain('\\x1b[2J');
  });

  it.each([40, 60, 80, 100, 120])('keeps every line within %i columns', (width) => {
    for (const unicode of [true, false]) {
      const findings = [hostile, blockedFinding, noteFinding];
      const report = buildReport({ ...view, gaps }, findings, { recording: 'r' });
      for (const line of renderTerminal(report, { color: true, width, unicode }).split('\n')) {
        expect(displayWidth(line), line).toBeLessThanOrEqual(width);
      }
    }
  });

  it('is plain ASCII where the locale has nothing else', () => {
    const report = buildReport({ ...view, gaps }, [hostile, blockedFinding], { recording });
    const text = renderTerminal(report, { color: false, width: 80, unicode: false });
    expect(text).toMatch(/^[\n\u0020-\u007e]*$/);
    expect(text).toContain('820-846 ms');
  });

  it('is coloured only when colour is on', () => {
    const report = buildReport(sampleView(), [blockedFinding], { recording });
    expect(renderTerminal(report, plain)).not.toContain('\u001b');
    expect(renderTerminal(report, { ...plain, color: true })).toContain('\u001b[31mBLOCKED:');
  });
});

describe('quoteForShell', () => {
  it('leaves plain paths alone and quotes what a shell would change', () => {
    expect(quoteForShell('.tracewright/a-b_1')).toBe('.tracewright/a-b_1');
    expect(quoteForShell("it's here; $HOME")).toBe("'it'\\''s here; $HOME'");
  });
});

describe('several loops', () => {
  it('have a line each, named by their threads', () => {
    const loop = (id: number, name: string) => ({
      ...delays([0.001, 0.002]),
      attributes: { 'thread.id': id, 'thread.name': name },
    });
    const busy = {
      ...series(METRIC.loopUtilization.name, '1', [0.4]),
      attributes: { 'thread.id': 2 },
    };
    const view = sampleView({
      metricNames: () => [METRIC.loopDelay.name, METRIC.loopUtilization.name],
      series: (metric) => (metric === busy.metric ? [busy] : []),
      histograms: (metric) =>
        metric === METRIC.loopDelay.name
          ? [1, 2, 3, 4, 5].map((id) => loop(id, `worker-${id}`))
          : [],
    });
    const text = renderTerminal(buildReport(view, [], { recording }), { ...plain, width: 120 });
    expect(text).toContain('event loop worker-1: age of its turn p50 1 ms');
    expect(text).toContain('           worker-2: busy 40 % of the time, age of its turn');
    expect(text).toContain('           and 1 more loop in --json');
  });
});

describe('the target', () => {
  it.each([
    ['/usr/bin/python3.11 -m uvicorn app:main', 'python 3.11.7, -m uvicorn app:main'],
    ['node server.js', 'python 3.11.7, server.js'],
    ['uvicorn app:main', 'python 3.11.7, uvicorn app:main'],
    ['python', 'python 3.11.7, python'],
    ['', 'python 3.11.7'],
  ])('%j is called what tells it from others', (title, called) => {
    const [first] = runStart.targets;
    if (first === undefined) throw new Error('the sample has a target');
    expect(describeTarget({ ...first, title })).toBe(`pid 4312 (${called})`);
  });
});
