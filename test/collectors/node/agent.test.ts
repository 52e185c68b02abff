import { createRequire } from 'node:module';
import { runInNewContext, runInThisContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { type Agent, agentExpression, closeExpression } from '../../../collectors/node/agent.ts';
import { parseReading } from '../../../collectors/node/agent-reading.ts';
import { heapCollector } from '../../../collectors/node/heap.ts';
import { ATTR, METRIC } from '../../../src/core/semconv.ts';
import type { Observation } from '../../../src/core/types.ts';

const PATIENT = { inspector: null, tickMs: 60_000, leaseTicks: 2 };

/** Evaluated as the inspector does it: as text, in this very process, with the console's `require`. */
function install(settings: Parameters<typeof agentExpression>[0]): Agent {
  const evaluate = runInThisContext(`(require) => ${agentExpression(settings)}`) as (
    require: unknown,
  ) => Agent | null;
  const agent = evaluate(createRequire(import.meta.url));
  if (agent === null) throw new Error('not installed');
  return agent;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe('the agent', () => {
  it('needs nothing but itself: in a realm without Node it gives null and throws nothing', () => {
    expect(runInNewContext(agentExpression(PATIENT), {})).toBeNull();
    expect(runInNewContext(closeExpression('x'), {})).toBe(false);
    const hostile = {
      process: {
        getBuiltinModule() {
          throw new Error('no');
        },
      },
      require() {
        throw new Error('no');
      },
    };
    expect(runInNewContext(agentExpression(PATIENT), hostile)).toBeNull();
    expect(runInNewContext(closeExpression('x'), hostile)).toBe(false);
  });

  it('reads the heap by space, and each collection once', async () => {
    const agent = install(PATIENT);
    expect(agent.describe()).toEqual({ closable: true, heap: true, pauses: true });
    const kept: unknown[] = [];
    const pauses: unknown[] = [];
    await until(() => {
      for (let i = 0; i < 50; i++) kept[i % 20] = Array.from({ length: 10_000 }, (_, n) => ({ n }));
      pauses.push(...(agent.read()?.pauses ?? []));
      return pauses.length > 0;
    });
    const reading = parseReading(agent.read());
    expect(reading?.spaces.map(({ name }) => name)).toContain('old_space');
    expect(reading?.limit).toBeGreaterThan(1e6);
    agent.remove();
    expect(agent.read()).toBeNull();
  });

  it('removes itself when its lease is over, and not before', async () => {
    const agent = install({ inspector: null, tickMs: 4, leaseTicks: 3 });
    let renewals = 0;
    await until(() => agent.renew() && ++renewals > 20);
    await until(() => agent.describe().pauses === false);
    expect(agent.renew()).toBe(false);
    expect(agent.read()).toBeNull();
  });

  it('keeps no process alive and leaves no name behind', () => {
    const before = [Reflect.ownKeys(globalThis), process.getActiveResourcesInfo().length];
    const agent = install(PATIENT);
    agent.read();
    expect([Reflect.ownKeys(globalThis), process.getActiveResourcesInfo().length]).toEqual(before);
    agent.remove();
  });

  it('does not close an inspector of another name', () => {
    const agent = install({ ...PATIENT, inspector: { port: 9229, id: 'another' } });
    expect(agent.describe().closable).toBe(false);
    expect(agent.leave()).toBe(false);
  });
});

describe('what an agent answers', () => {
  const reading = {
    spaces: [{ name: 'old_space', size: 3, used: 1, available: 2, physical: 3 }],
    limit: 100,
    external: 5,
    malloced: 6,
    contexts: 1,
    detachedContexts: 0,
    now: 10,
    pauses: [[1, 2, 3]],
    lost: 0,
  };

  it('is believed when it has the form of a reading', () => {
    expect(parseReading(reading)).toEqual(reading);
  });

  it.each([
    null,
    7,
    {},
    { ...reading, spaces: 'many' },
    { ...reading, spaces: [{ name: 7 }] },
    { ...reading, pauses: [[1, Number.NaN, 3]] },
    { ...reading, pauses: [[1, 2, -3]] },
    { ...reading, pauses: Array.from({ length: 100_000 }, () => [1, 2, 3]) },
  ])('is refused when it has another: %#', (value) => {
    expect(parseReading(value)).toBeNull();
  });
});

describe('the heap collector', () => {
  const target = { kind: 'process', pid: 7, startTicks: 1 } as const;
  const clock = { now: () => 100, mono: () => 100 };

  async function observe(answers: unknown[]): Promise<Observation[]> {
    const controller = new AbortController();
    const source = {
      read: () => {
        if (answers.length === 1) controller.abort();
        return Promise.resolve(parseReading(answers.shift()));
      },
    };
    const seen: Observation[] = [];
    const context = { signal: controller.signal, clock };
    for await (const one of heapCollector(source).observe(target, context)) seen.push(one);
    return seen;
  }

  it("gives OpenTelemetry's metrics, a histogram for each kind of collection", async () => {
    const seen = await observe([
      {
        spaces: [{ name: 'old_space', size: 30, used: 10, available: 20, physical: 30 }],
        limit: 100,
        external: 5,
        pauses: [
          [1, 0, 2],
          [1, 0, 4],
          [4, 0, 30],
        ],
      },
    ]);
    const samples = seen.flatMap((one) =>
      one.kind === 'sample' ? [[one.metric, one.value, one.attributes?.[ATTR.heapSpace]]] : [],
    );
    expect(samples).toEqual([
      [METRIC.heapUsed.name, 10, 'old_space'],
      [METRIC.heapSize.name, 30, 'old_space'],
      [METRIC.heapAvailable.name, 20, 'old_space'],
      [METRIC.heapPhysical.name, 30, 'old_space'],
      [METRIC.heapLimit.name, 100, undefined],
      [METRIC.heapExternal.name, 5, undefined],
    ]);
    const collections = seen.flatMap((one) =>
      one.kind === 'histogram'
        ? [[one.attributes?.[ATTR.gcType], one.buckets.count, one.buckets.max]]
        : [],
    );
    expect(collections).toEqual([
      ['minor', 2, 0.004],
      ['major', 1, 0.03],
    ]);
  });

  it('says once that nothing is answered', async () => {
    const seen = await observe([null]);
    expect(seen).toMatchObject([{ kind: 'gap', collector: 'v8-heap', reason: 'failed' }]);
  });
});
