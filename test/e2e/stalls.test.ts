import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { interpreters } from '../environments.ts';
import { startReady } from '../targets/harness.ts';
import { parseReport, type ReportDocument, runCli } from './cli.ts';

/* Loops that stand still alike, each for a cause of its own, and one that turns: the finding says which. */

const PROGRAM = join(import.meta.dirname, '../targets/python/stalling.py');
const WATCH_S = 4;
type Finding = ReportDocument['findings'][number];

/** The blocks that a program has by its own doing, the one that lasted longest in all first. */
async function blocksOf(cause: string): Promise<readonly Finding[]> {
  const target = await startReady(interpreters()[0]?.path ?? 'python3', [PROGRAM, cause]);
  try {
    const args = ['attach', String(target.pid), '-d', String(WATCH_S), '--json', '--no-recording'];
    const { findings } = parseReport(await runCli(args, { limitS: WATCH_S + 60 }));
    // A crowded machine holds a loop up as well.
    return findings.filter((one) => one.kind === 'loop-blocked' && one.mechanism !== 'starved');
  } finally {
    await target.stop();
  }
}

describe('attach to a loop that stands still', () => {
  it.concurrent.each([
    ['gil', 'crunch', 'reindex'],
    ['gc', 'tidy', 'main'],
    ['lock', 'take_lock', 'main'],
    ['sleep', '<lambda>', 'main'],
    ['subprocess', 'run_child', 'main'],
    ['cpu', 'compute', 'main'],
  ])('%s: in %s of thread %s', async (cause, name, thread) => {
    const [first] = await blocksOf(cause);
    expect(first?.mechanism).toBe(cause);
    expect(first?.where[0]).toMatchObject({ thread });
    expect(first?.where[0]?.function.split('.').at(-1)).toBe(name);
  });

  it.concurrent('none: no block of its own of a tenth of a second', async () => {
    const long = (await blocksOf('none')).filter(
      ({ measure }) => (measure['worst_min_s'] ?? 0) > 0.1,
    );
    expect(long).toEqual([]);
  });
});
