import { mkdtemp, rm, copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFolder } from '../../repro/generate/folder.ts';
import { generate, scriptName } from '../../repro/generate/generate.ts';
import type { Json, Language, Oracle, ReproParameters } from '../../repro/parameters/parameters.ts';
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

async function tryIt(language: Language, name: string, one: Case): Promise<Trial> {
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
