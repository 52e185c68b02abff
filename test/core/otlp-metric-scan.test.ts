import { describe, expect, it } from 'vitest';
import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { type OtlpLineDecoder, otlpLineDecoder } from '../../src/core/otlp-decode.ts';
import { encodeContext, encodeMetrics } from '../../src/core/otlp-encode.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import type { Histogram, Sample } from '../../src/core/types.ts';
import { START, random } from '../recording/observations.ts';

/** What one decoder tells, in an order that does not depend on the way. */
function listener(): { readonly decoder: OtlpLineDecoder; readonly told: () => string[] } {
  const told: string[] = [];
  const tell = (what: unknown): void => {
    told.push(JSON.stringify(what, (_, value: unknown) => (Object.is(value, -0) ? '-0' : value)));
  };
  const decoder = otlpLineDecoder({
    observation: tell,
    metric: () => {},
    runStart: tell,
    runEnd: tell,
    finding: tell,
    unreadable: tell,
  });
  return { decoder, told: () => told.toSorted() };
}

const next = random(11);
const NAMES = ['run', 'größe ü', 'a"b\\c', '],"timeUnixNano":"1', '🙂'];

function sample(): Sample {
  const metrics = [
    METRIC.cpuTime,
    METRIC.memoryUsage,
    METRIC.cpuUtilization,
    { name: 'own "metric"' },
  ];
  const values = [next(), -next() * 1e9, Math.floor(next() * 1e12), 0, -0, 1e-300, 2 ** 60];
  return {
    kind: 'sample',
    at: 1e9 + next() * 2e9,
    metric: metrics[Math.floor(next() * metrics.length)]?.name ?? '',
    value: values[Math.floor(next() * values.length)] ?? 0,
    attributes: {
      [ATTR.pid]: Math.floor(next() * 3),
      'thread.name': NAMES[Math.floor(next() * NAMES.length)] ?? '',
    },
  };
}

function histogram(): Histogram {
  const delay = new ExponentialHistogram();
  for (let i = 0; i < 20; i++) delay.record(next());
  const buckets = delay.drain();
  return { kind: 'histogram', from: 1.6e9, to: 1.6e9 + 1, metric: METRIC.loopDelay.name, buckets };
}

const lineOf = (points: readonly (Sample | Histogram)[]): string =>
  JSON.stringify(encodeMetrics(points, encodeContext(START)));

const LINES = Array.from({ length: 60 }, (_, i) =>
  lineOf([...Array.from({ length: 1 + (i % 40) }, sample), ...(i % 3 === 0 ? [histogram()] : [])]),
);

describe('a line of metrics as our writer packs it', () => {
  it('is read without parsing it, and says the same', () => {
    const [quick, slow] = [listener(), listener()];
    for (const line of LINES) {
      expect(quick.decoder.line(Buffer.from(line))).toBe(true);
      slow.decoder.payload(JSON.parse(line));
    }
    expect(slow.told().length).toBeGreaterThan(1000);
    expect(quick.told()).toEqual(slow.told());
  });

  it.each([
    ['numbers that are not finite', lineOf([{ ...sample(), value: Number.NaN }])],
    ['logs', '{"resourceLogs":[]}'],
    ['no text', ''],
    ['no points', '{"resourceMetrics":[]}'],
    [
      'a point without attributes',
      LINES[0]?.replace(/"attributes":\[[^\]]*\],"time/, '"time') ?? '',
    ],
    ['another order', LINES[0]?.replace('[{"attributes":', '[{"flags":0,"attributes":') ?? ''],
    ['two resources', LINES[0]?.replace(/\]\}$/, ',{"resource":{},"scopeMetrics":[]}]}') ?? ''],
    ['a cut line', LINES[0]?.slice(0, -3) ?? ''],
    ['white space', LINES[0]?.replaceAll(':', ': ') ?? ''],
  ])('is left to the long way with %s', (_, line) => {
    const { decoder, told } = listener();
    expect(decoder.line(Buffer.from(line))).toBe(false);
    expect(told()).toEqual([]);
  });

  it('says what the long way says, or nothing, when any of its bytes is another', () => {
    let taken = 0;
    const between = '"{}[],:0-9.eE\\ aé';
    for (let i = 0; i < 1000; i++) {
      const line = LINES[i % 7] ?? '';
      const at = Math.floor(next() * line.length);
      const put = between.charAt(Math.floor(next() * between.length));
      const broken = line.slice(0, at) + put + line.slice(at + Math.floor(next() * 3));
      const [quick, slow] = [listener(), listener()];
      // It remembers the line as it was.
      quick.decoder.line(Buffer.from(LINES[0] ?? ''));
      slow.decoder.payload(JSON.parse(LINES[0] ?? ''));
      if (!quick.decoder.line(Buffer.from(broken))) continue;
      taken++;
      slow.decoder.payload(JSON.parse(Buffer.from(broken).toString('utf8')));
      expect(quick.told()).toEqual(slow.told());
    }
    expect(taken).toBeGreaterThan(50);
  });

  it('is another program’s when its scope says so: its process tells its series apart', () => {
    const line = LINES[0]?.replaceAll('"tracewright"', '"other"') ?? '';
    const [quick, slow] = [listener(), listener()];
    expect(quick.decoder.line(Buffer.from(line))).toBe(true);
    slow.decoder.payload(JSON.parse(line));
    expect(quick.told()).toEqual(slow.told());
    expect(quick.told()[0]).toContain('service.name');
  });
});
