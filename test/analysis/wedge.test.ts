import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import { PROBE_WAITED, SERVER_EVENT, SERVER_METRIC } from '../../src/core/semconv-server.ts';
import type { Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { START, T0 } from './simulated-run.ts';
import { ENGINE, look, type Scene, series, until, wedgeView } from './simulated-wedge.ts';

const wedges = (scene: Scene) => detectAll(wedgeView(scene)).filter(({ kind }) => kind === 'wedge');

describe('a wedge', () => {
  it('is likely after 20 seconds without progress and confirmed after 120', () => {
    expect(wedges({ length: 24, tokens: until(5) })).toEqual([]);
    const [likely] = wedges({ length: 30, tokens: until(5) });
    expect(likely).toMatchObject({
      code: 'TRC201',
      confidence: 'likely',
      mechanism: 'lost wake-up',
      severity: 'critical',
    });
    expect(likely?.measure).toMatchObject({ stalled_s: 25, running_count: 2, waiting_count: 3 });
    expect(wedges({ length: 130, tokens: until(5) })).toMatchObject([{ confidence: 'confirmed' }]);
  });

  it('is measured by what the server did before: three times its longest pause', () => {
    const bursts = (s: number) => (s < 15 ? 0 : until(30)(s));
    expect(wedges({ length: 70, tokens: bursts })).toEqual([]);
    expect(wedges({ length: 80, tokens: bursts })).toMatchObject([{ confidence: 'likely' }]);
  });

  it('is not put off by a machine that stood still before, nor made by one that does', () => {
    const stood = (from: number, to: number): Observation[] =>
      ENGINE.map((pid) => ({
        kind: 'gap',
        from: T0 + from,
        to: T0 + to,
        collector: 'process',
        reason: 'late',
        detail: 'trace did not get the CPU',
        pid,
      }));
    // Tokens come for 5 s, the machine stands still for 57, tokens come for 5 more; then the wedge.
    const tokens = (s: number) => (s < 63 ? until(5) : until(68))(s);
    const [wedge] = wedges({ length: 98, tokens, more: stood(5.5, 62.5) });
    expect(wedge).toMatchObject({ confidence: 'likely' });
    expect(wedge?.measure).toMatchObject({ stalled_s: 30, longest_gap_s: 1 });
    // The last page came when the machine went on: nothing moved, as nobody ran.
    expect(wedges({ length: 70, tokens: until(5), more: stood(6, 69) })).toEqual([]);
    // A server that was silent while trace watched is measured by that, whatever else stood still.
    expect(wedges({ length: 98, tokens, more: stood(70, 71) })).toEqual([]);
  });

  it.each([
    ['a token every 15 seconds', (s: number) => Math.floor(s / 15)],
    ['one step of a scheduler that counts in its KV cache alone', () => 0],
  ])('is not called where a server moves slowly: %s', (_, tokens) => {
    const more = series(SERVER_METRIC.kvUsage, 200, (s) => Math.floor(s / 15) / 100);
    expect(wedges({ length: 200, tokens, more })).toEqual([]);
  });

  it('is not called where nothing runs, or has run for long enough', () => {
    expect(wedges({ length: 200, tokens: until(5), running: () => 0 })).toEqual([]);
    expect(wedges({ length: 200, tokens: until(5), running: (s) => (s < 190 ? 0 : 1) })).toEqual(
      [],
    );
  });

  it.each([
    ['a GPU under power', { gpu: { utilization: 0.99, power: 0.8 } }],
    [
      'cores that compute, and no GPU to tell',
      { cpu: (pid: number) => (pid === 43 ? 0.98 : 0.01) },
    ],
    [
      'a core shared with many, and no GPU to tell',
      { cpu: (pid: number) => (pid === 43 ? 0.11 : 0.01) },
    ],
    ['a thread in one long sleep', { sleeps: () => 0, more: [look(43, 'sleep', 'prefill', 50)] }],
  ])('is not called for one prefill of 60 seconds: %s', (_, scene) => {
    expect(wedges({ length: 65, tokens: until(5), ...scene })).toEqual([]);
    // Nobody waits for five minutes.
    expect(wedges({ length: 310, tokens: until(5), ...scene })).toHaveLength(1);
  });

  it('is a kernel that never returned where the GPU is busy without power', () => {
    const [finding] = wedges({ length: 30, tokens: until(5), gpu: { utilization: 1, power: 0.2 } });
    expect(finding).toMatchObject({ mechanism: 'kernel never returned', confidence: 'likely' });
    expect(finding?.evidence.map(({ kind }) => kind)).toContain('gpu');
  });

  it('spins where the engine is busy and the GPU is not', () => {
    const scene = {
      cpu: (pid: number) => (pid === 43 ? 0.97 : 0.01),
      gpu: { utilization: 0, power: 0.1 },
    };
    expect(wedges({ length: 30, tokens: until(5), ...scene })).toMatchObject([
      { mechanism: 'spinning', pid: 43 },
    ]);
  });

  it('names the process that is stopped', () => {
    const more = series(METRIC.stopped, 30, () => 1, { [ATTR.pid]: 45 }).slice(6);
    const [finding] = wedges({ length: 30, tokens: until(5), more });
    expect(finding).toMatchObject({ mechanism: 'stopped process', pid: 45 });
    expect(finding?.summary).toContain('vLLM worker TP1 (pid 45) is stopped');
  });

  it('names the process that was stopped when nothing ran, so that nothing is counted either', () => {
    const idle = { length: 40, tokens: until(5), running: () => 0 };
    const stopped = (from: number, to: number) =>
      series(METRIC.stopped, to, () => 1, { [ATTR.pid]: 43 }).slice(from);
    const [finding] = wedges({ ...idle, more: stopped(10, 40) });
    expect(finding).toMatchObject({ mechanism: 'stopped process', pid: 43, confidence: 'likely' });
    expect(finding?.summary).toBe(
      'the server is wedged: nothing running by its page and no progress for 31 s; vLLM engine core (pid 43) is stopped',
    );
    expect(wedges({ ...idle, more: stopped(25, 40) })).toEqual([]);
    expect(wedges({ ...idle, more: stopped(5, 30) })).toEqual([]);
    expect(wedges({ ...idle, tokens: (s) => s, more: stopped(10, 40) })).toEqual([]);
  });

  it('names the rank that waits for a lock, with its frames, where stacks are read', () => {
    const more = [
      ...ENGINE.filter((pid) => pid !== 45).map((pid) => look(pid, 'message', 'recv', 28)),
      look(45, 'lock', 'save_kv', 28),
    ];
    const [finding] = wedges({ length: 30, tokens: until(5), more });
    expect(finding).toMatchObject({ mechanism: 'deadlock', pid: 45 });
    expect(finding?.where[0]).toMatchObject({ function: 'save_kv', line: 3 });
  });

  it('names the rank that is elsewhere than the others', () => {
    const more = [44, 45, 46].map((pid) =>
      look(pid, 'message', pid === 46 ? 'broadcast' : 'recv', 28),
    );
    expect(wedges({ length: 30, tokens: until(5), more })).toMatchObject([{ pid: 46 }]);
  });

  it('names the rank that does not wake up any more where stacks may not be read', () => {
    const [finding] = wedges({
      length: 30,
      tokens: until(5),
      sleeps: (pid) => (pid === 44 ? 0 : 20),
    });
    expect(finding).toMatchObject({ pid: 44, mechanism: 'lost wake-up' });
  });

  it('names nobody where all wait alike', () => {
    const [finding] = wedges({ length: 30, tokens: until(5), sleeps: () => 20 });
    expect(finding?.pid).toBeNull();
  });

  /** Small requests that time out, one every five seconds from so many seconds on. */
  const unanswered = (...at: readonly number[]): Observation[] =>
    at.map((second) => ({
      kind: 'event',
      at: T0 + second,
      name: SERVER_EVENT.probeFailed,
      severity: 'warn',
      body: 'no answer',
      attributes: { 'error.type': 'timeout.first_byte' },
    }));

  it('is told of a server without metrics by probes that time out', () => {
    const recording = memoryRecording(START);
    for (const one of unanswered(5, 10, 15, 20, 25, 30)) recording.write(one);
    for (const one of series(METRIC.cpuUtilization, 30, () => 0)) recording.write(one);
    expect(detectAll(recording.view())).toMatchObject([{ kind: 'wedge', confidence: 'likely' }]);
  });

  /** A small request that has waited for so long when the run ends. */
  const pending = (at: number, waited: number): Observation => ({
    kind: 'event',
    at: T0 + at,
    name: SERVER_EVENT.probeUnanswered,
    severity: 'info',
    body: 'no answer yet',
    attributes: { [PROBE_WAITED]: waited },
  });

  it('is told by one probe without an answer while its engine and all others are idle', () => {
    const scene = { length: 40, running: () => 0, tokens: () => 0 };
    expect(wedges({ ...scene, more: [pending(39, 26)] })).toMatchObject([
      { confidence: 'likely', mechanism: 'lost wake-up', measure: { stalled_s: 26 } },
    ]);
    expect(wedges({ ...scene, more: [pending(39, 24)] })).toEqual([]);
    // One long prefill, which the page does not show before it is over.
    expect(wedges({ ...scene, cpu: () => 0.9, more: [pending(39, 26)] })).toEqual([]);
    // A server that was slow before, and one that goes on.
    expect(wedges({ ...scene, tokens: until(30), more: [pending(39, 26)] })).toEqual([]);
  });

  it('is told by probes where nothing runs by the page, and not while anything moves', () => {
    const scene = { length: 100, running: () => 0, more: unanswered(35, 65, 95) };
    expect(wedges({ ...scene, tokens: () => 0 })).toMatchObject([{ confidence: 'likely' }]);
    expect(wedges({ ...scene, tokens: until(50) })).toEqual([]);
  });
});
