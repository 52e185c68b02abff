import { describe, expect, it } from 'vitest';
import { PageReadings, serversOf } from '../../../collectors/server-metrics/page-samples.ts';
import { SERVER_ATTR } from '../../../src/core/semconv-server.ts';
import type { Sample } from '../../../src/core/types.ts';
import { parsePage } from '../../../src/platform/prometheus.ts';
import { PAGES } from './pages.ts';

const PREFIX = 'tracewright.server.';

/** The common names of a page, as `says` in pages.ts has them. */
function common(samples: readonly Sample[]): Record<string, number | Record<string, number>> {
  const says: Record<string, number | Record<string, number>> = {};
  for (const { metric, value, attributes } of samples) {
    if (!metric.startsWith(PREFIX)) continue;
    const name = metric.slice(PREFIX.length);
    const engine = attributes?.[SERVER_ATTR.engine];
    if (engine === undefined) says[name] = value;
    else says[name] = { ...(says[name] as object | undefined), [String(engine)]: value };
  }
  return says;
}

describe.each(PAGES)('$server', ({ page, engine, says, atEnd = [] }) => {
  const readings = new PageReadings({ 'server.address': 'a' });
  const samples = readings.samples(parsePage(page), 1, true);

  it('is known by its names, and its numbers have ours', () => {
    expect(serversOf(parsePage(page))[0]?.engine ?? null).toBe(engine);
    expect(common(samples)).toEqual(says);
  });

  it('says which numbers stand still while a request runs', () => {
    const late = samples.filter(({ attributes }) => attributes?.[SERVER_ATTR.countedAt]);
    expect(late.map(({ metric }) => metric)).toEqual(atEnd.map((name) => PREFIX + name));
  });
});

describe('many pages', () => {
  const page = (tokens: number, other: number) =>
    parsePage(`# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0"} ${tokens}
# TYPE python_gc counter
python_gc ${other}
`);

  it('have the numbers of the table each time, others each tenth time', () => {
    const readings = new PageReadings({});
    const seen = Array.from({ length: 21 }, (_, nth) =>
      readings.samples(page(nth + 1, nth), nth, false).map(({ metric }) => metric),
    );
    const count = (name: string) => seen.filter((metrics) => metrics.includes(name)).length;
    expect(count('vllm:generation_tokens_total')).toBe(21);
    expect(count('tracewright.server.tokens.output')).toBe(21);
    expect(count('python_gc')).toBe(3);
  });

  it('have the others, too, where the server is not known', () => {
    const readings = new PageReadings({});
    for (let nth = 0; nth < 5; nth++) {
      expect(readings.samples(parsePage(`m ${nth}`), nth, false)).toHaveLength(1);
    }
  });

  it('keep their known series however many others there are', () => {
    const many = Array.from({ length: 5000 }, (_, i) => `other{i="${i}"} 1`).join('\n');
    const readings = new PageReadings({});
    const samples = readings.samples(parsePage(`${many}\nvllm:num_requests_running 3`), 1, true);
    expect(samples.filter(({ metric }) => metric === 'vllm:num_requests_running')).toHaveLength(1);
    expect(common(samples)).toEqual({ 'requests.running': 3 });
    expect(readings.refused).toBe(2000);
  });

  it('have so many engines and no more: workers that come and go are counted together', () => {
    const readings = new PageReadings({});
    const engines = new Set<unknown>();
    for (let nth = 0; nth < 300; nth++) {
      const samples = readings.samples(
        parsePage(`vllm:num_requests_running{worker_id="${nth}"} 1`),
        nth,
        false,
      );
      for (const { attributes } of samples) engines.add(attributes?.[SERVER_ATTR.engine]);
    }
    engines.delete(undefined);
    expect(engines.size).toBe(257);
    expect(engines.has('others')).toBe(true);
  });

  it('notice a counter that fell, once', () => {
    const readings = new PageReadings({});
    const restarts = [10, 20, 5, 6].map((tokens, at) => {
      readings.samples(page(tokens, 0), at, false);
      return readings.restarted;
    });
    expect(restarts).toEqual([false, false, true, false]);
  });
});
