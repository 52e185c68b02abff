import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFolder } from '../../repro/generate/folder.ts';
import { generate, scriptName } from '../../repro/generate/generate.ts';
import type { Json, Language, Oracle, ReproParameters } from '../../repro/parameters/parameters.ts';
import { judge } from '../../repro/trials/judge.ts';
import { runGroup } from '../../repro/trials/process-group.ts';
import { runTrial } from '../../repro/trials/run-trial.ts';
import type { Trial } from '../../repro/trials/trial.ts';

const TARGETS = join(import.meta.dirname, 'targets');
const LIMIT_MS = 90_000;

let scratch = '';
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'trace-oracles-'));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

interface Case {
  readonly oracle: Oracle;
  readonly args?: readonly (readonly Json[])[];
  readonly attempts?: number;
  readonly faulty: string;
  readonly healthy: string;
}

let count = 0;

async function tryIt(
  language: Language,
  name: string,
  one: Case,
  edit = (script: string): string => script,
): Promise<Trial> {
  const folder = join(scratch, String(count++));
  const { args = [[]], attempts = 40 } = one;
  const from = relative(folder, TARGETS);
  const { read } = one.oracle;
  const oracle =
    language === 'node' && typeof read === 'string'
      ? { ...one.oracle, read: `${from}/planted.mjs#${read}` }
      : one.oracle;
  const parameters: ReproParameters = {
    schema_version: 1,
    language,
    script: scriptName(language),
    origin: 'call',
    hypothesis: null,
    call:
      language === 'python'
        ? { target: `planted:${name}`, path: from, args }
        : { target: `${from}/planted.mjs#${name}`, args },
    oracle,
    attempts,
    concurrency: 8,
    timeout_s: 60,
    seed: 1,
    packages: {},
    runtime: { name: language, version: '' },
  };
  await writeFolder(folder, generate(parameters, { system: 'Linux', gpus: [] }));
  const path = join(folder, parameters.script);
  await writeFile(path, edit(await readFile(path, 'utf8')));
  const { script } = oracle;
  if (typeof script === 'string') await copyFile(join(TARGETS, script), join(folder, script));
  return runTrial(folder, { seed: 7 });
}

const numbers = [[1], [2], [3]];
const PYTHON: readonly Case[] = [
  { oracle: { kind: 'exception' }, faulty: 'take', healthy: 'take_locked' },
  {
    oracle: { kind: 'lost-update', read: 'planted:read_balance' },
    faulty: 'deposit',
    healthy: 'deposit_locked',
  },
  {
    oracle: { kind: 'lost-update', read: 'planted:read_balance' },
    faulty: 'deposit_in_tasks',
    healthy: 'deposit_at_once',
  },
  {
    oracle: { kind: 'cross-talk' },
    args: [['{nonce}']],
    faulty: 'echo_shared',
    healthy: 'echo',
  },
  { oracle: { kind: 'same-alone' }, args: numbers, faulty: 'batched', healthy: 'unbatched' },
  { oracle: { kind: 'growth' }, attempts: 500, faulty: 'leak', healthy: 'leak_not' },
  { oracle: { kind: 'growth' }, attempts: 500, faulty: 'leak_tasks', healthy: 'echo_none' },
  {
    oracle: { kind: 'no-progress', within_s: 5 },
    faulty: 'lock_in_turns',
    healthy: 'lock_in_order',
  },
  {
    // Far over what a busy machine keeps a thread waiting for, and under what the fault does.
    oracle: { kind: 'head-of-line', limit_s: 1.5 },
    attempts: 8,
    faulty: 'block',
    healthy: 'block_not',
  },
  {
    oracle: { kind: 'script', script: 'check_sum.py' },
    args: numbers,
    faulty: 'batched',
    healthy: 'unbatched',
  },
];

const NODE: readonly Case[] = [
  { oracle: { kind: 'exception' }, faulty: 'take', healthy: 'takeAtOnce' },
  {
    oracle: { kind: 'lost-update', read: 'readBalance' },
    faulty: 'deposit',
    healthy: 'depositAtOnce',
  },
  { oracle: { kind: 'cross-talk' }, args: [['{nonce}']], faulty: 'echoShared', healthy: 'echo' },
  { oracle: { kind: 'same-alone' }, args: numbers, faulty: 'batched', healthy: 'unbatched' },
  { oracle: { kind: 'growth' }, attempts: 2000, faulty: 'leak', healthy: 'leakNot' },
  {
    oracle: { kind: 'no-progress', within_s: 5 },
    args: numbers,
    faulty: 'waitForOther',
    healthy: 'waitForTurn',
  },
  {
    oracle: { kind: 'head-of-line', limit_s: 1.5 },
    attempts: 8,
    faulty: 'block',
    healthy: 'blockNot',
  },
  {
    oracle: { kind: 'script', script: 'check-sum.mjs' },
    args: numbers,
    faulty: 'batched',
    healthy: 'unbatched',
  },
];

describe('oracles of a Python callable', () => {
  it.each(PYTHON)(
    'find $faulty by $oracle.kind, and not $healthy',
    async (one) => {
      const faulty = await tryIt('python', one.faulty, one);
      expect(faulty, faulty.outputTail).toMatchObject({ outcome: 'reproduced' });
      const healthy = await tryIt('python', one.healthy, one);
      expect(healthy, healthy.outputTail).toMatchObject({ outcome: 'not-reproduced' });
    },
    LIMIT_MS,
  );
});

describe('oracles of a Node callable', () => {
  it.each(NODE)(
    'find $faulty by $oracle.kind, and not $healthy',
    async (one) => {
      const faulty = await tryIt('node', one.faulty, one);
      expect(faulty, faulty.outputTail).toMatchObject({ outcome: 'reproduced' });
      const healthy = await tryIt('node', one.healthy, one);
      expect(healthy, healthy.outputTail).toMatchObject({ outcome: 'not-reproduced' });
    },
    LIMIT_MS,
  );
});

describe('a loop that is stuck', () => {
  const stuck: Case = {
    oracle: { kind: 'head-of-line', limit_s: 0.1 },
    attempts: 8,
    faulty: '',
    healthy: '',
  };
  // A script waits ten seconds; here half of one.
  const impatient = (script: string): string =>
    script.replace(/^PATIENCE = 10$/m, 'PATIENCE = 0.5').replace('= 10_000;', '= 500;');

  it.each([
    ['python', 'block_long'],
    ['node', 'blockLong'],
  ] as const)('is told before it goes on, by a script in %s', async (language, name) => {
    const trial = await tryIt(language, name, stuck, impatient);
    expect(trial, trial.outputTail).toMatchObject({ outcome: 'reproduced', attempts: 8 });
    expect(trial.outputTail).toMatch(
      /^another has waited 0\.6 s while .*\n[^]*^Errors: [1-8] \/ 8\n$/m,
    );
  });

  it('is not waited for longer than the limit where it never goes on', async () => {
    const forever: readonly string[] = ['sh', '-c', 'echo "Errors: 2 / 8"; exec sleep 100'];
    const end = await runGroup(forever, {
      cwd: scratch,
      env: process.env,
      limit: 60,
      abort: undefined,
      saidAll: { pattern: /^Errors: [1-9]/m, grace: 0.05 },
    });
    expect(end).toMatchObject({ ended: 'timeout' });
    expect(judge(end, 'head-of-line')).toMatchObject({ outcome: 'reproduced', errors: 2 });
    expect(judge(end, 'exception')).toMatchObject({ outcome: 'invalid' });
    const silent = { ...end, output: 'Errors: 0 / 8\n' } as typeof end;
    expect(judge(silent, 'head-of-line')).toMatchObject({ outcome: 'invalid' });
  });
});
