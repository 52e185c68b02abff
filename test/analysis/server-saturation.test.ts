import { describe, expect, it } from 'vitest';
import { serverSaturation } from '../../src/analysis/server-saturation.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import { LOAD_SNAPSHOT } from '../../src/core/semconv-load.ts';
import type { Observation, RunStart, UnnumberedFinding } from '../../src/core/types.ts';
import { recordServer, type ServerState } from '../collectors/server-metrics/simulated-server.ts';
import { healthy as loadHealthy, sweep } from '../report/sample-load.ts';
import { START, T0 } from './simulated-run.ts';

const SECONDS = 40;

function detect(
  at: (second: number) => ServerState | readonly ServerState[],
  options: { seconds?: number; start?: RunStart; others?: readonly Observation[] } = {},
): readonly UnnumberedFinding[] {
  const { seconds = SECONDS, start = START, others = [] } = options;
  return [...serverSaturation.detect(recordServer(start, seconds, at, others))];
}

const mechanisms = (found: readonly UnnumberedFinding[]) => found.map((one) => one.mechanism);

/** A server that is busy and well: 8 requests run, tokens come, some wait for a moment. */
function healthy(second: number): ServerState {
  const random = seededRandom(second + 1);
  return {
    running: 6 + Math.floor(random() * 4),
    waiting: random() < 0.2 ? Math.floor(random() * 3) : 0,
    kvUsage: 0.3 + 0.2 * random(),
    tokens: 800 * second,
    promptTokens: 500 * second,
    finished: 6 * second,
    steps: 100 * second,
    preemptions: 0,
  };
}

describe('a server that keeps up', () => {
  it.each<[string, (second: number) => ServerState]>([
    ['is busy', healthy],
    [
      'has nothing to do',
      () => ({ running: 0, waiting: 0, kvUsage: 0, tokens: 5, promptTokens: 5 }),
    ],
    [
      'uses its KV cache well, and nobody waits',
      (t) => ({ ...healthy(t), kvUsage: 0.97, waiting: 0 }),
    ],
    ['works a burst off', (t) => ({ ...healthy(t), waiting: Math.max(0, 30 - 4 * t) })],
    ['has a queue that stands', (t) => ({ ...healthy(t), waiting: 10 + (t % 3), kvUsage: 0.85 })],
    ['puts back one request of many', (t) => ({ ...healthy(t), preemptions: t < 20 ? 0 : 1 })],
    [
      'has a long prompt in between, while nothing else runs',
      (t) => ({
        ...healthy(t),
        running: 1,
        tokens: t < 20 ? 800 * t : t < 26 ? 16_000 : 16_000 + 800 * (t - 26),
        promptTokens: t < 26 ? 1000 : 21_000,
      }),
    ],
    [
      'ends its requests together',
      (t) => ({ ...healthy(t), tokens: t < 30 ? 800 * t : 24_000, running: t < 30 ? 8 : 0 }),
    ],
  ])('and %s: nothing is said', (_, at) => {
    expect(detect(at)).toEqual([]);
  });

  it('is not judged by a few pages', () => {
    const grows = (t: number) => ({ ...healthy(t), waiting: 10 * t, kvUsage: 0.99 });
    expect(detect(grows, { seconds: 6 })).toEqual([]);
  });
});

describe('a server that does not', () => {
  it('has a queue that grows', () => {
    const [finding, ...others] = detect((t) => ({
      ...healthy(t),
      waiting: 2 * t,
      kvUsage: 0.85,
      queueTime: Array.from({ length: t }, (_, i) => i / 10),
    }));
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC210',
      kind: 'saturation',
      mechanism: 'queue-grows',
      severity: 'warning',
      confidence: 'likely',
      summary: expect.stringMatching(
        /^the server's queue grew from \d+ to \d+ requests/,
      ) as unknown,
    });
    expect(finding?.measure['queue_growth_per_s']).toBeCloseTo(2, 0);
    expect(finding?.evidence[0].summary).toMatch(/time in the queue: mean 1\.\d+ s/);
  });

  it('has a full KV cache while requests wait, and is told its own flags', () => {
    const [finding, ...others] = detect((t) => ({
      ...healthy(t),
      waiting: t < 10 ? 0 : 12,
      kvUsage: t < 10 ? 0.5 : 0.98,
    }));
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ mechanism: 'kv-cache-full', measure: { waiting_max: 12 } });
    expect(finding?.remedy).toContain('--gpu-memory-utilization');
  });

  it('puts requests back', () => {
    const found = detect((t) => ({ ...healthy(t), preemptions: t }));
    expect(mechanisms(found)).toEqual(['preemption']);
    expect(found[0]?.measure).toMatchObject({ preemptions_count: 40, finished_count: 240 });
  });

  it('runs no more than so many at once, with room for them', () => {
    const found = detect((t) => ({ ...healthy(t), running: 4, waiting: 9, kvUsage: 0.2 }));
    expect(mechanisms(found)).toEqual(['batch-limit']);
    expect(found[0]?.summary).toContain('never more than 4 requests ran at once');
    expect(found[0]?.remedy).toContain('--max-num-seqs');
  });

  it('is not told to run more where its numbers do not say that they would fit', () => {
    const { kvUsage: _, ...unknown } = healthy(0);
    expect(detect((t) => ({ ...unknown, tokens: t, running: 4, waiting: 9 }))).toEqual([]);
  });

  it('has tokens stand still for long prompts', () => {
    // Every ten seconds a prompt of 20,000 tokens takes 2 s, in which no token comes.
    const stalls = (t: number): number => Math.floor(t / 10) * 2 + Math.min(2, t % 10);
    const found = detect((t) => ({
      ...healthy(t),
      running: 8,
      tokens: 800 * (t - stalls(t)),
      promptTokens: 300 * t + 20_000 * Math.floor((t + 8) / 10),
    }));
    expect(mechanisms(found)).toEqual(['long-prefill']);
    expect(found[0]?.measure['stalled_s']).toBeCloseTo(8, 0);
    expect(found[0]?.measure['held_up_max']).toBe(8);
  });

  it('was asked to be full in a sweep of load: a note', () => {
    const grows = (t: number) => ({ ...healthy(t), waiting: 2 * t });
    const result = (body: unknown): readonly Observation[] => [
      { kind: 'snapshot', at: T0, of: LOAD_SNAPSHOT.result, body },
    ];
    expect(detect(grows, { others: result(sweep) })[0]?.severity).toBe('note');
    expect(detect(grows, { others: result(loadHealthy) })[0]?.severity).toBe('warning');
  });

  it('says of which of several engines the sum is', () => {
    const found = detect((t) => [
      { ...healthy(t), engine: '0', waiting: t },
      { ...healthy(t), engine: '1', waiting: t },
    ]);
    expect(found[0]?.measure['queue_growth_per_s']).toBeCloseTo(2, 0);
  });
});

describe('a process beside the engine', () => {
  const start = (role: string): RunStart => ({
    ...START,
    targets: [
      { ...target, pid: 1, role: 'SGLang API server' },
      { ...target, pid: 2, parent: 1, role },
    ],
  });
  const [first] = START.targets;
  if (first === undefined) throw new Error('no target');
  const target = first;
  const cpu = (share: number): readonly Observation[] =>
    Array.from({ length: SECONDS }, (_, t) => ({
      kind: 'sample',
      at: T0 + t,
      metric: METRIC.threadCpuUtilization.name,
      value: share,
      attributes: { [ATTR.pid]: 2, [ATTR.threadId]: 2, [ATTR.threadName]: 'python' },
    }));

  it.each([
    ['SGLang detokenizer', 0.99, ['cpu-detokenizer']],
    ['SGLang tokenizer', 0.95, ['cpu-tokenizer']],
    ['SGLang detokenizer', 0.6, []],
    // It spins while it waits for its GPU.
    ['SGLang scheduler TP0', 1, []],
    ['vLLM engine core DP0', 1, []],
  ])('%s at %d of a core: %j', (role, share, expected) => {
    const found = detect(healthy, { start: start(role), others: cpu(share) });
    expect(mechanisms(found)).toEqual(expected);
    if (expected.length > 0) expect(found[0]?.pid).toBe(2);
  });

  it('is left alone while nothing runs', () => {
    const idle = () => ({ running: 0, waiting: 0 });
    const others = cpu(1);
    expect(detect(idle, { start: start('SGLang detokenizer'), others })).toEqual([]);
  });
});
