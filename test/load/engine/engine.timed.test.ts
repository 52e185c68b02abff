import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { histogramQuantile, mergeHistograms } from '../../../src/core/exponential-histogram.ts';
import type { RequestRecord } from '../../../src/core/load-types.ts';
import type { EngineBatch, EngineEvents, StartLoad } from '../../../src/load/contracts.ts';
import type { LoadPlan, PromptClass, StagePlan } from '../../../src/load/plan.ts';
import { closed, loadPlan, open, stage } from './simulation.ts';

/** The built engine with its threads and real sockets, against a server in this process. */

const ROOT = join(import.meta.dirname, '..', '..', '..');
const { startLoad } = (await import(join(ROOT, 'dist/src/load/engine/engine.js'))) as {
  readonly startLoad: StartLoad;
};

/** Of the server: between outputs, and how many. */
const GAP_MS = 4;
const OUTPUTS = 5;

let server: Server;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tracewright-engine-'));
  server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let left = OUTPUTS;
      const timer = setInterval(() => {
        const delta = JSON.stringify({ choices: [{ index: 0, delta: { content: 'word ' } }] });
        response.write(`data: ${delta}\n\n`);
        if (--left > 0) return;
        clearInterval(timer);
        const usage = { prompt_tokens: 8, completion_tokens: OUTPUTS };
        response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
      }, GAP_MS);
      response.on('close', () => clearInterval(timer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

function synthetic(): PromptClass {
  return {
    name: '',
    weight: 1,
    prompts: {
      kind: 'synthetic',
      inputTokens: 8,
      inputDeviation: 0,
      outputTokens: OUTPUTS,
      outputDeviation: 0,
      prefixTokens: 0,
      prefixes: 1,
    },
  };
}

function planOf(stages: readonly StagePlan[], more: Partial<LoadPlan> = {}): LoadPlan {
  const { port } = server.address() as AddressInfo;
  const plan = loadPlan(stages);
  return {
    ...plan,
    endpoint: {
      ...plan.endpoint,
      url: `http://127.0.0.1:${port}/v1/chat/completions`,
      authority: `127.0.0.1:${port}`,
      address: { kind: 'tcp', host: '127.0.0.1', port },
    },
    prompts: { classes: [synthetic()], turns: 1, thinkTime: 0 },
    ...more,
  };
}

function begin(plan: LoadPlan) {
  const batches: EngineBatch[] = [];
  const stages: Parameters<EngineEvents['onStage']>[0][] = [];
  const run = startLoad(plan, {
    onBatch: (batch) => batches.push(batch),
    onStage: (event) => stages.push(event),
  });
  const records = (): RequestRecord[] =>
    batches.flatMap(({ requests }) => requests).toSorted((a, b) => a.index - b.index);
  return { run, batches, stages, records };
}

const indices = (records: readonly RequestRecord[]) => records.map(({ index }) => index);
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

/** How far the gap between two sendings is from this, in the middle: an outlier of a busy machine does not move it. */
function spreadOf(records: readonly RequestRecord[], gap: number): number {
  const times = records.map(({ startedAt }) => startedAt).toSorted((a, b) => a - b);
  const off = times.slice(1).map((at, i) => Math.abs(at - (times[i] ?? 0) - gap));
  return off.toSorted((a, b) => a - b)[Math.floor(off.length / 2)] ?? Number.NaN;
}

describe('a run', () => {
  it.each([1, 2])('of a closed loop over %d threads sends each request once', async (workers) => {
    const { run, batches, stages, records } = begin(
      planOf([stage(closed(4), { requests: 60 })], { workers, warmup: { requests: 4 } }),
    );
    await expect(run.finished).resolves.toEqual({ interrupted: false });
    expect(indices(records())).toEqual(upTo(64));
    expect(records().filter(({ warmup }) => warmup)).toHaveLength(4);
    expect(records().every(({ error }) => error === null)).toBe(true);
    expect(new Set(records().map(({ worker }) => worker)).size).toBe(workers);
    expect(stages.map(({ what }) => what)).toEqual(['begun', 'sending-ended', 'drained']);
    const measured = batches.flatMap((batch) => batch.stages);
    const itl = mergeHistograms(measured.flatMap(({ latency }) => latency.itl ?? []));
    expect(itl.count).toBe(60 * (OUTPUTS - 1));
    expect(histogramQuantile(itl, 0.5)).toBeGreaterThan((GAP_MS - 1) / 1e3);
    expect(batches.some(({ loopDelay }) => loopDelay.count > 0)).toBe(true);
    expect(batches.at(-1)?.serverOffset?.samples).toBeGreaterThan(0);
  });

  it('sends at constant intervals what is to be constant, and at random what is not', async () => {
    const plan = (burstiness: number | null) =>
      planOf([stage(open(100, burstiness), { requests: 150 })], { warmup: { requests: 20 } });
    const constant = begin(plan(null));
    await constant.run.finished;
    const poisson = begin(plan(1));
    await poisson.run.finished;
    expect(indices(poisson.records())).toEqual(upTo(170));
    const even = spreadOf(
      constant.records().filter(({ warmup }) => !warmup),
      0.01,
    );
    expect(even).toBeLessThan(spreadOf(poisson.records(), 0.01) / 4);
    const lateness = mergeHistograms(
      constant.batches.flatMap(({ stages: of }) => of.map((one) => one.lateness)),
    );
    // A tenth of the interval: what plain timers (whole milliseconds) do not reach.
    expect(histogramQuantile(lateness, 0.5)).toBeLessThan(0.001);
  });

  it('in two threads has the schedule of one', async () => {
    const plan = planOf([stage(open(200, 0.5), { requests: 60 })]);
    const one = begin(plan);
    await one.run.finished;
    const two = begin({ ...plan, workers: 2 });
    await two.run.finished;
    const schedule = (records: readonly RequestRecord[]) =>
      records.map(({ scheduledAt }) => (scheduledAt - (records[0]?.scheduledAt ?? 0)).toFixed(6));
    expect(schedule(two.records())).toEqual(schedule(one.records()));
  });

  it('goes through its stages', async () => {
    const { run, stages, records } = begin(
      planOf([
        stage(closed(1), { requests: 3 }),
        stage(open(50), { duration: 0.2 }),
        stage(closed(2), { duration: 0.1, continuous: true }),
      ]),
    );
    await run.finished;
    expect(stages.filter(({ what }) => what === 'drained').map(({ stage: of }) => of)).toEqual([
      0, 1, 2,
    ]);
    expect(records().filter(({ stage: of }) => of === 1)).toHaveLength(10);
    expect(indices(records())).toEqual(upTo(records().length));
  });
});

describe('an end', () => {
  it('by stop lets the requests under way end', async () => {
    const { run, stages, records } = begin(planOf([stage(closed(3), { duration: 60 })]));
    while (records().length <= 3) await sleep(5);
    run.stop();
    await expect(run.finished).resolves.toEqual({ interrupted: true });
    expect(records().length).toBeGreaterThan(3);
    expect(records().every(({ error }) => error === null)).toBe(true);
    expect(stages.at(-1)?.what).toBe('drained');
  });

  it('by a second stop ends them', async () => {
    const { run, records } = begin(planOf([stage(closed(3), { duration: 60 })]));
    while (records().length === 0) await sleep(5);
    run.stop();
    run.stop();
    await expect(run.finished).resolves.toEqual({ interrupted: true });
    expect(records().filter(({ error }) => error?.class === 'unfinished')).toHaveLength(3);
  });

  it('by a bug in a worker is a failure, never a wait', async () => {
    const plan = planOf([stage(closed(1), { requests: 1 })]);
    const broken = { ...plan, endpoint: { ...plan.endpoint, path: '/a path' } };
    await expect(begin(broken).run.finished).rejects.toMatchObject({
      code: 'ERR_LOAD_WORKER',
      message: expect.stringContaining('a path that cannot be sent') as string,
    });
  });

  it('by data that turn out to be wrong keeps what was measured, and says why', async () => {
    const path = join(folder, 'prompts.jsonl');
    // Far beyond what is looked at before the run.
    const lines = upTo(3000).map(() => JSON.stringify({ prompt: 'hello' }));
    writeFileSync(path, `${[...lines, '{"prompt": 7}'].join('\n')}\n`);
    const classes: readonly PromptClass[] = [
      {
        name: '',
        weight: 1,
        prompts: { kind: 'file', path, order: 'sequential', outputTokens: null },
      },
    ];
    const plan = planOf([stage(closed(32), { duration: 60 })], {
      prompts: { classes, turns: 1, thinkTime: 0 },
      workers: 2,
    });
    const { run, records } = begin(plan);
    await expect(run.finished).rejects.toMatchObject({ name: 'TraceError' });
    expect(records().length).toBeGreaterThan(500);
  });

  it('before it began, because the data are not there, is told as that', async () => {
    const classes: readonly PromptClass[] = [
      {
        name: '',
        weight: 1,
        prompts: {
          kind: 'file',
          path: join(folder, 'none.jsonl'),
          order: 'sequential',
          outputTokens: null,
        },
      },
    ];
    const plan = planOf([stage(closed(1), { requests: 1 })], {
      prompts: { classes, turns: 1, thinkTime: 0 },
    });
    const failure = await begin(plan).run.finished.then(
      () => null,
      (error: unknown) => error as { readonly code: string; readonly exitCode: number },
    );
    expect(failure?.code).not.toBe('ERR_LOAD_WORKER');
    expect(failure?.exitCode).toBeLessThan(70);
  });
});
