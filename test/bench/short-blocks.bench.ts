import { it } from 'vitest';
import { wilson } from '../../src/core/statistics.ts';
import { watchTarget } from '../e2e/watch.ts';
import { type TargetName } from '../targets/harness.ts';
import type { Score } from '../truth/score.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';

/* Blocks of some 20 ms in a loop that never rests, at `--lag-threshold 20ms`: 200 samples a second. `TRACEWRIGHT_BENCH_N` for each target. */

const THRESHOLD = 0.02;
const KINDS = ['spin', 'sleep', 'http'];
const DURATIONS = [22, 25, 30, 40];
const N = setting('TRACEWRIGHT_BENCH_N', 200);
const REPS = Math.ceil(N / KINDS.length / DURATIONS.length);
const STEP_S = 0.2;
const TARGETS: readonly TargetName[] = ['asyncio', 'fastapi-asyncio', 'fastapi-uvloop'];

interface Row {
  readonly name: TargetName;
  readonly score: Score;
  readonly ownCpu: number;
}

async function measure(name: TargetName): Promise<Row> {
  const { score, report } = await watchTarget(name, {
    kinds: KINDS,
    durations: DURATIONS,
    reps: REPS,
    startS: 3,
    watchS: Math.ceil(REPS * KINDS.length * DURATIONS.length * STEP_S) + 5,
    saturated: true,
    seed: 3,
    threshold: THRESHOLD,
  });
  return { name, score, ownCpu: report.overhead?.own_cpu_ratio ?? Number.NaN };
}

const bounded = (hits: number, n: number): string => {
  const { low, high } = wilson(hits, n);
  return `${hits}/${n} (${percent(low)}–${percent(high)})`;
};

function line({ name, score, ownCpu }: Row): string[] {
  const all = (key: 'n' | 'found' | 'named'): number =>
    score.rows.reduce((sum, row) => sum + row[key], 0);
  return [
    name,
    bounded(all('found'), all('n')),
    bounded(all('named'), all('found')),
    ...DURATIONS.map((ms) => {
      const rows = score.rows.filter((row) => row.ms === ms);
      const sum = (key: 'n' | 'found'): number => rows.reduce((total, row) => total + row[key], 0);
      return `${sum('found')}/${sum('n')}`;
    }),
    String(score.falseSpans.length),
    `${percent(score.gapShare, 2)} (${score.inGap})`,
    String(score.starvedBlocks),
    percent(ownCpu),
  ];
}

it('finds short blocks of a saturated loop', async () => {
  const rows = await rowsOf(`short-blocks-${N}`, TARGETS.length, (index) =>
    measure(TARGETS[index] ?? 'asyncio'),
  );
  const head = [
    'target',
    'found (95 % Wilson)',
    'right function, of those',
    ...DURATIONS.map((ms) => `${ms} ms`),
    'false',
    'gaps (blocks in them)',
    'starved, apart',
    'own CPU',
  ];
  publish(
    'Short blocks of a saturated loop',
    `${KINDS.join(', ')} of nominally ${DURATIONS.join(', ')} ms at ${'`'}--lag-threshold 20ms${'`'} (a sample every 5 ms, every 2 ms while something lasts), in a loop that runs callbacks of 0.3 ms without a rest, with ${'`'}/${'`'} requested 50 times a second. "Found" is a span that covers at least half of the block.

${table(head, rows.map(line))}`,
  );
});
