import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { it } from 'vitest';
import { type Running, startHog, startReady } from '../targets/harness.ts';
import { commit, keptRowsOf, publish, setting, table } from './measurements.ts';

/*
 * `npm run soak -- tests`: whether `npm test` passes wherever it runs. 5 runs on the machine as it is, 20 beside two processes that burn CPU and
 * one that writes to the disk, and 30 of the files that failed in any of these and of the ten that start the most processes. It goes
 * on where it was broken off, on another machine too, as long as nothing that a test sees has changed.
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
  readonly at: string;
  /** What it ran on. */
  readonly cpu: string;
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
  if (git('status', '--porcelain', '--', '.', ':!docs/data') !== '')
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
  const seen = {
    at: new Date().toISOString().slice(0, 16),
    cpu: `${cpus().length} × ${cpus()[0]?.model.trim() ?? '?'}`,
    minutes: (performance.now() - began) / 60e3,
  };
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
      ...seen,
      passed,
      failed: isSilent ? [`the run ended with ${String(code)}`] : failures,
    };
  } catch {
    return { ...seen, passed: 0, failed: [`the run ended with ${String(code)} and no report`] };
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

/** The test files during which most processes and threads were started, one file at a time. */
async function mostStarts(): Promise<readonly (readonly [file: string, starts: number])[]> {
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
      .toSorted((a, b) => b[1] - a[1])
      .slice(0, MOST_STARTS);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const fileOf = (failure: string): string | null => /^(test\/\S+) > /.exec(failure)?.[1] ?? null;
const said = (run: Run): string => (run.failed.length === 0 ? '0' : run.failed.join('<br>'));

function tableOf(runs: readonly Run[]): string {
  return table(
    ['run', 'at', 'on', 'minutes', 'passed', 'failed'],
    runs.map((run, i) => [
      String(i + 1),
      run.at,
      run.cpu,
      run.minutes.toFixed(1),
      String(run.passed),
      said(run),
    ]),
  );
}

const failuresIn = (runs: readonly Run[]): number =>
  runs.reduce((sum, { failed }) => sum + failed.length, 0);

it('npm test', { timeout: 24 * 3600 * 1e3 }, async () => {
  const tree = state();
  const rows = <T>(name: string, n: number, measure: () => Promise<T>): Promise<T[]> =>
    keptRowsOf('docs/data/tests.jsonl', { name, n, state: tree }, measure);
  // First what fails most easily.
  const loaded = await rows('loaded', LOADED, () => underLoad(() => runTests()));
  const quiet = await rows('quiet', QUIET, () => runTests());
  const [most = []] = await rows('starts', 1, mostStarts);
  const failing = [...quiet, ...loaded].flatMap(({ failed }) =>
    failed.flatMap((one) => fileOf(one) ?? []),
  );
  const files = [...new Set([...failing, ...most.map(([file]) => file)])];
  const repeated = await rows('repeated', REPEATED, () =>
    underLoad(() => runTests({ words: files })),
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
