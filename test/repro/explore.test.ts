import { describe, expect, it } from 'vitest';
import type { Course, CourseRunner } from '../../repro/schedules/course.ts';
import { explore } from '../../repro/schedules/explore.ts';
import type { Schedule } from '../../repro/schedules/schedule.ts';
import { explorationText } from '../../src/commands/repro/explore/text.ts';
import { Budget } from '../../repro/shrink/budget.ts';
import { shrinkSchedule } from '../../repro/shrink/schedule.ts';

/** A program of two points. `failing` says which run of which schedule ends badly, the runs of all counted from 0. */
function programOf(failing: (schedule: Schedule, run: number) => boolean): CourseRunner {
  let runs = 0;
  return {
    run: async (schedule): Promise<Course> => {
      const turns = schedule.strategy === 'random' ? schedule.seed + 1 : 0;
      const point = { task: '1', step: 1, turns, frames: ['app.py:3'], inside: 'f' };
      const isBad = failing(schedule, runs++);
      const end = isBad ? { code: 1, output: 'bad' } : { code: 0, output: '' };
      return {
        ...end,
        signal: null,
        hang: null,
        points: [point, { ...point, step: 2 }],
        seconds: 0,
      };
    },
    close: async () => {},
  };
}

const setting = { clock: 'virtual', threads: false, include: [] } as const;
const asked = { ...setting, strategy: 'random', depth: 2, places: [], limit: 1 } as const;
const options = { ...asked, schedules: 20, seed: 0, all: false };
/** Undisturbed runs before the first schedule. */
const BASELINE = 3;

const waitsOf = (schedule: Schedule): readonly number[] =>
  schedule.strategy === 'explicit' ? schedule.delays.map(([, , turns]) => turns) : [];

describe('a schedule that is reported', () => {
  it('failed again: a run that failed once is passed over for it', async () => {
    // The machine stood still in the first run under a schedule; eight turns are what fails.
    const program = programOf((schedule, run) => {
      const turns =
        schedule.strategy === 'random' ? schedule.seed + 1 : (waitsOf(schedule)[0] ?? 0);
      return run === BASELINE || turns === 8;
    });
    const found = await explore(program, options);
    if (found.outcome === 'invalid') throw new Error(found.reason);
    expect(found).toMatchObject({ outcome: 'found', tried: 8, failing: 2 });
    expect(found.failure?.seed).toBe(7);
  });

  it('is the one that failed once where none fails again', async () => {
    const found = await explore(
      programOf((_, run) => run === BASELINE),
      options,
    );
    if (found.outcome === 'invalid') throw new Error(found.reason);
    expect(found).toMatchObject({ outcome: 'found', tried: 20, failing: 1 });
    expect(found.failure?.seed).toBe(0);
  });

  it('is none where none fails', async () => {
    const found = await explore(
      programOf(() => false),
      options,
    );
    expect(found).toMatchObject({ outcome: 'not-found', tried: 20, failing: 0, failure: null });
  });
});

describe('a schedule that is shrunk', () => {
  it('keeps a wait: without any it is the undisturbed program', async () => {
    const program = programOf(() => true);
    const schedule = {
      ...setting,
      strategy: 'explicit',
      delays: [
        ['1', 1, 4],
        ['1', 2, 4],
      ],
    } as const;
    const baseline = await programOf(() => false).run({ ...setting, strategy: 'none' }, 1);
    const shrunk = await shrinkSchedule(program, {
      schedule,
      baseline,
      limit: 1,
      keep: 0.5,
      budget: new Budget({ trials: 500, time: 60 }),
    });
    expect(shrunk?.delays).toHaveLength(1);
    expect(shrunk).toMatchObject({ before: 2, verified: { failing: 10, runs: 10 }, fellBack: 0 });
  });
});

describe('what exploring prints', () => {
  const program = {
    language: 'python',
    interpreter: 'python3',
    flags: [],
    argv: [],
    cwd: '/',
    env: {},
  } as const;
  const text = (output: string, ...named: readonly string[]): string => {
    const found = { outcome: 'invalid', reason: 'undisturbed, it exited with 1', output } as const;
    return explorationText(found, null, { program, named });
  };

  it('says what to do with a reproduction that takes no schedule, and nothing of others', () => {
    const next =
      'next: it takes no schedule; trace repro run lost says how often it fails, trace repro shrink lost makes it smaller\n';
    expect(text('lost\nErrors: 3 / 20\n', 'lost')).toMatch(new RegExp(`${next}$`));
    expect(text('Traceback\n', 'lost')).not.toContain('next:');
    expect(text('Errors: 3 / 20\n', '--', 'python3', 'app.py')).not.toContain('next:');
  });

  it('shows no credential of what the program wrote', () => {
    const said = text('no answer of redis://:S3cretValue9@h.example\n', '--', 'python3', 'app.py');
    expect(said).toContain('no answer of redis://:***@h.example');
  });
});
