// npm run bugbench [-- FOLDER… --case NAME… --watch SECONDS --jobs N --json FILE --publish --again --prepare]: our own cases, and those of more folders.
import { spawnSync } from 'node:child_process';
import { delimiter, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const text = { type: 'string' };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    case: { type: 'string', multiple: true, default: [] },
    watch: text,
    jobs: text,
    json: text,
    publish: { type: 'boolean' },
    again: { type: 'boolean' },
    prepare: { type: 'boolean' },
  },
});
const settings = {
  CASES: positionals.map((folder) => resolve(folder)).join(delimiter),
  NAMES: values.case.join(','),
  S: values.watch,
  JOBS: values.jobs,
  JSON: values.json,
  PUBLISH: values.publish === true ? '1' : undefined,
  AGAIN: values.again === true ? '1' : undefined,
  PREPARE: values.prepare === true ? '1' : undefined,
};
const given = Object.entries(settings).filter(([, value]) => value !== undefined && value !== '');
const words = ['vitest', 'run', '--config', 'vitest.bench.config.ts', '--project', 'bugbench'];
const { status } = spawnSync('npx', words, {
  stdio: 'inherit',
  env: {
    ...process.env,
    ...Object.fromEntries(given.map(([name, value]) => [`TRACEWRIGHT_BUGBENCH_${name}`, value])),
  },
});
process.exitCode = status ?? 1;
