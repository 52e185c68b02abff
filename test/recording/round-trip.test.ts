import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RecordingView } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';
import { END, FINDING, START, observations } from './observations.ts';
import { rounds } from '../rounds.ts';

/** Change it to look for other cases; a failure prints the seed of its own. */
const FIRST_SEED = 20_261_121;
const CASES = rounds(200);

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tracewright-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Everything a view can be asked. */
function contents(view: RecordingView): unknown {
  const metrics = view.metricNames();
  return {
    start: view.start,
    end: view.end,
    endedAt: view.endedAt,
    gaps: view.gaps,
    problems: view.problems,
    metrics,
    series: metrics.map((name) => view.series(name)),
    histograms: metrics.map((name) => view.histograms(name)),
    spans: ['tracewright.eventloop.blocked', 'tracewright.eventloop.busy'].map((name) =>
      view.spans(name),
    ),
    stacks: ['s0', 's1', 's2', 's3', 's4'].map((id) => view.stack(id)),
    snapshots: ['tasks', 'heap'].map((of) => view.snapshots(of)),
    events: ['tracewright.note', 'other', 'tracewright.stack'].map((name) => view.events(name)),
  };
}

it(`reads back what a recording in memory shows, for ${CASES} random runs`, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + CASES; seed++) {
    const directory = join(folder, String(seed));
    const rolls = seed % 3 === 0 ? { segmentBytes: 8000 } : {};
    const writer = await openRecordingWriter({ directory, start: START, env: {}, ...rolls });
    const memory = memoryRecording(START);
    const seen = observations(seed, seed % 120);
    for (const [i, observation] of seen.entries()) {
      writer.write(observation);
      memory.write(observation);
      if (i % 40 === 39) await writer.flush();
    }
    expect(await writer.end(END, [FINDING]), `seed ${seed}`).toEqual({ dropped: 0 });
    const stored = await openRecording(directory);
    expect(contents(stored), `seed ${seed}`).toEqual(contents(memory.view(END)));
    expect(stored.findings, `seed ${seed}`).toEqual([FINDING]);
  }
});
