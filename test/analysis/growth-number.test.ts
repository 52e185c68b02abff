import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { HeapContainer, HeapLook, HeapTypeCount } from '../../src/core/heap-look.ts';
import { heapSnapshot } from '../../src/core/heap-snapshot.ts';
import { ATTR, METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import type { Attributes, Finding, Frame, Metric, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

/* Who holds descriptors and threads that become more: ten a second, and looks at the objects after 6, 11 and 19 seconds. */

const A_SECOND = 10;
const LOOKS = [6, 11, 19];

const readings = (
  metric: Metric,
  value: (second: number) => number,
  attributes: Attributes = {},
): Observation[] =>
  Array.from({ length: 31 }, (_, second) => ({
    kind: 'sample',
    at: T0 + second,
    metric: metric.name,
    value: value(second),
    attributes,
  }));

const grown = (second: number): number => 20 + A_SECOND * second;

const container = (path: string, entries: number, file: string): HeapContainer => ({
  id: `${path}:list`,
  type: 'list',
  entries,
  bytes: entries * 100,
  content: '_io.TextIOWrapper',
  at: { path, owner: 'global', module: path.split('.')[0] ?? null, file, line: null },
});

function looks(of: (second: number) => Partial<HeapLook>): Observation[] {
  return LOOKS.map((second) => {
    const body: HeapLook = {
      at: T0 + second,
      duration: 0.3,
      objects: 50_000,
      bytes: 5 * MIB,
      resident: 50 * MIB,
      types: [],
      containers: [],
      leastEntries: 64,
      broken: 0,
      repaired: 0,
      lacking: null,
      ...of(second),
    };
    return { kind: 'snapshot', at: body.at, of: SNAPSHOT.heap, body: heapSnapshot(42, body) };
  });
}

const kept = (second: number): HeapContainer =>
  container('app.opened', grown(second), '/srv/app.py');
const type = (name: string, count: number): HeapTypeCount => ({
  type: name,
  count,
  bytes: count * 48,
});

function findingsOf(...observations: readonly (readonly Observation[])[]): readonly Finding[] {
  const recording = memoryRecording(START);
  for (const observation of observations.flat()) recording.write(observation);
  return detectAll(recording.view());
}

const files = [
  ...readings(METRIC.fds, grown),
  ...readings(METRIC.descriptors, grown, { [ATTR.descriptorKind]: 'file' }),
];
const placesOf = (findings: readonly Finding[]): readonly string[] =>
  findings.flatMap(({ where }) => where.map((place) => place.function));

describe('descriptors that become more', () => {
  it('are put down to the container and the class that gain as many', () => {
    const seen = looks((s) => ({
      containers: [kept(s), container('app.other', 500, '/srv/app.py')],
      types: [type('client.Session', grown(s)), type('client.Request', 200 + (s % 2))],
    }));
    expect(placesOf(findingsOf(files, seen))).toEqual(['app.opened', 'client.Session']);
  });

  it('are put down to what the library keeps only where nothing of the program’s is known', () => {
    const library = (s: number): HeapContainer =>
      container('selectors.map', grown(s), '/usr/lib/python3.11/selectors.py');
    expect(
      placesOf(
        findingsOf(
          files,
          looks((s) => ({ containers: [library(s), kept(s)] })),
        ),
      ),
    ).toEqual(['app.opened']);
    expect(
      placesOf(
        findingsOf(
          files,
          looks((s) => ({ containers: [library(s)] })),
        ),
      ),
    ).toEqual(['selectors.map']);
  });

  it.each([
    ['five times as fast', (s: number) => 20 + 5 * A_SECOND * s],
    ['a tenth as fast', (s: number) => 100 + s],
    ['up and down', (s: number) => (s === 11 ? 10 : grown(s))],
  ])('are not put down to what grows %s', (_, count) => {
    const seen = looks((s) => ({ types: [type('client.Session', count(s))] }));
    expect(placesOf(findingsOf(files, seen))).toEqual([]);
  });
});

describe('connections that this program opened', () => {
  const sockets = [
    ...readings(METRIC.fds, grown),
    ...readings(METRIC.descriptors, grown, { [ATTR.descriptorKind]: 'socket' }),
    ...readings(METRIC.sockets, grown, {
      [ATTR.connectionState]: 'established',
      [ATTR.socketPeer]: '10.0.0.9:443',
    }),
  ];
  const cpu = (value: (second: number) => number): Observation[] =>
    readings(METRIC.cpuTime, value, { [ATTR.pid]: 42 });
  const seen = looks((s) => ({ types: [type('client.Session', grown(s))] }));

  it('are a leak where they bring no more work, and a class gains as many', () => {
    const [finding] = findingsOf(
      sockets,
      cpu((s) => s * 0.1),
      seen,
    );
    expect(finding).toMatchObject({
      code: 'TRC113',
      mechanism: 'idle',
      severity: 'warning',
      where: [{ function: 'client.Session' }],
    });
    expect(finding?.summary).toContain('10.0.0.9:443');
  });

  it('may be load where the work rises with them, or nothing is known to hold them', () => {
    const rising = cpu((s) => s * s * 0.01);
    expect(findingsOf(sockets, rising, seen)).toMatchObject([{ code: 'TRC119' }]);
    expect(
      findingsOf(
        sockets,
        cpu((s) => s * 0.1),
      ),
    ).toMatchObject([{ code: 'TRC119' }]);
  });
});

describe('threads that become more', () => {
  const frame = (name: string, file: string): Frame => ({ function: name, file, line: 5 });
  const threads = [
    ...readings(METRIC.threads, grown),
    ...readings(METRIC.threadsByName, grown, { [ATTR.threadName]: 'worker-#' }),
  ];
  const stacks = (second: number, tids: readonly number[], name: string): Observation => ({
    kind: 'snapshot',
    at: T0 + second,
    of: SNAPSHOT.threads,
    body: {
      pid: 42,
      threads: tids.map((tid) => ({
        tid,
        wait: 'futex',
        frames: [frame('wait', '/usr/lib/python3.11/threading.py'), frame(name, '/srv/app.py')],
      })),
    },
  });

  it('stand where those do that came since the first look', () => {
    const found = findingsOf(threads, [
      stacks(6, [43, 44, 45], 'pool'),
      stacks(19, [60, 61, 62], 'poll_forever'),
    ]);
    expect(found).toMatchObject([{ kind: 'thread-leak', where: [{ function: 'poll_forever' }] }]);
  });

  it('are not placed by looks at the main thread, which is in those that compare processes', () => {
    const found = findingsOf(threads, [stacks(6, [42, 43], 'serve')]);
    expect(found).toMatchObject([{ kind: 'thread-leak', where: [] }]);
  });
});
