import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { it } from 'vitest';
import { type Running, startHog, startReady } from '../targets/harness.ts';
import { commit, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * `npm run soak -- tests`: whether `npm test` passes wherever it runs. 5 runs on the machine as it is, 20 beside two processes that burn CPU and
 * one that writes to the disk, and 30 of the files that failed in any of these and of the ten that start the most processes. It goes
 * on where it was broken off, as long as nothing that a test sees has changed.
 */

const ROOT = join(import.meta.dirname, '..', '..');
const QUIET = setting('TRACEWRIGHT_SOAK_QUIET', 5);
const LOADED = setting('TRACEWRIGHT_SOAK_LOADED', 20);
const REPEATED = setting('TRACEWRIGHT_SOAK_REPEATED', 30);
/** Beside what failed: those that start the most processes. */
const MOST_STARTS = 10;
/** A run that takes longer hangs. */
const LIMIT_S = 1_200;
/** One file at a time. */
const ONE_BY_ONE_LIMIT_S = 3_600;
const BURNERS = 2;
const PROJECTS = ['unit', 'programs', 'timed'].flatMap((name) => ['--project', name]);

interface Run {
  readonly minutes: number;
  readonly passed: number;
  /** `FILE > TEST: first line of why` */
  readonly failed: readonly string[];
}

/** What `.ci/reporter.mjs` writes. */
interface Report {
  readonly files: Readonly<
    Record<string, { readonly passed: string[]; readonly failed: [string, string][] }>
  >;
  readonly lost: readonly string[];
}

/** The tree of the commit without the pages that a soak itself writes: what a test's outcome depends on. */
function state(): string {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  if (git('status', '--porcelain') !== '')
    throw new Error('commit first: what is run is the commit');
  const tree = git('ls-tree', '-r', 'HEAD').replaceAll(/^.*\tdocs\/data\/.*\n/gm, '');
  return createHash('sha256').update(tree).digest('hex').slice(0, 12);
}

interface RunOptions {
  /** Further words of the command: files, reporters. */
  readonly words?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly limitS?: number;
}

/** Runs the tests once, or these files of them. */
async function runTests({ words = [], env = {}, limitS = LIMIT_S }: RunOptions = {}): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-soak-'));
  const path = join(folder, 'report.json');
  const reporters = ['--reporter=dot', '--reporter=./.ci/reporter.mjs'];
  const began = performance.now();
  const child = spawn('npx', ['vitest', 'run', ...PROJECTS, ...reporters, ...words], {
    cwd: ROOT,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, ...env, TRACEWRIGHT_REPORT: path },
  });
  const kill = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), limitS * 1e3);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(kill);
  const minutes = (performance.now() - began) / 60e3;
  try {
    const { files: all, lost } = JSON.parse(readFileSync(path, 'utf8')) as Report;
    const failed = Object.entries(all).flatMap(([file, one]) =>
      one.failed.map(([test, why]) => `${file} > ${test}: ${why}`),
    );
    const passed = Object.values(all).reduce((sum, one) => sum + one.passed.length, 0);
    const failures = [...failed, ...lost];
    // An error while it closed, or a hang after its end, belongs to no test.
    const isSilent = failures.length === 0 && (code !== 0 || passed === 0);
    return {
      minutes,
      passed,
      failed: isSilent ? [`the run ended with ${String(code)}`] : failures,
    };
  } catch {
    return { minutes, passed: 0, failed: [`the run ended with ${String(code)} and no report`] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same beside the load. */
async function underLoad(work: () => Promise<Run>): Promise<Run> {
  const writer = join(ROOT, 'test', 'targets', 'disk-writer.js');
  const file = join(tmpdir(), `tracewright-soak-${process.pid}`);
  const load: Running[] = await Promise.all([
    ...Array.from({ length: BURNERS }, () => startHog(LIMIT_S)),
    startReady(process.execPath, [writer, file, String(LIMIT_S)]),
  ]);
  try {
    return await work();
  } finally {
    await Promise.all(load.map((one) => one.stop()));
    rmSync(file, { force: true });
  }
}

/** Test files with how many processes and threads were started on the machine while each ran, one at a time; the most first. */
async function startsByFile(): Promise<readonly (readonly [file: string, starts: number])[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-starts-'));
  const path = join(folder, 'starts.json');
  try {
    await runTests({
      words: ['--reporter=./.ci/starts.mjs'],
      env: { TRACEWRIGHT_STARTS: path, TRACEWRIGHT_AT_ONCE: '1' },
      limitS: ONE_BY_ONE_LIMIT_S,
    });
    const starts = JSON.parse(readFileSync(path, 'utf8')) as Record<string, number>;
    return Object.entries(starts)
      .map(([file, n]) => [relative(ROOT, file), n] as const)
      .toSorted((a, b) => b[1] - a[1]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const fileOf = (failure: string): string | null => /^(test\/\S+) > /.exec(failure)?.[1] ?? null;
const said = (run: Run): string => (run.failed.length === 0 ? '0' : run.failed.join('<br>'));

function tableOf(runs: readonly Run[]): string {
  return table(
    ['run', 'minutes', 'passed', 'failed'],
    runs.map((run, i) => [String(i + 1), run.minutes.toFixed(1), String(run.passed), said(run)]),
  );
}

const failuresIn = (runs: readonly Run[]): number =>
  runs.reduce((sum, { failed }) => sum + failed.length, 0);

it('npm test', { timeout: 24 * 3600 * 1e3 }, async () => {
  const at = state();
  const quiet = await rowsOf('tests-quiet', QUIET, () => runTests(), at);
  const loaded = await rowsOf('tests-loaded', LOADED, () => underLoad(() => runTests()), at);
  const [starts = []] = await rowsOf('tests-starts', 1, startsByFile, at);
  const most = starts.slice(0, MOST_STARTS);
  const failing = [...quiet, ...loaded].flatMap(({ failed }) =>
    failed.flatMap((one) => fileOf(one) ?? []),
  );
  const files = [...new Set([...failing, ...most.map(([file]) => file)])];
  const repeated = await rowsOf(
    'tests-repeated',
    REPEATED,
    () => underLoad(() => runTests({ words: files })),
    at,
  );
  publish(
    'npm test, wherever it runs',
    `Commit ${commit()}. ${quiet.length} runs on the machine as it is, with ${failuresIn(quiet)} failures; ${loaded.length} beside ${BURNERS} processes that burn CPU and one that writes to the disk, with ${failuresIn(loaded)}; ${repeated.length} of ${files.length} files beside the same load, with ${failuresIn(repeated)}.

As it is:

${tableOf(quiet)}

Beside the load:

${tableOf(loaded)}

Files that failed in any of these, and the ten that start the most processes and threads (${most.map(([file, n]) => `${file}: ${n}`).join(', ')}), beside the load:

${tableOf(repeated)}`,
    'data/tests.md',
  );
});
