// node .ci/tests.mjs RESULT -- COMMAND…: runs a vitest command once and leaves what it counted in RESULT. A failure is a failure: the files
// in which something failed are run again alone, but only to say whether they fail there too. What is known to fail now and then stands in
// .ci/unsteady.json, with its reason and the rate that was measured: such a test, and no other, is not counted as failed when it passes
// alone.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** More files than this that fail at once are not looked at one by one. */
const MOST_FILES = 10;

const [result, , ...command] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'tests-'));
/** Each `{ test: 'FILE > NAME', reason, rate: { failed, of, at } }`: so many of so many runs, at a commit. */
const unsteady = JSON.parse(readFileSync(new URL('unsteady.json', import.meta.url), 'utf8'));

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

/** Every failure as `FILE > NAME`, with the first line of why. */
const failuresOf = ({ files }) =>
  new Map(
    Object.entries(files).flatMap(([file, { failed }]) =>
      failed.map(([test, why]) => [`${file} > ${test}`, why]),
    ),
  );

const first = run(command);
const failures = failuresOf(first);
const files = [...new Set([...failures.keys()].map((name) => name.slice(0, name.indexOf(' > '))))];
let passedAlone = new Set();
if (files.length > 0 && files.length <= MOST_FILES) {
  process.stdout.write(`\n=== once more, alone, to see whether it fails there too: ${files.join(' ')}\n`);
  const again = run(['npx', 'vitest', 'run', '--no-file-parallelism', '--maxWorkers=1', ...files]);
  passedAlone = new Set(
    Object.entries(again.files).flatMap(([file, { passed }]) => passed.map((test) => `${file} > ${test}`)),
  );
}
const failed = [...first.lost];
let excused = 0;
for (const [name, why] of failures) {
  const known = unsteady.find(({ test }) => test === name);
  const where = passedAlone.has(name) ? 'but passes alone' : 'alone too';
  if (known !== undefined && passedAlone.has(name)) {
    excused += 1;
    const { failed: n, of, at } = known.rate;
    process.stdout.write(`UNSTEADY ${name}: ${why} (${known.reason}; ${n} of ${of} at ${at})\n`);
  } else failed.push(`${name}: ${why} (${where})`);
}
// A command that failed without saying where (an error while it closed) has failed.
if (first.status !== 0 && failures.size === 0 && failed.length === 0)
  failed.push(`the command ended with ${first.status}`);
for (const line of failed) process.stdout.write(`FAILED ${line}\n`);
const passed = Object.values(first.files).reduce((sum, file) => sum + file.passed.length, 0);
writeFileSync(result, JSON.stringify({ passed: passed + excused, failed: failed.length }));
rmSync(scratch, { recursive: true, force: true });
process.exitCode = failed.length > 0 ? 1 : 0;
