import { expect, it } from 'vitest';
import { PageReadings } from '../../collectors/server-metrics/page-samples.ts';
import { median } from '../../src/core/statistics.ts';
import { PageMemory, parsePage } from '../../src/platform/prometheus.ts';
import { publish, table } from './measurements.ts';

/*
 * What it costs to read a large page for Prometheus: CPU time of this process, which is what a busy machine disturbs least.
 */

const SERIES = 10_000;
const ROUNDS = 30;
/** The bar for a page of 10,000 series. */
const LIMIT_MS = 30;

/** A page as vLLM writes it, of eight engines: histograms of 22 buckets, a line of 105 characters. */
function page(): string {
  const bounds = Array.from({ length: 22 }, (_, i) => (0.001 * 1.9 ** i).toFixed(3));
  const lines: string[] = [];
  let count = 0;
  for (let family = 0; count < SERIES; family++) {
    const name = `vllm:request_${family}_time_seconds`;
    lines.push(`# HELP ${name} Histogram of a time in seconds.`, `# TYPE ${name} histogram`);
    for (let engine = 0; engine < 8 && count < SERIES; engine++) {
      const labels = `engine="${engine}",model_name="meta-llama/Llama-3.1-8B-Instruct"`;
      const own = [...bounds, '+Inf'].map(
        (le, i) => `${name}_bucket{le="${le}",${labels}} ${(count + i) % 997}.0`,
      );
      own.push(`${name}_count{${labels}} 1234.0`, `${name}_sum{${labels}} 123.456789`);
      lines.push(...own.slice(0, SERIES - count));
      count += own.length;
    }
  }
  return `${lines.join('\n')}\n`;
}

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e3;
}

it('reads a page of 10,000 series', () => {
  const text = page();
  const memory = new PageMemory();
  const readings = new PageReadings({});
  const first = cpuMs(() => expect(parsePage(text).samples).toHaveLength(SERIES));
  const rounds = (work: (nth: number) => void): number =>
    median(Array.from({ length: ROUNDS }, (_, nth) => cpuMs(() => work(nth))));
  const fresh = rounds(() => void parsePage(text));
  const again = rounds(() => void parsePage(text, memory));
  const whole = rounds((nth) => void readings.samples(parsePage(text, memory), nth, false));
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  publish(
    'Pages of inference servers',
    `CPU time for one page of ${SERIES} series (${(text.length / 1e6).toFixed(1)} MB, as vLLM writes it), median of ${ROUNDS}. \`trace attach\` and \`trace load\` read a page once a second; each but the first costs what the third row says.

${table(
  ['what', 'CPU'],
  [
    ['the first page of a process, code not compiled yet', ms(first)],
    ['a page of a server that was not seen before', ms(fresh)],
    ['a further page of the same server', ms(again)],
    ['the same, and what it says as readings', ms(whole)],
  ],
)}`,
  );
  expect(again).toBeLessThan(LIMIT_MS);
  expect(fresh).toBeLessThan(LIMIT_MS);
});
