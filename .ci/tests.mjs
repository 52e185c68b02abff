// node .ci/tests.mjs RESULT -- COMMAND…: runs a vitest command, then once more, alone and one file at a time, the files in which something
// failed, and a third time those that failed again. A test that has failed three times has failed; one that passed later is counted as
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

const failing = (report) => Object.keys(report.files).filter((name) => report.files[name].failed.length > 0);

const first = run(command);
const passed = new Map(Object.entries(first.files).map(([name, file]) => [name, file.passed]));
const flaky = [];
let last = first;
let names = failing(first);
for (let attempt = 2; attempt <= TRIES && names.length > 0 && names.length <= MOST_FILES; attempt += 1) {
  process.stdout.write(`\n=== try ${attempt}: ${names.join(' ')}\n`);
  const again = run(['npx', 'vitest', 'run', '--no-file-parallelism', '--maxWorkers=1', ...names]);
  if (again.lost.length > 0) break;
  for (const name of names) {
    if ((again.files[name]?.failed.length ?? 1) > 0) continue;
    passed.set(name, again.files[name].passed);
    for (const [test, why] of last.files[name].failed) flaky.push(`${name} > ${test}: ${why} (passed at try ${attempt})`);
  }
  // A file that was asked for and not run did not pass.
  const gone = names.filter((name) => again.files[name] === undefined);
  last = { ...again, files: { ...again.files, ...Object.fromEntries(gone.map((name) => [name, last.files[name]])) } };
  names = failing(last);
}
const failed = [
  ...first.lost,
  ...names.flatMap((name) => last.files[name].failed.map(([test, why]) => `${name} > ${test}: ${why}`)),
];
// A command that failed without saying where (an error while it closed) has failed.
if (first.status !== 0 && failed.length === 0 && flaky.length === 0) failed.push(`the command ended with ${first.status}`);
for (const line of flaky) process.stdout.write(`FLAKY ${line}\n`);
for (const line of failed) process.stdout.write(`FAILED ${line}\n`);
writeFileSync(
  result,
  JSON.stringify({ passed: [...passed.values()].reduce((sum, count) => sum + count, 0), failed: failed.length, flaky: flaky.length }),
);
rmSync(scratch, { recursive: true, force: true });
process.exitCode = failed.length > 0 ? 1 : 0;
