import { it } from 'vitest';
import { watchTarget } from '../e2e/watch.ts';
import { KINDS, type TargetName, TARGETS } from '../targets/harness.ts';
import type { Score, Tally } from '../truth/score.ts';
import { milliseconds, percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * What is found of the blocks that real services really make. `TRACEWRIGHT_BENCH_N` blocks of at least 50 ms for each target and mode.
 */

const DURATIONS = [20, 30, 50, 60, 80, 120, 200];
const REPORTABLE = DURATIONS.filter((ms) => ms >= 50).length * KINDS.length;
const N = setting('TRACEWRIGHT_BENCH_N', 200);
/** A sixth more than asked for: a block that waited for a core, or that lies in a gap, is counted apart. */
const REPS = Math.ceil((N * 7) / 6 / REPORTABLE);
/** Mean length of a step: the block, the spacing, the request around it; with a quarter to spare. */
const STEP_S =
  (DURATIONS.reduce((a, b) => a + b, 0) / DURATIONS.length / 1e3 + 0.06 + 0.03 + 0.02) * 1.25;
const WATCH_S = Math.ceil(REPS * KINDS.length * DURATIONS.length * STEP_S) + 5;

interface Row {
  readonly name: TargetName;
  readonly saturated: boolean;
  readonly score: Score;
  readonly ownCpu: number;
}

async function measure(name: TargetName, saturated: boolean): Promise<Row> {
  const { score, report } = await watchTarget(name, {
    kinds: KINDS,
    durations: DURATIONS,
    reps: REPS,
    startS: 3,
    watchS: WATCH_S,
    saturated,
    seed: saturated ? 2 : 1,
  });
  return { name, saturated, score, ownCpu: report.overhead?.own_cpu_ratio ?? Number.NaN };
}

const share = ({ found, n, foundBounds }: Tally): string =>
  `${found}/${n} (${percent(foundBounds.low)}–${percent(foundBounds.high)})`;
const named = ({ named: hits, found, namedBounds }: Tally): string =>
  hits === 0 ? '–' : `${hits}/${found} (${percent(namedBounds.low)}–${percent(namedBounds.high)})`;

function line({ name, saturated, score, ownCpu }: Row): string[] {
  return [
    `${name}, ${saturated ? 'saturated' : 'idle'}`,
    share(score.atLeast60),
    share(score.from50to60),
    `${score.below50.found}/${score.below50.n}`,
    named(score.atLeast60),
    `${milliseconds(score.atLeast60.error.p50)}, ${milliseconds(score.atLeast60.error.p90)}`,
    String(score.falseSpans.length),
    `${percent(score.gapShare, 2)} (${score.inGap})`,
    String(score.starvedBlocks),
    percent(ownCpu),
  ];
}

it('finds the blocks', async () => {
  const idle = await rowsOf(`detection-idle-${N}`, 1, () =>
    Promise.all(TARGETS.map((name) => measure(name, false))),
  );
  const saturated = await rowsOf(`detection-saturated-${N}`, TARGETS.length, (index) =>
    measure(TARGETS[index] ?? 'asyncio', true),
  );
  const all = [...idle.flat(), ...saturated];
  const byKind = all.flatMap(({ name, saturated: full, score }) =>
    score.rows
      .filter(({ ms }) => ms >= 50)
      .map(({ kind, ms, ...tally }) => [
        `${name}, ${full ? 'saturated' : 'idle'}`,
        kind,
        String(ms),
        `${tally.found}/${tally.n}`,
        `${tally.named}/${tally.found}`,
        milliseconds(tally.error.p50),
      ]),
  );
  const head = [
    'target',
    '≥ 60 ms found (95 % Wilson)',
    '50–60 ms found',
    '< 50 ms reported',
    'right function',
    'duration error: median, p90 of size',
    'false',
    'gaps (blocks in them)',
    'starved, apart',
    'own CPU',
  ];
  publish(
    'Detection of planted blocks',
    `Blocks by their real length from the target's own log: ${KINDS.join(', ')} of ${DURATIONS.join(', ')} ms, ${REPS} times each; the idle targets all at the same time, with ${'`'}/${'`'} requested 50 times a second. "Found" is a span that covers at least half of the block.

${table(head, all.map(line))}

<details><summary>By kind and nominal length</summary>

${table(['target', 'kind', 'ms', 'found', 'right function', 'error, median'], byKind)}

</details>`,
  );
});
