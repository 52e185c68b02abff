import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { LoadResult } from '../../../src/core/load-types.ts';
import { loadMetrics } from '../../../src/core/semconv-load.ts';
import type { Observation } from '../../../src/core/types.ts';
import { loadResultOf, withLoadResult } from '../../../src/load/observe/read-back.ts';
import { memoryRecording } from '../../../src/recording/memory.ts';
import { openRecording } from '../../../src/recording/reader.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import { END } from '../../recording/observations.ts';
import { RUN_START, WALL, observer, simulate } from './simulated-load.ts';

const folder = mkdtempSync(join(tmpdir(), 'trace-load-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let recordings = 0;

async function writer(profile: 'stable' | 'next' = 'stable') {
  return openRecordingWriter({
    directory: join(folder, String(recordings++)),
    start: { ...RUN_START, settings: { gen_ai_profile: profile } },
    env: {},
    metrics: loadMetrics(profile),
  });
}

/** Sums are added in another order: equal to the last few bits. */
function rounded(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, item: unknown) =>
      typeof item === 'number' && !Number.isInteger(item) ? Number(item.toPrecision(12)) : item,
    ),
  );
}

const ENDING = { interrupted: false, complete: true };

describe.each(['stable', 'next'] as const)('a recording with the %s names', (profile) => {
  it.each([1, 2, 3])('gives the result again that the run gave (seed %i)', async (seed) => {
    const recording = await writer(profile);
    const live = observer((observation) => recording.write(observation), { profile });
    simulate(live, { seed });
    const result = live.end(WALL + 10.3, ENDING);
    await recording.end({ ...END, endedAt: WALL + 10.3 }, []);
    expect(result.total.requests.ok).toBeGreaterThan(800);
    expect(result.total.latency.itl.count).toBeGreaterThan(5000);
    const view = await openRecording(recording.directory);
    expect(view.problems).toEqual([]);
    expect(rounded(loadResultOf(view))).toEqual(rounded(result));
  });
});

it('a result still in memory is the same', () => {
  const memory = memoryRecording(RUN_START);
  const live = observer((observation) => memory.write(observation));
  simulate(live, { seed: 4 });
  const result = live.end(WALL + 10.3, ENDING);
  expect(rounded(loadResultOf(memory.view()))).toEqual(rounded(result));
  expect(loadResultOf(withLoadResult(memory.view(), result))).toEqual(result);
});

describe('the recording of a run that was killed', () => {
  /** What the builder would have said at that moment. */
  function truth(seed: number, until: number): LoadResult {
    const other = observer(() => {});
    simulate(other, { seed, until });
    return other.end(WALL + until, { interrupted: false, complete: false });
  }

  it.each([1, 3, 5, 8])('gives the result up to second %i', async (until) => {
    const recording = await writer();
    simulate(
      observer((observation) => recording.write(observation)),
      { seed: 5, until },
    );
    await recording.close();
    const view = await openRecording(recording.directory);
    const result = loadResultOf(view);
    expect(result?.parts.present[0]?.complete).toBe(false);
    expect(rounded({ ...result, parts: null })).toEqual(
      rounded({ ...truth(5, until), parts: null }),
    );
  });

  it('between the lines of one second, gives the second before', async () => {
    const recording = await writer();
    const live = observer((observation) => recording.write(observation));
    simulate(live, { seed: 6, until: 3 });
    await recording.flush();
    const file = join(recording.directory, 'telemetry.jsonl');
    const whole = readFileSync(file, 'utf8');
    await recording.close();
    const lines = whole.trimEnd().split('\n');
    const last = lines.findLastIndex((line) => line.includes('gen_ai.client.operation.duration'));
    // Everything was written in one flush here: only the last second's histograms are taken away.
    const cut = JSON.parse(lines[last] ?? '') as Metrics;
    for (const metric of cut.resourceMetrics[0]?.scopeMetrics[0]?.metrics ?? [])
      for (const points of [metric.exponentialHistogram?.dataPoints])
        points?.splice(
          0,
          points.length,
          ...points.filter(({ timeUnixNano }) => timeUnixNano < NANOS),
        );
    lines[last] = JSON.stringify(cut);
    writeFileSync(file, `${lines.join('\n')}\n`);
    const result = loadResultOf(await openRecording(recording.directory));
    expect(rounded(result?.total.latency)).toEqual(rounded(truth(6, 2).total.latency));
    expect(result?.total.requests).toEqual(truth(6, 2).total.requests);
  });
});

const NANOS = `${WALL + 3}000000000`;

interface Metrics {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly exponentialHistogram?: { readonly dataPoints: { timeUnixNano: string }[] };
      }[];
    }[];
  }[];
}

it('a recording of something else has no result', () => {
  expect(loadResultOf(memoryRecording(RUN_START).view())).toBeUndefined();
});

it('snapshots that somebody changed are refused with what is wrong, and those that are none are passed over', () => {
  const seen: Observation[] = [];
  simulate(
    observer((observation) => seen.push(observation)),
    { seed: 1, until: 1 },
  );
  const changed = (of: string, body: unknown) => {
    const memory = memoryRecording(RUN_START);
    for (const one of seen)
      memory.write(one.kind === 'snapshot' && one.of === of ? { ...one, body } : one);
    return () => loadResultOf(memory.view());
  };
  for (const body of [null, 7, 'x', [], { index: 'x' }])
    expect(changed('load-stage', body)()?.total.requests.ok).toBe(0);
  expect(changed('load-stage', { index: 0, requests: { ok: 'many' } })).toThrow(
    /cannot be read: load\.stages\[0\]/,
  );
  for (const body of [null, 7, {}, { runId: 'x' }])
    expect(changed('load-run', body)).toThrow(/cannot be read: load/);
});
