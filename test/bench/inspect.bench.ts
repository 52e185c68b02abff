import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { freePort, startInspected } from '../collectors/node/inspected.ts';
import { type Kill, KILL_STAGES, killAt } from '../collectors/node/kills.ts';
import { ATTR, SPAN } from '../../src/core/semconv.ts';
import { wilson } from '../../src/core/statistics.ts';
import { watchTarget } from '../e2e/watch.ts';
import { nodes } from '../environments.ts';
import { KINDS } from '../targets/harness.ts';
import type { Score, Tally } from '../truth/score.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * `trace attach --inspect`: `kill -9` at every stage of it, with and without its guardian, and whether the function it names for a block is
 * the one that blocked. TRACEWRIGHT_NODES (`22:24`) adds release lines to the second.
 */

const KILLS = setting('TRACEWRIGHT_BENCH_KILLS', 50);
const N = setting('TRACEWRIGHT_BENCH_N', 200);
const DURATIONS = [60, 80, 120, 200];
const REPS = Math.ceil(N / (DURATIONS.length * KINDS.length));
/** As in detection.bench.ts. */
const STEP_S = 0.3;

async function kills(
  name: string,
  guardian: boolean,
): Promise<readonly (Kill & { asked: string })[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-kills-'));
  const target = await startInspected();
  try {
    return await rowsOf(name, KILLS, async (index) => {
      const asked = KILL_STAGES[index % KILL_STAGES.length] ?? 'profiling';
      return { ...(await killAt(target, asked, { folder, guardian })), asked };
    });
  } finally {
    await target.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function killTable(rows: readonly Kill[]): string {
  const stages = [...KILL_STAGES, 'none' as const];
  const lines = stages.flatMap((stage) => {
    const group = rows.filter((row) => row.stage === stage);
    const stayed = group.filter((row) => row.stayed).length;
    const cleaned = group.filter((row) => row.cleaned).length;
    const label = stage === 'none' ? 'over already' : stage;
    return group.length === 0 ? [] : [[label, group.length, stayed, cleaned].map(String)];
  });
  const sum = (is: (row: Kill) => boolean): string => String(rows.filter(is).length);
  return table(
    ['stage when killed', 'kills', 'something left after 2 s', 'as before after `trace cleanup`'],
    [...lines, ['all', String(rows.length), sum((row) => row.stayed), sum((row) => row.cleaned)]],
  );
}

it('leaves nothing when it is killed', async () => {
  const alone = await kills(`inspect-kill-${KILLS}`, false);
  const both = await kills(`inspect-kill-both-${KILLS}`, true);
  const left = [...alone, ...both].filter(({ what }) => what !== '');
  publish(
    'Inspector: killed with kill -9',
    `\`trace attach --inspect\` on Node ${process.versions.node}, killed up to 40 ms after its journal came to a stage (each in turn). Looked at: the sockets the target listens on, V8's profiler thread, and from inside \`globalThis\`, prototypes, event listeners, active resources and errors.

trace alone:

${killTable(alone)}

trace and its guardian, in this order within a millisecond; the lease is all there is then:

${killTable(both)}
${left.length === 0 ? '' : `\nWhat was left: ${[...new Set(left.map(({ what }) => what.replaceAll(/\d{4,5}/g, 'N').split(':')[0]))].join(', ')}.`}`,
  );
});

interface Row {
  readonly version: string;
  readonly saturated: boolean;
  readonly score: Score;
  readonly paused: number;
  /** Functions that blocks were put down to and that are none of those that block, for whoever wants to know why. */
  readonly others: readonly string[];
}

const rate = (hits: number, n: number): string => {
  const { low, high } = wilson(hits, n);
  return `${hits}/${n} (${percent(low)}–${percent(high)})`;
};

it('names the function that blocked', async () => {
  const own = { path: process.execPath, version: process.versions.node };
  const others = (await nodes()).filter(({ version }) => version !== own.version);
  const modes = [own, ...others].flatMap((node) =>
    [false, true].map((saturated) => ({ ...node, saturated })),
  );
  const rows: Row[] = [];
  for (const { path, version, saturated } of modes) {
    const [row] = await rowsOf(
      `inspect-truth-${version}-${String(saturated)}-${N}`,
      1,
      async () => {
        const { score, report, view } = await watchTarget('node-http', {
          kinds: KINDS,
          durations: DURATIONS,
          reps: REPS,
          startS: 3,
          watchS: Math.ceil(REPS * KINDS.length * DURATIONS.length * STEP_S) + 5,
          saturated,
          seed: saturated ? 4 : 3,
          runtime: path,
          runtimeFlags: [`--inspect-port=${await freePort()}`],
          flags: ['--inspect'],
        });
        const others = view
          .spans(SPAN.blocked)
          .filter(({ attributes }) => attributes[ATTR.starved] !== true)
          .map(({ attributes }) => String(attributes[ATTR.codeFunctionName]))
          .filter((name) => !name.startsWith('blocking'));
        const paused = report.overhead?.target_paused_s ?? Number.NaN;
        return { version, saturated, score, paused, others };
      },
    );
    if (row !== undefined) rows.push(row);
  }
  const sum = (of: (tally: Tally) => number): number =>
    rows.reduce((total, { score }) => total + of(score.atLeast60), 0);
  const instead = rows.flatMap(({ others }) => others);
  const wrong = [...new Set(instead)]
    .map((name) => `\`${name}\` ${instead.filter((one) => one === name).length} times`)
    .join(', ');
  const byKind = KINDS.map((kind) => {
    const tallies = rows.flatMap(({ score }) => score.rows.filter((row) => row.kind === kind));
    const total = (of: (tally: Tally) => number): number =>
      tallies.reduce((all, tally) => all + of(tally), 0);
    return [
      kind,
      rate(
        total((t) => t.named),
        total((t) => t.found),
      ),
    ];
  });
  publish(
    'Inspector: the function that blocked',
    `Blocks of ${KINDS.join(', ')} of ${DURATIONS.join(', ')} ms in an HTTP server, ${REPS} times each, with \`/\` requested 50 times a second; from the target's own log. CPU profile at 1 ms, opened by \`--inspect\`.

${table(
  ['target', '≥ 60 ms found', 'right function of the found', 'false', 'target paused'],
  rows.map(({ version, saturated, score, paused }) => [
    `Node ${version}, ${saturated ? 'saturated' : 'idle'}`,
    rate(score.atLeast60.found, score.atLeast60.n),
    rate(score.atLeast60.named, score.atLeast60.found),
    String(score.falseSpans.length),
    `${(paused * 1e3).toFixed(0)} ms`,
  ]),
)}

Together: right function ${rate(
      sum((t) => t.named),
      sum((t) => t.found),
    )}. By what blocked, of all lengths:

${table(['kind', 'right function'], byKind)}

Named instead: ${wrong === '' ? 'nothing' : wrong}.`,
  );
});
