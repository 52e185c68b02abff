import { describe, expect, it } from 'vitest';
import { histogramQuantile } from '../../src/core/exponential-histogram.ts';
import { clientLimits, samplesFor } from '../../src/core/load-client.ts';
import { ownDelay, quantileError } from '../../src/core/load-own-delay.ts';
import type { LatencyKey, LoadResult } from '../../src/core/load-types.ts';
import { seededRandom } from '../../src/core/random.ts';
import { histogram } from '../load/results/sample-run.ts';
import { concurrency, healthy, rate } from '../report/sample-load.ts';

type Draw = () => number;
const random = seededRandom(20);

/** What is true of a server. */
const SERVERS: Readonly<Record<string, Draw>> = {
  steady: () => 0.02,
  uniform: () => 0.014 + random() * 0.012,
  'heavy-tailed': () => 0.02 * Math.exp(1.2 * normal()),
  'of two kinds': () => (random() < 0.8 ? 0.01 : 0.2) * (0.9 + random() * 0.2),
};
/** How late a client reads. */
const CLIENTS: Readonly<Record<string, Draw>> = {
  idle: () => 0.00003 + random() * 0.00005,
  'on a busy machine': () => (random() < 0.005 ? 0.005 + random() * 0.02 : 0.00005),
  'at the edge': () => random() * 0.003,
  saturated: () => random() * 0.06,
};

function normal(): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

const draw = (n: number, of: Draw): number[] => Array.from({ length: n }, of);

/** A stage with these latencies, by a client whose loop answered so late. */
function measured(
  values: Partial<Record<LatencyKey, readonly number[]>>,
  client: {
    late?: readonly number[];
    lateness?: readonly number[];
    coreShare?: number;
    open?: boolean;
  } = {},
): LoadResult {
  const [stage = healthy.total] = healthy.stages;
  const {
    late = draw(500, CLIENTS['idle'] ?? random),
    lateness = [0.00001],
    coreShare = 0.3,
  } = client;
  const changed = {
    ...stage,
    asked: client.open === true ? rate(100) : concurrency(4),
    latency: {
      ...stage.latency,
      ...Object.fromEntries(Object.entries(values).map(([key, list]) => [key, histogram(list)])),
    },
    health: {
      ...stage.health,
      loopDelay: histogram(late),
      lateness: histogram(lateness),
      coreShare: [coreShare],
    },
  };
  return { ...healthy, stages: [changed], total: changed };
}

const QUANTILES = [0.5, 0.9, 0.99] as const;
/** Buckets are 0.28 % wide, and up to 0.1 ms of an answer is the cost of asking. */
const RESOLUTION = 0.004;
const MESSAGE = 0.0001;

describe('how wrong a quantile may be', () => {
  for (const [server, truth] of Object.entries(SERVERS)) {
    for (const [client, late] of Object.entries(CLIENTS)) {
      it(`is bounded: a ${server} server, a client that is ${client}`, () => {
        let held = 0;
        let tried = 0;
        for (let run = 0; run < 15; run++) {
          const values = draw(3000, truth);
          const { total } = measured(
            { ttft: values.map((value) => value + late()) },
            { late: draw(1000, late) },
          );
          const delay = ownDelay(total, 'ttft');
          for (const q of QUANTILES) {
            const off =
              histogramQuantile(total.latency.ttft, q) - histogramQuantile(histogram(values), q);
            const bound = quantileError(total.latency.ttft, q, 'ttft', delay);
            tried++;
            if (
              Math.abs(off) <=
              bound + MESSAGE + RESOLUTION * histogramQuantile(total.latency.ttft, q)
            )
              held++;
          }
        }
        expect(held / tried).toBeGreaterThanOrEqual(0.93);
      });
    }
  }

  it('is bounded between outputs, where a late read also makes the next gap shorter', () => {
    for (const late of Object.values(CLIENTS)) {
      const lags = draw(20_001, late);
      const truth = draw(20_000, () => 0.0035 + random() * 0.003);
      const gaps = truth.map((gap, i) => Math.max(0, gap + (lags[i + 1] ?? 0) - (lags[i] ?? 0)));
      const { total } = measured({ itl: gaps }, { late: draw(1000, late) });
      const delay = ownDelay(total, 'itl');
      for (const q of QUANTILES) {
        const off =
          histogramQuantile(total.latency.itl, q) - histogramQuantile(histogram(truth), q);
        const bound = quantileError(total.latency.itl, q, 'itl', delay);
        expect(Math.abs(off)).toBeLessThanOrEqual(bound + 0.00003);
      }
    }
  });

  it('is small where the client is good: nothing is marked', () => {
    const { total } = clientLimits(
      measured({ ttft: draw(1000, SERVERS['uniform'] ?? random), itl: draw(9000, () => 0.005) }),
    );
    expect(total.ttft).toEqual({});
    expect(total.itl).toEqual({});
  });

  it('counts late sending only from the schedule', () => {
    const values = draw(1000, SERVERS['uniform'] ?? random);
    const { total } = clientLimits(
      measured(
        { ttft: values, ttft_scheduled: values },
        { lateness: draw(1000, () => 0.004), open: true },
      ),
    );
    expect(total.ttft).toEqual({});
    expect(total.ttft_scheduled.p50).toMatchObject({ why: 'client' });
  });

  it('is spread over the tokens of a request where it is a time per token', () => {
    const { total } = clientLimits(
      measured(
        { tpot: draw(1000, () => 0.005), ttft: draw(1000, () => 0.005) },
        { late: draw(1000, () => 0.001) },
      ),
    );
    expect(total.ttft.p50).toMatchObject({ why: 'client' });
    expect(total.tpot.p50).toBeUndefined();
  });
});

describe('how many values a quantile takes', () => {
  it('is so many that the greatest lies beyond it with 95 %', () => {
    expect([0.5, 0.9, 0.95, 0.99, 0.999].map(samplesFor)).toEqual([5, 29, 59, 299, 2995]);
    const beyond = (n: number): number => {
      let hits = 0;
      for (let run = 0; run < 2000; run++) {
        if (Math.max(...draw(n, random)) > 0.99) hits++;
      }
      return hits / 2000;
    };
    expect(beyond(299)).toBeGreaterThan(0.93);
    expect(beyond(100)).toBeLessThan(0.7);
  });

  it('is marked where there are fewer', () => {
    const { total } = clientLimits(measured({ ttft: draw(298, () => 0.02) }));
    expect(Object.keys(total.ttft)).toEqual(['p99']);
    expect(clientLimits(measured({ ttft: draw(299, () => 0.02) })).total.ttft).toEqual({});
  });
});

describe('whether the client was the limit', () => {
  const causes = (result: LoadResult) => clientLimits(result).reasons.map((reason) => reason.cause);
  const [idle, busy, edge, saturated] = Object.values(CLIENTS) as [Draw, Draw, Draw, Draw];
  const read = (late: Draw, gap = 0.005) => {
    const lags = draw(9001, late);
    return {
      ttft: draw(1000, () => 0.014 + random() * 0.012 + late()),
      itl: draw(9000, () => gap).map((one, i) =>
        Math.max(0, one + (lags[i + 1] ?? 0) - (lags[i] ?? 0)),
      ),
    };
  };
  const by = (late: Draw, coreShare: number) =>
    measured(read(late), { late: draw(1000, late), coreShare });

  it.each<[string, LoadResult, readonly string[]]>([
    // Figures of the study: shares of a core, and how late a client of this kind reads.
    ['idle', by(idle, 0.13), []],
    ['half a core, 0.1 ms wrong (the prototype at 256 streams)', by(idle, 0.5), []],
    ['idle on a machine that is busy with other things', by(busy, 0.1), []],
    ['at the edge of its core: marked, not the limit', by(edge, 0.86), []],
    ['saturated (aiperf, guidellm, vLLM at 256 streams)', by(saturated, 0.97), ['core', 'reading']],
    ['starved: it wanted a core and got a tenth', by(saturated, 0.1), ['reading']],
    ['in a closed loop at a full core, though it reads in time', by(idle, 0.96), ['core']],
  ])('%s', (_, result, expected) => {
    expect(causes(result)).toEqual(expected);
  });

  it('asks more than a full core of an open loop: it spins before a request is due', () => {
    const open = (lateness: number) =>
      measured(read(idle), { lateness: draw(500, () => lateness), coreShare: 0.99, open: true });
    expect(causes(open(0.00002))).toEqual([]);
    expect(causes(open(0.02))).toEqual(['core', 'schedule']);
  });

  it('is not kept by a schedule whose tail alone was late', () => {
    const lateness = draw(500, () => (random() < 0.05 ? 0.02 : 0.00002));
    expect(causes(measured(read(idle), { lateness, open: true }))).toEqual([]);
  });

  it('names what helps: threads while there are cores, machines when there are none, another machine where it was kept from running', () => {
    const on = (cores: number, result: LoadResult) =>
      clientLimits({
        ...result,
        parts: {
          ...result.parts,
          present: result.parts.present.map((part) => ({ ...part, cores })),
        },
      }).remedy;
    expect(on(8, by(saturated, 0.97))).toEqual({ kind: 'workers', workers: 2 });
    expect(on(1, by(saturated, 0.97))).toEqual({ kind: 'machines' });
    expect(on(8, by(saturated, 0.1))).toEqual({ kind: 'machine' });
    expect(on(8, by(idle, 0.1))).toBeNull();
  });
});
