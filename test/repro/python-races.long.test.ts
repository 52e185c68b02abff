import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explore, type Exploration, replay } from '../../repro/schedules/explore.ts';
import type { Program } from '../../repro/schedules/program.ts';
import { PythonRunner } from '../../repro/schedules/python/runner.ts';
import type { StrategyName } from '../../repro/schedules/strategies.ts';
import { interpreters } from '../environments.ts';

const RACES = join(import.meta.dirname, 'races', 'python');
const names = readdirSync(RACES).filter((name) => name.endsWith('.py'));
/** A run takes some hundredths of a second: one that takes this long hangs, however busy the machine. */
const LIMIT = 60;
const PATIENCE = { timeout: 300_000 };
/** Of a twin; the bench tries more. */
const TWIN_SCHEDULES = 24;

const setting = { clock: 'virtual', threads: false, include: [] } as const;
const python = interpreters()[0] ?? { path: 'python3', version: '' };

function programOf(name: string, args: readonly string[] = [], interpreter = python.path): Program {
  return { language: 'python', interpreter, flags: [], argv: [name, ...args], cwd: RACES, env: {} };
}

async function explored(
  program: Program,
  schedules: number,
  strategy: StrategyName = 'random',
): Promise<{ found: Exploration; repeats: number }> {
  const runner = await PythonRunner.open(program);
  try {
    const options = { ...setting, strategy, schedules, seed: 0, depth: 2, places: [] };
    const found = await explore(runner, { ...options, limit: LIMIT, all: false });
    if (found.outcome === 'invalid' || found.failure === null) return { found, repeats: 0 };
    const { schedule } = found.failure;
    const baseline = found.baseline.course;
    const repeated = await replay(runner, schedule, { runs: 3, limit: LIMIT, baseline });
    expect(repeated.divergence).toBeNull();
    return { found, repeats: repeated.failing };
  } finally {
    await runner.close();
  }
}

describe('a planted race of asyncio', PATIENCE, () => {
  it('is one of a dozen kinds at least', () => {
    expect(names.length).toBeGreaterThanOrEqual(12);
  });

  it.each(names)('is found within 200 schedules, and its schedule repeats it: %s', async (name) => {
    const { found, repeats } = await explored(programOf(name), 200);
    expect(found.outcome).toBe('found');
    expect(repeats).toBe(3);
  });

  it.each(names)('is silent when it is fixed: %s', async (name) => {
    const { found } = await explored(programOf(name, ['fixed']), TWIN_SCHEDULES);
    expect(found).toMatchObject({ outcome: 'not-found', tried: TWIN_SCHEDULES, failing: 0 });
  });

  it('is found by PCT as well', async () => {
    const { found, repeats } = await explored(programOf('lost_update.py'), 200, 'pct');
    expect([found.outcome, repeats]).toEqual(['found', 3]);
  });
});

describe('a program that cannot be explored', PATIENCE, () => {
  it.each([
    ['fails undisturbed', ['-c', 'import sys; sys.exit(3)'], 'undisturbed, it exited with 3'],
    ['meets no point', ['-c', 'print(1)'], 'no point'],
    ['cannot test', ['-c', 'import sys; sys.exit(125)'], 'cannot test'],
  ])('is invalid when it %s', async (_, argv, reason) => {
    const { found } = await explored({ ...programOf(''), argv }, 5);
    expect(found).toMatchObject({ outcome: 'invalid', reason: expect.stringContaining(reason) });
  });
});
