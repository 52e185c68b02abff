import type { LoadRow } from './measure.ts';
import { errorOf, medianOf, TRACE } from './bars.ts';

/** The section that says where `trace load` is behind, out of the same rows as the tables. */

interface Compared {
  readonly what: string;
  /** Less is better. */
  readonly measure: (row: LoadRow) => number | null;
  readonly text: (value: number) => string;
}

const ms = (seconds: number): string => `${(seconds * 1e3).toFixed(3)} ms`;
const absolute =
  (measure: Compared['measure']): Compared['measure'] =>
  (row) => {
    const value = measure(row);
    return value === null ? null : Math.abs(value);
  };

const ACCURACY: readonly Compared[] = (['ttft', 'itl'] as const).flatMap((latency) =>
  (['p50', 'p99'] as const).map((quantile) => ({
    what: `error of ${latency.toUpperCase()} ${quantile}`,
    measure: absolute(errorOf(latency, quantile)),
    text: ms,
  })),
);

const COST: readonly Compared[] = [
  {
    what: 'CPU a token',
    measure: ({ cpuPerToken }) => cpuPerToken,
    text: (value) => `${(value * 1e6).toFixed(1)} µs`,
  },
  {
    what: 'CPU a token with start and end',
    measure: ({ wholeCpuPerToken }) => wholeCpuPerToken,
    text: (value) => `${(value * 1e6).toFixed(1)} µs`,
  },
  {
    what: 'resident memory',
    measure: ({ resident }) => resident,
    text: (value) => `${(value / 1e6).toFixed(0)} MB`,
  },
  {
    what: 'start to first request',
    measure: ({ firstRequest }) => firstRequest,
    text: (value) => `${value.toFixed(2)} s`,
  },
];

/** A tool that is slower loads the server less, and is asked less: its cost a token counts, its errors only where it kept up. */
const KEPT_UP = 0.9;

/** Every figure in which a tool was ahead of `trace load`. */
export function worseList(rows: readonly LoadRow[]): string {
  const lines = [...new Set(rows.map(({ scenario }) => scenario))].flatMap((scenario) => {
    const some = rows.filter((row) => row.scenario === scenario);
    return [...ACCURACY, ...COST].flatMap((compared) => {
      const line = lineOf(some, compared);
      return line === null ? [] : [`- ${scenario}: ${line}`];
    });
  });
  const intro =
    'Every figure of the sections on load in which a tool that offered nine tenths of the load, or more, was ahead of `trace load`, whether or not the difference is beyond the noise. Ours writes a recording, spans and a request log meanwhile; k6 reads no tokens, undici is a bare client.';
  return `${intro}\n\n${lines.length === 0 ? 'None.' : lines.join('\n')}`;
}

function lineOf(rows: readonly LoadRow[], { what, measure, text }: Compared): string | null {
  const of = (tool: string): LoadRow[] => rows.filter((row) => row.tool === tool);
  const tokens = (some: readonly LoadRow[]): number =>
    medianOf(some, ({ tokensPerSecond }) => tokensPerSecond) ?? 0;
  const ours = medianOf(of(TRACE), measure);
  if (ours === null) return null;
  const ahead = [...new Set(rows.map(({ tool }) => tool))]
    .filter((tool) => tool !== TRACE && tokens(of(tool)) >= KEPT_UP * tokens(of(TRACE)))
    .map((tool) => ({ tool, value: medianOf(of(tool), measure) }))
    .filter((one): one is { tool: string; value: number } => one.value !== null)
    .filter(({ value }) => value < ours);
  if (ahead.length === 0) return null;
  const list = ahead.map(({ tool, value }) => `${tool} ${text(value)}`).join(', ');
  return `${what}: trace load ${text(ours)}; ${list}`;
}
