import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FlightRecorder } from '../../../src/commands/flight/recorder.ts';
import { parseTrigger } from '../../../src/commands/flight/trigger-parse.ts';
import { fakeClock } from '../../../src/core/clock.ts';
import { TraceError } from '../../../src/core/errors.ts';
import { targetsOf } from '../../../src/core/process-view.ts';
import { ATTR, EVENT, METRIC, SNAPSHOT, SPAN } from '../../../src/core/semconv.ts';
import type { Observation, RunEnd, Seconds } from '../../../src/core/types.ts';
import { openRecording, type StoredRecording } from '../../../src/recording/reader.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import type { Flight } from '../../../src/report/flight.ts';
import { END, START } from '../../recording/observations.ts';

/* Seconds of observations handed over at once: what is decided rests on their moments, never on the clock of this machine. */

const T0 = START.startedAt;
const folder = mkdtempSync(join(tmpdir(), 'tracewright-flight-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let notes: string[] = [];
let problems: string[] = [];
let runs = 0;
let recorder: FlightRecorder;
beforeEach(() => {
  notes = [];
  problems = [];
  runs++;
});
afterEach(async () => {
  await recorder.finish(END);
});

interface Given {
  readonly triggers?: readonly string[];
  readonly before?: Seconds;
  readonly after?: Seconds;
  readonly most?: number;
  readonly cooldown?: Seconds;
  readonly ringBytes?: number;
  /** Events whose recording cannot be begun. */
  readonly failing?: readonly number[];
}

function open(given: Given = {}): FlightRecorder {
  const { triggers = ['delay>200ms'], before = 30, after = 30, most = 10, cooldown = 0 } = given;
  const run = runs;
  recorder = new FlightRecorder({
    start: START,
    trigger: { conditions: triggers.map(parseTrigger), before, after, most, cooldown },
    metrics: [],
    clock: fakeClock(T0),
    ...(given.ringBytes === undefined ? {} : { ringBytes: given.ringBytes }),
    openDisk: (start, number) => {
      if (given.failing?.includes(number) === true)
        return Promise.reject(
          new TraceError('ERR_RECORDING_WRITE', 'the disk is full', { exitCode: 2 }),
        );
      const directory = join(folder, `${run}-trigger-${number}`);
      return openRecordingWriter({ directory, start, env: {}, raw: true });
    },
    openExport: () => Promise.resolve(null),
    onNote: (text) => notes.push(text),
    onProblem: (text) => problems.push(text),
  });
  return recorder;
}

const rss = (at: Seconds, value = 1e6): Observation => ({
  kind: 'sample',
  at: T0 + at,
  metric: METRIC.memoryUsage.name,
  value,
});
const stack: Observation = {
  kind: 'stack',
  at: T0 + 0.1,
  id: 'stack-1',
  frames: [{ function: 'rerank', file: '/srv/app.py', line: 88 }],
};
/** A block that ends at `at`. */
const block = (at: Seconds, lasted: Seconds): Observation => ({
  kind: 'span',
  name: SPAN.blocked,
  from: T0 + at - lasted,
  to: T0 + at,
  attributes: {
    [ATTR.pid]: 4711,
    [ATTR.durationMin]: lasted,
    [ATTR.durationMax]: lasted,
    [ATTR.stackShares]: ['stack-1=1'],
  },
});

/** So many seconds with one reading each, and these observations among them at their moments. */
function play(seconds: number, among: readonly Observation[] = []): void {
  const moment = (one: Observation): Seconds => ('to' in one ? one.to : one.at);
  const readings = Array.from({ length: seconds }, (_, at) => rss(at));
  const all = [stack, ...[...readings, ...among].sort((a, b) => moment(a) - moment(b))];
  for (const one of all) recorder.write(one);
}

async function finish(end: Partial<RunEnd> = {}): Promise<Flight> {
  return (await recorder.finish({ ...END, endedAt: T0 + 1000, ...end })).flight;
}
const stored = (number: number): Promise<StoredRecording> =>
  openRecording(join(folder, `${runs}-trigger-${number}`));
const readingsOf = (view: StoredRecording): number[] =>
  view.series(METRIC.memoryUsage.name).flatMap(({ at }) => [...at].map((one) => one - T0));

describe('an event', () => {
  it('is a recording of the minute around it, complete, with its stack, its findings and the trigger', async () => {
    open();
    play(200, [block(100.5, 0.3)]);
    const flight = await finish();
    expect(flight.events).toMatchObject([
      { number: 1, expression: 'delay>200ms', count: 1, pid: 4711, findings: ['F1'], also: [] },
    ]);
    expect(flight.events[0]?.value).toBeCloseTo(0.3, 6);
    const view = await stored(1);
    expect(view.problems).toEqual([]);
    expect(view.end).toMatchObject({ reason: 'trigger', interrupted: false });
    expect(view.end?.endedAt).toBeCloseTo(T0 + 130.5, 6);
    expect(view.start).toMatchObject({
      targets: START.targets,
      settings: { trigger: 'delay>200ms' },
    });
    expect(view.start.traceId).not.toBe(START.traceId);
    const readings = readingsOf(view);
    expect([readings[0], readings.at(-1)]).toEqual([71, 130]);
    expect(readings).toHaveLength(60);
    expect(view.stack('stack-1')).toHaveLength(1);
    expect(view.findings).toMatchObject([{ code: 'TRC101', where: [{ function: 'rerank' }] }]);
    expect(view.events(EVENT.trigger)).toMatchObject([
      {
        body: 'delay>200ms',
        attributes: { [ATTR.triggerExpression]: 'delay>200ms', [ATTR.pid]: 4711 },
      },
    ]);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC {2}delay>200ms: 300 ms {2}→ \//);
  });

  it('that does not come leaves nothing', async () => {
    open();
    play(200, [block(100.5, 0.15)]);
    expect(await finish()).toMatchObject({ events: [], notWritten: 0 });
    expect(readdirSync(folder).filter((name) => name.startsWith(`${runs}-`))).toEqual([]);
    expect(notes).toEqual([]);
  });

  it('is extended by what fires within it, and the next one stands apart', async () => {
    open({ before: 5, after: 5 });
    play(100, [block(20, 0.3), block(23, 0.5), block(27, 0.25), block(60, 0.3)]);
    const flight = await finish();
    expect(flight.events.map(({ count, worst }) => [count, Number(worst?.toFixed(3))])).toEqual([
      [3, 0.5],
      [1, 0.3],
    ]);
    expect(readingsOf(await stored(1)).at(-1)).toBe(31);
    expect((await stored(1)).events(EVENT.trigger)).toHaveLength(3);
    expect(readingsOf(await stored(2))).toEqual([55, 56, 57, 58, 59, 60, 61, 62, 63, 64]);
    // The same place blocks in both: it is said once, and both say so.
    expect(flight.events.map(({ findings }) => findings)).toEqual([['F1'], ['F1']]);
  });

  it('that never ends is cut into recordings of bounded length', async () => {
    open({ before: 5, after: 30 });
    const blocks = Array.from({ length: 70 }, (_, i) => block(20 + 20 * i, 0.3));
    play(1500, blocks);
    const { events } = await finish();
    expect(events.length).toBeGreaterThan(1);
    for (const { from, to } of events) expect(to - from).toBeLessThanOrEqual(601);
    expect(events.reduce((sum, { count }) => sum + count, 0)).toBe(70);
  });

  it('names the other triggers that fired meanwhile', async () => {
    open({ triggers: ['delay>200ms', 'rss>1GiB', 'exit'] });
    play(100, [block(50, 0.3), rss(55.5, 2 ** 31), rss(56.5, 1), rss(57.5, 2 ** 31)]);
    expect((await finish()).events).toMatchObject([
      { expression: 'delay>200ms', count: 1, also: ['rss>1GiB'] },
    ]);
  });

  it('at the start of a run has what there was before it', async () => {
    open();
    play(100, [block(3, 0.3)]);
    await finish();
    const view = await stored(1);
    expect(readingsOf(view)[0]).toBe(0);
    expect(view.start.startedAt).toBeGreaterThanOrEqual(T0);
  });

  it('that is told of late is recorded with what came before it', async () => {
    open({ before: 10, after: 5 });
    play(60);
    recorder.write(block(50, 0.3));
    recorder.write(rss(60));
    await finish();
    const view = await stored(1);
    expect(readingsOf(view)[0]).toBe(40);
    expect(view.spans(SPAN.blocked)).toHaveLength(1);
  });
});

describe('what stands for the whole run', () => {
  it('is in each recording: processes that joined, the clocks, stacks from long before', async () => {
    open({ before: 5, after: 5 });
    const body = { pid: 99, startTicks: 5, runtime: 'python', title: 'worker' };
    const joined: Observation = { kind: 'snapshot', at: T0 + 2, of: SNAPSHOT.target, body };
    const anchor: Observation = {
      kind: 'event',
      at: T0 + 1,
      name: EVENT.clockAnchor,
      severity: 'info',
      body: 'clocks',
    };
    play(500, [joined, anchor, block(300, 0.3)]);
    await finish();
    const view = await stored(1);
    expect(targetsOf(view).map(({ pid }) => pid)).toEqual([4711, 99]);
    expect(view.events(EVENT.clockAnchor)).toHaveLength(1);
    expect(view.stack('stack-1')).toHaveLength(1);
    expect(readingsOf(view)).toHaveLength(10);
  });

  it('forgets processes that ended long ago', async () => {
    open({ before: 5, after: 5 });
    for (let n = 0; n < 300; n++) {
      const at = T0 + n;
      const body = { pid: 5000 + n, startTicks: n, runtime: 'python', title: '' };
      recorder.write({ kind: 'snapshot', at, of: SNAPSHOT.target, body });
      recorder.write({
        kind: 'gap',
        from: at,
        to: at + 0.5,
        collector: 'process',
        reason: 'target-gone',
        detail: '',
        pid: 5000 + n,
      });
    }
    recorder.write(block(300, 0.3));
    await finish();
    // Those of the stretch, and those of the run.
    expect(targetsOf(await stored(1)).map(({ pid }) => pid)).toEqual([
      4711, 5295, 5296, 5297, 5298, 5299,
    ]);
  });
});

describe('the bounds', () => {
  it('of number: further events are counted, and it is said', async () => {
    open({ before: 2, after: 2, most: 2 });
    play(100, [block(10, 0.3), block(20, 0.3), block(30, 0.3), block(40, 0.3)]);
    const flight = await finish();
    expect(flight.events).toHaveLength(2);
    expect(flight.notWritten).toBe(2);
    expect(notes).toContainEqual(
      expect.stringMatching(/the last recording that --trigger-max 2 allows/),
    );
  });

  it('of time between two', async () => {
    open({ before: 2, after: 2, cooldown: 15 });
    play(100, [block(10, 0.3), block(20, 0.3), block(40, 0.3)]);
    const flight = await finish();
    expect(flight.events.map(({ at }) => Math.round(at - T0))).toEqual([10, 40]);
    expect(flight.notWritten).toBe(1);
  });

  it('of memory: what had to go is a gap of the recording', async () => {
    open({ ringBytes: 20_000 });
    for (let i = 0; i < 1000; i++) recorder.write(rss(i / 20));
    recorder.write(block(50, 0.3));
    const flight = await finish();
    expect(flight.keptBytes).toBeLessThanOrEqual(20_000);
    const view = await stored(1);
    expect(view.gaps).toMatchObject([{ collector: 'flight-recorder', reason: 'dropped' }]);
    expect(view.gaps[0]?.to).toBeLessThan(T0 + (readingsOf(view)[0] ?? 0));
  });
});

describe('trouble', () => {
  it('with the disk costs the recording, not the run nor the findings', async () => {
    open({ before: 2, after: 2, failing: [1] });
    play(100, [block(8, 0.3), block(30, 0.3)]);
    const flight = await finish();
    expect(flight.events.map(({ recording }) => recording === null)).toEqual([true, false]);
    expect(flight.events[0]?.findings).toEqual(['F1']);
    expect(problems).toEqual(['event 1 is not recorded: the disk is full']);
    expect((await stored(2)).end).not.toBeNull();
  });

  it('with the disk does not use up what may be written once there is room again', async () => {
    open({ before: 2, after: 2, most: 2, failing: [1, 2] });
    for (const [events, at] of [5, 15, 25, 35].entries()) {
      recorder.write(block(at, 0.3));
      recorder.write(rss(at + 3));
      // Each is announced when the disk has answered.
      await vi.waitFor(() => expect(notes.length).toBeGreaterThan(events));
    }
    recorder.write(block(45, 0.3));
    const flight = await finish();
    expect(flight.events.map(({ recording }) => recording !== null)).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect(flight.notWritten).toBe(1);
  });

  it('of being stopped in the middle leaves a complete recording of what there is', async () => {
    open();
    play(110, [block(100, 0.3)]);
    await finish({ reason: 'interrupted' });
    const view = await stored(1);
    expect(view.end).toMatchObject({ reason: 'interrupted', interrupted: true });
    expect(view.findings).toHaveLength(1);
    expect(readingsOf(view).at(-1)).toBe(109);
  });

  it('of not having looked is counted for the whole run', async () => {
    open();
    const late = (from: number): Observation => ({
      kind: 'gap',
      from: T0 + from,
      to: T0 + from + 0.5,
      collector: 'event-loop',
      reason: 'late',
      detail: '',
    });
    play(300, [late(5), late(100), late(290)]);
    expect((await finish()).gaps).toEqual({ count: 3, total: 1.5 });
    expect(recorder.tail(END).gaps).toHaveLength(1);
  });

  it('of a metric that never comes is said once', async () => {
    open({ triggers: ['vllm:num_requests_waiting>100', 'rss>1GiB', 'exit', 'delay>1s'] });
    play(60);
    await finish();
    expect(problems).toEqual([
      "--trigger 'vllm:num_requests_waiting>100' has nothing to fire on: no reading of vllm:num_requests_waiting came so far",
      "--trigger 'delay>1s' has nothing to fire on: no event loop could be watched so far",
    ]);
  });
});

it('ends with what is in memory, for the report', async () => {
  open({ before: 5 });
  play(100);
  await finish();
  const view = recorder.tail({ ...END, endedAt: T0 + 100 });
  const [series] = view.series(METRIC.memoryUsage.name);
  expect((series?.at[0] ?? 0) - T0).toBeGreaterThan(80);
  expect(view.start.startedAt).toBe(T0);
});
