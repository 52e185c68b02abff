import type { Attributes, Metric, Observation, RunStart } from '../../src/core/types.ts';

/** What the tests of growth simulate a run from. */
export const T0 = 1_700_000_000;
export const MIB = 2 ** 20;
export const START: RunStart = {
  schemaVersion: 1,
  toolVersion: '0',
  command: 'attach',
  startedAt: T0,
  traceId: 'a'.repeat(32),
  targets: [
    {
      pid: 42,
      parent: 1,
      startTicks: 7,
      runtime: 'python',
      runtimeVersion: '3.11',
      title: 'python app.py',
      role: null,
    },
  ],
  collectors: [],
  settings: {},
};

/** One reading a second. */
export const readings = (
  metric: Metric,
  count: number,
  value: (second: number) => number,
  attributes: Attributes = {},
): Observation[] =>
  Array.from({ length: count }, (_, second) => ({
    kind: 'sample',
    at: T0 + second,
    metric: metric.name,
    value: value(second),
    attributes,
  }));
