import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Gap } from '../../src/core/types.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRecording } from '../../src/recording/reader.ts';
import { canRun } from '../programs.ts';
import { random } from './observations.ts';

const CHILD = join(import.meta.dirname, 'write-in-child.mjs');
const KILLS = 10;
const SEED = 20_261_121;
/** Gives a namespace in which anybody may mount, where the kernel lets anybody have one (util-linux). */
const NAMESPACE = 'unshare';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

it(`everything flushed before a kill -9 is there afterwards, at ${KILLS} random moments`, async () => {
  const next = random(SEED);
  for (let n = 0; n < KILLS; n++) {
    const directory = join(root, String(n));
    const child = spawn(process.execPath, [CHILD, directory, 'endless'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const until = 37 * (1 + Math.floor(next() * 300));
    let acknowledged = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      acknowledged = Number(line);
      if (acknowledged >= until) child.kill('SIGKILL');
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    const recording = await openRecording(directory);
    const values = [...(recording.series('m')[0]?.value ?? [])];
    expect(values.length, `seed ${SEED}, kill ${n}`).toBeGreaterThanOrEqual(acknowledged);
    expect(values).toEqual(values.map((_, i) => i + 1));
    expect(recording.end).toBeNull();
    expect(recording.problems.at(-1)).toBe(
      'the run has no end: its writer was killed or is still running',
    );
  }
});

interface Outcome {
  readonly written: number;
  readonly dropped: number;
  readonly failures: readonly string[];
  readonly kept: number;
  readonly last: number;
  readonly problems: readonly string[];
  readonly gaps: readonly Gap[];
}

function outcomeOf(output: string): Outcome {
  return JSON.parse(output) as Outcome;
}

/** What must hold whatever stopped the writing. */
function expectHonest(outcome: Outcome): void {
  expect(outcome.failures).toHaveLength(1);
  expect(outcome.kept).toBeGreaterThan(0);
  expect(outcome.last).toBe(outcome.kept);
  expect(outcome.kept + outcome.dropped).toBe(outcome.written);
  expect(outcome.problems).toEqual([
    'the run has no end: its writer was killed or is still running',
  ]);
}

/** A namespace is a right that a container may withhold. */
const canMount = canRun(NAMESPACE, '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir());

describe('a disk that fills up', () => {
  it('leaves a readable recording, and what was lost is counted (limit on file size)', () => {
    const script = `ulimit -f 256; exec "${process.execPath}" "${CHILD}" "${join(root, 'r')}" until-full`;
    expectHonest(outcomeOf(execFileSync('sh', ['-c', script], { encoding: 'utf8' })));
  });

  it.runIf(canMount)('says so (a file system of 256 kB; needs user namespaces)', () => {
    const script = `mount -t tmpfs -o size=256k tmpfs "${root}" && exec "${process.execPath}" "${CHILD}" "${join(root, 'r')}" until-full`;
    const output = execFileSync(NAMESPACE, ['-rm', 'sh', '-c', script], { encoding: 'utf8' });
    const outcome = outcomeOf(output);
    expectHonest(outcome);
    expect(outcome.failures[0]).toContain('the disk is full');
  });

  it.runIf(canMount)('is written on when there is room again; what is missing is a gap', () => {
    const [recording, ballast, other] = ['r', 'ballast', 'other'].map((name) => join(root, name));
    const script = [
      `mount -t tmpfs -o size=6m tmpfs "${root}"`,
      `head -c 4000000 /dev/zero > "${ballast}"`,
      `mkdir "${other}"`,
      `echo 1 > "${other}/telemetry.jsonl"`,
      `"${process.execPath}" "${CHILD}" "${recording}" full-for-a-while "${ballast}"`,
      `echo; ls "${other}" "${recording}"`,
    ].join(' && ');
    const output = execFileSync(NAMESPACE, ['-rm', 'sh', '-c', script], { encoding: 'utf8' });
    const [report = '', ...files] = output.split('\n');
    const outcome = outcomeOf(report);
    expect(outcome.failures).toHaveLength(1);
    expect(outcome.problems).toEqual([]);
    expect(outcome.gaps).toHaveLength(1);
    const [gap] = outcome.gaps;
    expect(gap).toMatchObject({ collector: 'recording', reason: 'dropped' });
    expect(gap?.detail).toBe(
      `the disk was full: ${outcome.dropped} observations could not be written`,
    );
    expect((gap?.to ?? 0) - (gap?.from ?? 0)).toBeGreaterThan(60);
    expect(outcome.dropped).toBeGreaterThan(60);
    expect(outcome.kept + outcome.dropped).toBe(outcome.written);
    expect(outcome.last).toBe(outcome.written);
    // Segments were finished before, meanwhile and after; nobody else's file was touched.
    expect(files.filter((name) => name.endsWith('.gz')).length).toBeGreaterThan(3);
    expect(files.filter((name) => name.endsWith('.partial'))).toEqual([]);
    expect(files).toContain('telemetry.jsonl');
  });
});
