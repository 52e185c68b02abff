import { describe, expect, it } from 'vitest';
import { taskLeak } from '../../src/analysis/task-leak.ts';
import { METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import { seededRandom } from '../../src/core/random.ts';
import { tasksSnapshot, toTasksSnapshot } from '../../src/core/tasks-snapshot.ts';
import type { TaskView, TasksLook, TaskWaitKind } from '../../src/core/tasks.ts';
import type { Observation, UnnumberedFinding } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { START, T0 } from './simulated-run.ts';

const PID = START.targets[0]?.pid ?? 0;

interface Crowd {
  readonly coroutine: string;
  readonly count: number;
  readonly wait?: TaskWaitKind;
  readonly parents?: readonly string[];
}

function task(id: string, { coroutine, wait = 'event', parents = [] }: Crowd): TaskView {
  const frame = { function: coroutine, file: '/srv/app/main.py', line: 31 };
  const waits = { kind: wait, object: null, delay: null, tasks: [] };
  const view = { id, name: id, coroutine, state: 'waiting' as const, wait: waits, holds: [] };
  return { ...view, frames: [frame], parents, loop: '0x1' };
}

function look(crowds: readonly Crowd[]): TasksLook {
  const tasks = crowds.flatMap((crowd) =>
    Array.from({ length: crowd.count }, (_, i) => task(`${crowd.coroutine}-${i}`, crowd)),
  );
  return { tasks, loops: [], total: tasks.length, unread: 0, retries: 0 };
}

/** One reading a second, and the first and the last look. */
function findingsOf(
  seconds: number,
  count: (second: number) => number,
  looks: readonly [readonly Crowd[], readonly Crowd[]] | null,
): readonly UnnumberedFinding[] {
  const recording = memoryRecording(START);
  const write = (observation: Observation): void => recording.write(observation);
  for (let second = 0; second < seconds; second++)
    write({
      kind: 'sample',
      at: T0 + second,
      metric: METRIC.asyncioTasks.name,
      value: Math.round(count(second)),
    });
  looks?.forEach((crowds, i) =>
    write({
      kind: 'snapshot',
      at: T0 + 1 + i * (seconds - 2),
      of: SNAPSHOT.tasks,
      body: tasksSnapshot(PID, look(crowds)),
    }),
  );
  return [...taskLeak.detect(recording.view())];
}

const idle: Crowd = { coroutine: 'serve', count: 10 };

describe('task-leak', () => {
  it('names the coroutine, where its tasks wait, and who waits for them', () => {
    const [finding, ...others] = findingsOf(11, (s) => 10 + 20 * s, [
      [idle, { coroutine: 'poll', count: 20 }],
      [idle, { coroutine: 'poll', count: 200, parents: ['serve-0'] }],
    ]);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC114',
      kind: 'task-leak',
      mechanism: 'event',
      severity: 'warning',
      confidence: 'likely',
      where: [{ function: 'poll', file: '/srv/app/main.py', line: 31, share: 1 }],
    });
    expect(finding?.summary).toBe(
      'asyncio tasks grow without levelling off, most of them of poll, each waiting for an event in poll (/srv/app/main.py:31); serve waits for them',
    );
    expect(finding?.measure).toMatchObject({ start_count: 10, end_count: 210 });
    expect(finding?.evidence.map(({ kind }) => kind)).toEqual(['trend', 'owner']);
  });

  it('names the coroutine before the place deep in a library where it waits', () => {
    const waiting = look([{ coroutine: 'watch', count: 200 }]).tasks.map((one) => ({
      ...one,
      frames: [{ function: 'sleep', file: '/srv/lib/sleeping.py', line: 7 }, ...one.frames],
    }));
    const recording = memoryRecording(START);
    const write = (observation: Observation): void => recording.write(observation);
    for (let second = 0; second < 11; second++)
      write({
        kind: 'sample',
        at: T0 + second,
        metric: METRIC.asyncioTasks.name,
        value: 10 + 20 * second,
      });
    [look([idle]), { ...look([]), tasks: waiting, total: 200 }].forEach((seen, i) =>
      write({
        kind: 'snapshot',
        at: T0 + 1 + 9 * i,
        of: SNAPSHOT.tasks,
        body: tasksSnapshot(PID, seen),
      }),
    );
    const [finding] = taskLeak.detect(recording.view());
    expect(finding?.where.map((place) => place.function)).toEqual(['watch', 'sleep']);
  });

  it.each([
    ['no look was had', null, 'could not be seen'],
    ['what grew is done', [[idle], [idle]], 'are done and still referred to'],
    [
      'many coroutines grew',
      [[idle], [idle, ...['a', 'b', 'c'].map((coroutine) => ({ coroutine, count: 70 }))]],
      'none of which stands out',
    ],
    [
      'they may be clients',
      [[idle], [idle, { coroutine: 'handle', count: 200, wait: 'stream-read' }]],
      'clients that become more',
    ],
  ] as const)('is a note where %s', (_, looks, why) => {
    const found = findingsOf(11, (s) => 10 + 20 * s, looks);
    expect(found).toMatchObject([{ code: 'TRC119', severity: 'note', confidence: 'inconclusive' }]);
    expect(found[0]?.summary).toContain(why);
  });

  const random = seededRandom(3);
  it.each([
    ['a pool of constant size', 11, () => 200],
    ['a pool that fills', 11, (s: number) => 10 + 190 * (1 - Math.exp(-s / 3))],
    ['a burst that stays', 11, (s: number) => (s < 4 ? 10 : 300)],
    ['a burst that ends', 11, (s: number) => (s > 3 && s < 7 ? 400 : 10)],
    ['a few more each second', 11, (s: number) => 10 + 2 * s],
    ['requests that come and go', 300, () => 50 + 40 * random()],
    ['filling, then level', 300, (s: number) => Math.min(500, 10 + 10 * s)],
  ])('is silent about %s', (_, seconds, count) => {
    expect(findingsOf(seconds, count, [[idle], [idle, { coroutine: 'poll', count: 300 }]])).toEqual(
      [],
    );
  });
});

describe('a snapshot of tasks', () => {
  it('comes back as it was, scaled to all where some were read', () => {
    const some = look([idle, { coroutine: 'poll', count: 90 }]);
    const body = tasksSnapshot(PID, { ...some, total: 1000, unread: 900 });
    expect(body.groups.map(({ coroutine, count }) => [coroutine, count])).toEqual([
      ['poll', 900],
      ['serve', 100],
    ]);
    expect(toTasksSnapshot(JSON.parse(JSON.stringify(body)))).toEqual(body);
    expect(toTasksSnapshot('nothing')).toBeUndefined();
    const many = look(Array.from({ length: 60 }, (_, i) => ({ coroutine: `c${i}`, count: 1 })));
    expect(tasksSnapshot(PID, many)).toMatchObject({ rest: 10, total: 60 });
  });
});
