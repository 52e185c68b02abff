import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explore, type Exploration, replay } from '../../repro/schedules/explore.ts';
import { NodeRunner } from '../../repro/schedules/node/runner.ts';
import { nodes } from '../environments.ts';

const RACES = join(import.meta.dirname, 'races', 'node');
const names = readdirSync(RACES).filter((name) => name.endsWith('.mjs'));
/** Those that CI has time for; the bench has all. */
const SHOWN = ['lost-update.mjs'];
/** A run takes a tenth of a second: one that takes this long hangs, however busy the machine. */
const LIMIT = 60;
const PATIENCE = { timeout: 300_000 };
/** Of a twin; the bench tries more. */
const TWIN_SCHEDULES = 6;

const [node = { path: process.execPath, version: '' }] = await nodes();

async function explored(
  argv: readonly string[],
  schedules: number,
): Promise<{ found: Exploration; repeats: number }> {
  const program = {
    language: 'node',
    interpreter: node.path,
    flags: [],
    cwd: RACES,
    env: {},
  } as const;
  const runner = await NodeRunner.open({ ...program, argv });
  try {
    const setting = { clock: 'real', threads: false, include: [] } as const;
    const options = { ...setting, schedules, seed: 0, depth: 2, places: [], limit: LIMIT };
    const found = await explore(runner, { ...options, strategy: 'random', all: false });
    if (found.outcome === 'invalid' || found.failure === null) return { found, repeats: 0 };
    const { schedule } = found.failure;
    const baseline = found.baseline.course;
    const repeated = await replay(runner, schedule, { runs: 3, limit: LIMIT, baseline });
    return { found, repeats: repeated.failing };
  } finally {
    await runner.close();
  }
}

describe('a planted race of Node', PATIENCE, () => {
  it('is one of eight kinds at least', () => {
    expect(names.length).toBeGreaterThanOrEqual(8);
  });

  it.each(SHOWN)('is found within 200 schedules, and its schedule repeats it: %s', async (name) => {
    const { found, repeats } = await explored([name], 200);
    expect(found.outcome).toBe('found');
    expect(repeats).toBeGreaterThan(0);
  });

  it.each(SHOWN)('is silent when it is fixed: %s', async (name) => {
    const { found } = await explored([name, 'fixed'], TWIN_SCHEDULES);
    expect(found).toMatchObject({ outcome: 'not-found', tried: TWIN_SCHEDULES, failing: 0 });
  });
});
