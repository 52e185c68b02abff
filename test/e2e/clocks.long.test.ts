import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { startTarget } from '../targets/harness.ts';
import { runCli } from './cli.ts';

/** Clocks of the machine that are set back and forward, and a machine that sleeps, while trace watches: preloaded into trace alone. */

const PRELOADED = pathToFileURL(join(import.meta.dirname, '../targets/stepping_clocks.mjs')).href;
const WATCHED_S = 11;
const HOUR = 3600;
/** Set back by an hour, asleep for two, set forward by a day. */
const STEPS = [
  [2, -HOUR, 0],
  [4, 0, 2 * HOUR],
  [6, 24 * HOUR, 0],
];

interface Report {
  readonly started_at: string;
  readonly duration_s: number;
  readonly findings: readonly {
    readonly kind: string;
    readonly measure: Readonly<Record<string, number>>;
  }[];
  readonly gaps: readonly Readonly<Record<string, unknown>>[];
  readonly problems?: readonly string[];
}

/** Each `timeUnixNano` of a recording, in seconds. */
function timesOf(recording: string): readonly number[] {
  const text = readFileSync(join(recording, 'telemetry.jsonl'), 'utf8');
  return [...text.matchAll(/"(?:startT|endT|t)imeUnixNano":"(\d+)"/g)].map(
    ([, nanos]) => Number(nanos) / 1e9,
  );
}

it('a run over clocks that step and a machine that sleeps keeps its own time, and says what they did', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trace-clocks-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const target = await startTarget('asyncio', {
    kinds: ['sleep'],
    durations: [300],
    reps: 200,
    seconds: 60,
  });
  onTestFinished(() => target.stop());
  const recording = join(folder, 'run');
  const began = Date.now() / 1e3;
  const watched = await runCli(
    ['attach', String(target.pid), '-d', String(WATCHED_S), '--json', '-o', recording],
    {
      env: {
        NODE_OPTIONS: `--import ${PRELOADED}`,
        STEPS: JSON.stringify(STEPS),
        // The watch has begun.
        STEPS_AFTER: join(recording, 'telemetry.jsonl'),
      },
    },
  );
  const took = Date.now() / 1e3 - began;
  const shown = await runCli(['show', recording, '--json']);
  for (const { stdout, stderr } of [watched, shown]) {
    const report = JSON.parse(stdout) as Report;
    expect(report.duration_s, stderr).toBeGreaterThanOrEqual(WATCHED_S - 0.5);
    expect(report.duration_s).toBeLessThan(took);
    // A sleep of the machine is no block, and a clock that is set no duration, of any sign.
    const blocks = report.findings.filter(({ kind }) => kind === 'loop-blocked');
    expect(blocks.length).toBeGreaterThan(0);
    for (const { measure } of blocks)
      for (const [name, value] of Object.entries(measure))
        if (name.endsWith('_s')) expect(value >= 0 && value < took, `${name} ${value}`).toBe(true);
    const suspended = report.gaps.filter(({ reason }) => reason === 'suspended');
    expect(suspended).toHaveLength(1);
    expect(JSON.stringify(suspended)).toMatch(/slept for 2 h(?! \d)/);
    expect(stdout).toContain('the wall clock was set back by 1 h');
    expect(stdout).toContain('the wall clock was set forward by 1 d');
  }
  const times = timesOf(recording);
  expect(times.length).toBeGreaterThan(100);
  expect(Math.min(...times)).toBeGreaterThan(began - 5);
  expect(Math.max(...times)).toBeLessThan(began + took + 5);
});
