import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'vitest';
import { commit, newestRow, publish, rowsOf, setting, table } from './measurements.ts';
import { publishedCases, type PublishedCase } from './published/case.ts';
import { type PublishedRow, type Rate, takeThrough } from './published/stages.ts';

/*
 * The published bugs of test/published: generated, run against the fixed release, explored where trials alone show nothing, shrunk, and run
 * again. An hour on a quiet machine; a case that was done is not done again as long as it, repro/ and its verbs are the same. Cases that are not
 * asked for, or not come to yet, are published as they were measured last, each with its commit.
 */

const EFFORT = {
  runs: setting('TRACEWRIGHT_BENCH_RUNS', 10),
  schedules: setting('TRACEWRIGHT_BENCH_SCHEDULES', 200),
  shrinkTrials: setting('TRACEWRIGHT_BENCH_SHRINK_TRIALS', 300),
  shrinkTime: `${setting('TRACEWRIGHT_BENCH_SHRINK_SECONDS', 240)}s`,
} as const;
/** Cases by name, separated by commas; all without it. */
const NAMES = (process.env['TRACEWRIGHT_BENCH_CASES'] ?? '').split(',').filter(Boolean);

/** What the figures depend on. */
function stateOf({ folder }: PublishedCase): string {
  const hash = createHash('sha256').update(JSON.stringify(EFFORT));
  for (const name of readdirSync(folder).toSorted()) hash.update(readFileSync(join(folder, name)));
  const tree = (path: string): string =>
    execFileSync('git', ['rev-parse', `HEAD:${path}`], { cwd: import.meta.dirname }).toString();
  return hash.update(tree('repro')).update(tree('src/commands/repro')).digest('hex').slice(0, 12);
}

/** A row, and where it was measured. */
interface DatedRow extends PublishedRow {
  readonly commit: string;
  /** `2026-11-23` */
  readonly on: string;
  readonly effort: typeof EFFORT;
}

it('published bugs', async () => {
  for (const one of publishedCases(NAMES)) {
    const measure = async (): Promise<DatedRow> => ({
      ...(await takeThrough(one, EFFORT)),
      commit: commit(),
      on: new Date().toISOString().slice(0, 10),
      effort: EFFORT,
    });
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    await rowsOf(`published-${one.name}`, 1, measure, stateOf(one));
    // After each: broken off, the page has those that were done.
    const known = publishedCases([]).flatMap(({ name }) => {
      const row = newestRow<DatedRow>(`published-${name}`);
      return row === null || row.commit === undefined ? [] : [row];
    });
    publish('Published bugs, reproduced', pageOf(known));
  }
});

const rate = ({ hits, trials }: Rate): string => `${hits} / ${trials}`;

function pageOf(rows: readonly DatedRow[]): string {
  const cells = rows.map((row) => {
    const { explored, before, after } = row;
    const size = ({ attempts, concurrency, lists }: typeof before): string =>
      `${attempts} × ${concurrency} × ${lists}`;
    return [
      `[${row.releases}](${row.issue})`,
      row.class,
      `\`${row.oracle.replace(/:.*/, '')}\``,
      rate(row.buggy),
      rate(row.fixed),
      explored === null
        ? '–'
        : `${rate(explored.buggy)} (fixed: ${rate(explored.fixed)}, and ${rate(explored.fixedSchedules)} schedules), found by schedule ${explored.tried}`,
      explored === null ? size(before) : `${explored.waits} waits`,
      explored !== null ? `${explored.left} waits` : after === null ? '–' : size(after),
      after === null ? '–' : `${rate(after.buggy)}, ${rate(after.fixed)}`,
      String(row.trials),
      row.seconds.toFixed(0),
      row.commit,
      row.problem?.replaceAll('|', '/') ?? '',
    ];
  });
  const isShown = (row: PublishedRow): boolean => {
    const last = row.explored ?? row.after;
    return last !== null && last.buggy.hits / last.buggy.trials >= 0.5 && last.fixed.hits === 0;
  };
  const runs = [...new Set(rows.map(({ effort }) => effort.runs))].join(' or ');
  const schedules = [...new Set(rows.map(({ effort }) => effort.schedules))].join(' or ');
  const shown = rows.filter(isShown).length;
  const all = publishedCases([]).length;
  return `${rows.length} of ${all} cases were measured, on commits that stand in their rows, the machine busy with other work. ${shown} of them fail in at least half of the trials on the release that has them and in
none on the fixed one, as the smallest reproduction does. ${runs} trials of each release, in turn, in environments that \`--package\` made; where fewer than half of them failed, up to ${schedules} schedules, and the
schedule that failed, shrunk, is replayed on both. Sizes: attempts × at once × argument lists, or waits of a schedule. Trials: of all stages, the fixed release's too; seconds as they were beside
other work, installing not left out. The calls are in test/published.

${table(['Releases', 'Class', 'Oracle', 'Natural', 'Fixed', 'After explore', 'Size before', 'After shrink', 'Shrunk: buggy, fixed', 'Trials', 'Seconds', 'Commit', 'Problem'], cells)}`;
}
