import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explore, type Exploration, replay } from '../../repro/schedules/explore.ts';
import { NodeRunner } from '../../repro/schedules/node/runner.ts';

const RACES = join(import.meta.dirname, 'races', 'node');
/** The planted races, by file. */
export const names: readonly string[] = readdirSync(RACES).filter((name) => name.endsWith('.mjs'));
/** A run takes a tenth of a second: one that takes this long hangs, however busy the machine. */
const LIMIT = 60;
const PATIENCE = { timeout: 300_000 };
/** Of a twin; the bench tries more. */
const TWIN_SCHEDULES = 8;
/** Time is real in Node: a busy machine may have made a timer late once, which then does not repeat; the next that fails is taken. */
const ATTEMPTS = 4;
/** The rarest fail first under seeds 40 and 45: to begin with 0 would double what the file takes. */
const FIRST_SEEDS: Readonly<Record<string, number>> = {
  'shared-reply.mjs': 30,
  'timer-order.mjs': 30,
};

async function explored(
  interpreter: string,
  argv: readonly string[],
  schedules: number,
): Promise<{ found: Exploration; repeats: number }> {
  const program = {
    language: 'node',
    interpreter,
    flags: [],
    cwd: RACES,
    env: {},
  } as const;
  const runner = await NodeRunner.open({ ...program, argv });
  try {
    const setting = { clock: 'real', threads: false, include: [] } as const;
    const options = { ...setting, schedules, depth: 2, places: [], limit: LIMIT };
    let seed = FIRST_SEEDS[argv[0] ?? ''] ?? 0;
    for (let attempt = 1; ; attempt++) {
      // oxlint-disable-next-line no-await-in-loop -- until one repeats
      const found = await explore(runner, { ...options, seed, strategy: 'random', all: false });
      if (found.outcome === 'invalid' || found.failure === null) return { found, repeats: 0 };
      const { schedule } = found.failure;
      const baseline = found.baseline.course;
      // oxlint-disable-next-line no-await-in-loop
      const repeated = await replay(runner, schedule, { runs: 2, limit: LIMIT, baseline });
      if (repeated.failing > 0 || attempt === ATTEMPTS) return { found, repeats: repeated.failing };
      seed = found.failure.seed + 1;
    }
  } finally {
    await runner.close();
  }
}

/** Tests of these races with this Node, each run a process of its own. */
export function testRaces(interpreter: string, shown: readonly string[]): void {
  describe('a planted race of Node', PATIENCE, () => {
    it.each(shown)('is found within 200 seeds, and its schedule repeats it: %s', async (name) => {
      const { found, repeats } = await explored(interpreter, [name], 160);
      expect(found.outcome).toBe('found');
      expect(repeats).toBeGreaterThan(0);
    });

    it.each(shown)('is silent when it is fixed: %s', async (name) => {
      const { found } = await explored(interpreter, [name, 'fixed'], TWIN_SCHEDULES);
      expect(found).toMatchObject({ outcome: 'not-found', tried: TWIN_SCHEDULES, failing: 0 });
    });
  });
}
