import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CourseRunner } from '../../../repro/schedules/course.ts';
import { explore, type Exploration } from '../../../repro/schedules/explore.ts';
import { NodeRunner } from '../../../repro/schedules/node/runner.ts';
import { PythonRunner } from '../../../repro/schedules/python/runner.ts';
import { Budget } from '../../../repro/shrink/budget.ts';
import { shrinkSchedule } from '../../../repro/shrink/schedule.ts';

/* The planted races of test/repro/races: how often they fail by themselves, and under schedules. */

const run = promisify(execFile);
const RACES = join(import.meta.dirname, '..', '..', 'repro', 'races');
/** Of one that hangs; a run takes some hundredths of a second. */
const LIMIT = 60;
/** Processes at a time: most of a run is the start of an interpreter. */
const AT_ONCE = 4;

export type RaceLanguage = 'python' | 'node';

export interface Race {
  readonly language: RaceLanguage;
  readonly name: string;
  readonly path: string;
}

/** All of a language. */
export function plantedRaces(language: RaceLanguage): readonly Race[] {
  return readdirSync(join(RACES, language))
    .filter((name) => /\.(?:py|mjs)$/.test(name))
    .map((name) => ({ language, name, path: join(RACES, language, name) }));
}

/** How many of `loops` fresh loops of one process, and of `processes` fresh processes, failed by themselves. */
export async function naturalFailures(
  { language, path }: Race,
  { loops, processes }: { readonly loops: number; readonly processes: number },
): Promise<{ readonly loops: number; readonly processes: number }> {
  const program = language === 'python' ? 'python3' : process.execPath;
  const counter = join(import.meta.dirname, `natural.${language === 'python' ? 'py' : 'mjs'}`);
  const { stdout } = await run(program, [counter, path, String(loops)], { maxBuffer: 2 ** 26 });
  let [left, failed] = [processes, 0];
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      // oxlint-disable-next-line no-await-in-loop -- one after another of each worker: they share the machine
      await run(program, [path], { timeout: LIMIT * 1e3 }).catch(() => failed++);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { loops: Number(stdout.trim().split('\n').at(-1)), processes: failed };
}

/** Explores, beginning at a seed. */
export async function exploreRace(
  race: Race,
  asked: {
    readonly schedules: number;
    readonly seed: number;
    readonly all: boolean;
    readonly fixed: boolean;
  },
): Promise<Exploration> {
  const runner = await openRace(race, asked.fixed);
  try {
    return await explore(runner, { ...optionsOf(race), ...asked });
  } finally {
    await runner.close();
  }
}

/** What trace finds and how small it makes it, as another tool's line. */
export async function findAndShrink(race: Race, schedules: number): Promise<PeerRow> {
  const runner = await openRace(race, false);
  try {
    const began = performance.now();
    const options = { ...optionsOf(race), schedules, seed: 0, all: false };
    const found = await explore(runner, options);
    const seconds = (performance.now() - began) / 1e3;
    if (found.outcome === 'invalid') throw new Error(`${race.name}: ${found.reason}`);
    const { failure, tried, baseline } = found;
    if (failure === null || failure.schedule.strategy !== 'explicit')
      return { found: false, tried, seconds, steps: null };
    const shrunk = await shrinkSchedule(runner, {
      schedule: failure.schedule,
      baseline: baseline.course,
      limit: LIMIT,
      keep: 0.5,
      budget: new Budget({ trials: 500, time: 120 }),
    });
    return { found: true, tried, seconds, steps: shrunk?.delays.length ?? null };
  } finally {
    await runner.close();
  }
}

/** What a tool found of a race. */
export interface PeerRow {
  readonly found: boolean;
  /** Schedules until the first that failed, or all. */
  readonly tried: number;
  readonly seconds: number;
  /** Of its smallest case, in its own unit; null where it gives none. */
  readonly steps: number | null;
  /** Why it could not be tried. */
  readonly problem?: string;
}

/** Another tool on a race: a line of JSON, or why there was none. */
export async function peerOn(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<PeerRow> {
  const [program = '', ...args] = command;
  try {
    const options = { timeout: 2 * LIMIT * 1e3, env: { ...process.env, ...env } };
    const { stdout } = await run(program, args, options);
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as PeerRow;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const problem = text.trim().split('\n').at(-1)?.slice(0, 100) ?? '';
    return { found: false, tried: 0, seconds: 0, steps: null, problem };
  }
}

function optionsOf({ language }: Race) {
  const clock = language === 'python' ? 'virtual' : 'real';
  const setting = { clock, threads: false, include: [] } as const;
  return { ...setting, strategy: 'random', depth: 2, places: [], limit: LIMIT } as const;
}

function openRace({ language, path }: Race, fixed: boolean): Promise<CourseRunner> {
  const program = {
    language,
    interpreter: language === 'python' ? 'python3' : process.execPath,
    flags: [],
    argv: [path, ...(fixed ? ['fixed'] : [])],
    cwd: join(RACES, language),
    env: {},
  } as const;
  return language === 'python' ? PythonRunner.open(program) : NodeRunner.open(program);
}
