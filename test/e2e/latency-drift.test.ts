import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadMetrics } from '../../src/core/semconv-load.ts';
import type { LoadPlan } from '../../src/load/plan.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';
import { observer, PLAN, RUN_START, wall, WALL } from '../load/observe/simulated-load.ts';
import { batch, MONO, request } from '../load/results/sample-run.ts';
import { END, random } from '../recording/observations.ts';
import { parseReport, runCli } from './cli.ts';

/*
 * Requests that take longer and longer at the same load, told by trace from the recording of a load run: a minute of it, made up, goes the whole way
 * from the engine's batches to the report. The same with a real server is test/bench/latency-drift.soak.ts.
 */

const folder = mkdtempSync(join(tmpdir(), 'tracewright-drift-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 60;
const A_SECOND = 10;
const plan: LoadPlan = {
  ...PLAN,
  stages: PLAN.stages.slice(0, 1).map((stage) => ({ ...stage, duration: SECONDS })),
  workers: 1,
  slos: [],
  trace: { traceId: RUN_START.traceId, sample: 1 },
};

/** A minute of requests whose first output comes after `first` seconds, by the share of the run that is over; noise of 20 %. */
async function recorded(name: string, first: (share: number) => number): Promise<string> {
  const sink = await openRecordingWriter({
    directory: join(folder, name),
    start: RUN_START,
    env: {},
    metrics: loadMetrics('stable'),
  });
  const live = observer((observation) => sink.write(observation), { plan });
  const next = random(3);
  live.stage({ stage: 0, what: 'begun', at: MONO });
  for (let second = 0; second < SECONDS; second++) {
    const from = MONO + second;
    const requests = Array.from({ length: A_SECOND }, (_, i) => {
      const scheduledAt = from + i / A_SECOND;
      const share = (second + i / A_SECOND) / SECONDS;
      const firstOutputAt = scheduledAt + first(share) * (0.8 + 0.4 * next());
      return request({ index: second * A_SECOND + i, scheduledAt, firstOutputAt });
    });
    live.add(batch(requests, { worker: 0, stage: 0, from, to: from + 1 }));
    live.tick(wall(from + 1));
  }
  live.stage({ stage: 0, what: 'sending-ended', at: MONO + SECONDS });
  live.stage({ stage: 0, what: 'drained', at: MONO + SECONDS + 1 });
  live.end(WALL + SECONDS + 1, { interrupted: false, complete: true });
  await sink.end({ ...END, endedAt: WALL + SECONDS + 1 }, []);
  return sink.directory;
}

describe.concurrent('trace show of a load run', () => {
  it('says that the same requests take longer and longer', async () => {
    const directory = await recorded('drifting', (share) => 0.1 + 0.2 * share);
    const { findings } = parseReport(await runCli(['show', directory, '--json']));
    const [drift] = findings.filter(({ kind }) => kind === 'latency-drift');
    expect(drift).toMatchObject({
      code: 'TRC116',
      mechanism: 'uptime',
      severity: 'warning',
      confidence: 'likely',
    });
    expect(drift?.measure['growth_ratio']).toBeGreaterThan(2);
    expect(drift?.measure['growth_ratio']).toBeLessThan(3.5);
  });

  it('says nothing of requests that stay as they are', async () => {
    const directory = await recorded('steady', () => 0.2);
    const { findings } = parseReport(await runCli(['show', directory, '--json']));
    expect(findings.filter(({ kind }) => kind === 'latency-drift')).toEqual([]);
  });
});
