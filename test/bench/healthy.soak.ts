import { it } from 'vitest';
import { watchTarget } from '../e2e/watch.ts';
import { KINDS, startHog, type TargetName, TARGETS } from '../targets/harness.ts';
import type { Score } from '../truth/score.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * Minutes of healthy service, with one real block of 60 ms a minute: how often trace cries wolf, and whether it still sees the wolf.
 * `TRACEWRIGHT_SOAK_S` seconds for each mode; the saturated targets go one by one.
 */

const SOAK_S = setting('TRACEWRIGHT_SOAK_S', 300);
const PLANT_S = Math.min(60, SOAK_S / 3);

interface Row {
  readonly name: TargetName;
  readonly mode: string;
  readonly score: Score;
  /** Findings above `note`: of the functions that block as planted, and all others. */
  readonly planted: number;
  readonly others: readonly string[];
}

/** What is planted, in turn (test/targets: `blocking_sleep`, `blockingSpin`). */
const PLANTED = /^blocking_?(?:sleep|spin)$/i;

async function soak(name: TargetName, mode: string): Promise<Row> {
  const { score, report } = await watchTarget(name, {
    kinds: KINDS,
    durations: [20, 60, 120],
    reps: SOAK_S,
    startS: 0.5,
    healthy: true,
    saturated: mode === 'saturated',
    plantS: PLANT_S,
    watchS: SOAK_S,
  });
  const verdicts = report.findings.filter(({ severity }) => severity !== 'note');
  const isPlanted = ({ kind, where }: (typeof verdicts)[number]): boolean =>
    kind === 'loop-blocked' && PLANTED.test(where[0]?.function ?? '');
  return {
    name,
    mode,
    score,
    planted: verdicts.filter(isPlanted).length,
    others: verdicts
      .filter((finding) => !isPlanted(finding))
      .map(({ code, summary }) => `${code}: ${summary}`),
  };
}

async function crowded(): Promise<Row[]> {
  const hogs = await Promise.all([startHog(SOAK_S + 30), startHog(SOAK_S + 30)]);
  try {
    return await Promise.all(TARGETS.map((name) => soak(name, 'two processes eat the CPU')));
  } finally {
    await Promise.all(hogs.map((hog) => hog.stop()));
  }
}

it('stays silent', async () => {
  const idle = await rowsOf(`soak-idle-${SOAK_S}`, 1, () =>
    Promise.all(TARGETS.map((name) => soak(name, 'idle'))),
  );
  const hogged = await rowsOf(`soak-hogged-${SOAK_S}`, 1, crowded);
  const saturated = await rowsOf(`soak-saturated-${SOAK_S}`, TARGETS.length, (index) =>
    soak(TARGETS[index] ?? 'asyncio', 'saturated'),
  );
  const lines = [...idle.flat(), ...hogged.flat(), ...saturated].map(
    ({ name, mode, score, planted, others }) => [
      `${name}, ${mode}`,
      `${score.observed.toFixed(0)} s`,
      String(score.falseSpans.length),
      `${score.atLeast60.found}/${score.atLeast60.n}`,
      `${score.inGap} in a gap, ${score.starvedBlocks} starved`,
      String(score.starvedSpans),
      percent(score.gapShare, 2),
      String(planted),
      others.length === 0 ? '0' : others.join('; '),
    ],
  );
  publish(
    'Healthy for minutes',
    `Requests that await, 50 more a second to \`/\`, and one real block of 60 ms every ${PLANT_S.toFixed(0)} s: one that sleeps and one that computes in turn, each a function of its own, so two findings are theirs.

${table(['target', 'observed', 'false spans', 'planted blocks found', 'planted, apart', 'spans marked starved', 'gaps', 'findings above note on the planted blocks', 'other findings above note'], lines)}`,
  );
});
