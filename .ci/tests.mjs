// node .ci/tests.mjs RESULT -- COMMAND…: runs a vitest command, then once more, alone and one file at a time, the files in which something
// failed, and a third time those that failed again. A test that passed at no try has failed; one that passed at another is counted as
// passed and named with the first line of its failure, because machines that run this are shared and the tests watch real processes.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** More files than this that fail at once are no matter of the machine. */
const MOST_FILES = 25;
/** Tries of a file, the first included. */
const TRIES = 3;

const [result, , ...command] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'tests-'));

function run(words) {
  const report = join(scratch, 'report.json');
  rmSync(report, { force: true });
  const { status } = spawnSync(
    words[0],
    [...words.slice(1), '--reporter=default', '--reporter=./.ci/reporter.mjs'],
    { stdio: 'inherit', env: { ...process.env, TRACEWRIGHT_REPORT: report } },
  );
  try {
    return { status, ...JSON.parse(readFileSync(report, 'utf8')) };
  } catch {
    return { status, files: {}, lost: [`no report: the command ended with ${status}`] };
  }
}

/** The tests of a file that passed: not one whose namesake failed. */
function passing(file) {
  const bad = new Set((file?.failed ?? []).map(([test]) => test));
  return (file?.passed ?? []).filter((test) => !bad.has(test));
}

/** Of each file with a failure, what failed and why. */
const failing = (report) =>
  new Map(Object.entries(report.files).flatMap(([name, { failed }]) => (failed.length > 0 ? [[name, new Map(failed)]] : [])));

const first = run(command);
/** Of each file, the tests that passed at some try. */
const passed = new Map(Object.entries(first.files).map(([name, file]) => [name, new Set(passing(file))]));
const flaky = [];
let left = failing(first);
for (let attempt = 2; attempt <= TRIES && left.size > 0 && left.size <= MOST_FILES; attempt += 1) {
  const names = [...left.keys()];
  process.stdout.write(`\n=== try ${attempt}: ${names.join(' ')}\n`);
  const again = run(['npx', 'vitest', 'run', '--no-file-parallelism', '--maxWorkers=1', ...names]);
  if (again.lost.length > 0) break;
  const still = failing(again);
  const after = new Map();
  for (const [name, tests] of left) {
    for (const test of passing(again.files[name])) passed.get(name)?.add(test);
    // A file that was asked for and not run did not pass; a test that passed before and fails now has not failed three times.
    const failedAgain = again.files[name] === undefined ? tests : (still.get(name) ?? new Map());
    const stays = new Map([...failedAgain].filter(([test]) => passed.get(name)?.has(test) !== true));
    if (stays.size > 0) after.set(name, stays);
    for (const [test, why] of tests) {
      if (!stays.has(test)) flaky.push(`${name} > ${test}: ${why} (passed at try ${attempt})`);
    }
  }
  left = after;
}
const failed = [
  ...first.lost,
  ...[...left].flatMap(([name, tests]) => [...tests].map(([test, why]) => `${name} > ${test}: ${why}`)),
];
// A command that failed without saying where (an error while it closed) has failed.
if (first.status !== 0 && failed.length === 0 && flaky.length === 0) failed.push(`the command ended with ${first.status}`);
for (const line of flaky) process.stdout.write(`FLAKY ${line}\n`);
for (const line of failed) process.stdout.write(`FAILED ${line}\n`);
writeFileSync(
  result,
  JSON.stringify({ passed: [...passed.values()].reduce((sum, { size }) => sum + size, 0), failed: failed.length, flaky: flaky.length }),
);
rmSync(scratch, { recursive: true, force: true });
process.exitCode = failed.length > 0 ? 1 : 0;
