import type { Seconds } from '../../src/core/types.ts';
import {
  type Course,
  type CourseRunner,
  delaysOf,
  describeCourseEnd,
  type Divergence,
  endsAlike,
  firstDivergence,
} from './course.ts';
import type { Schedule, ScheduleSetting } from './schedule.ts';
import { scheduleOf, type StrategyFacts, type StrategyName } from './strategies.ts';

/** Runs a program under one schedule after another until it ends otherwise than undisturbed. */

export interface ExploreOptions extends ScheduleSetting {
  readonly strategy: StrategyName;
  readonly schedules: number;
  /** Of the first schedule; each further one takes the next. */
  readonly seed: number;
  readonly depth: number;
  readonly places: readonly string[];
  /** What a run may take; null: derived from the undisturbed runs. */
  readonly limit: Seconds | null;
  /** Goes on after the first failing schedule. */
  readonly all: boolean;
  readonly abort?: AbortSignal;
  /** Called after each schedule. */
  readonly onSchedule?: (tried: number, failing: number) => void;
}

/** The undisturbed program. */
export interface Baseline {
  readonly course: Course;
  /** Points of a run, and the tasks that met them. */
  readonly points: number;
  readonly tasks: number;
  readonly limit: Seconds;
}

/** A schedule under which the program ends otherwise. */
export interface Failure {
  /** With all its waits written out: what is replayed. */
  readonly schedule: Schedule;
  readonly seed: number;
  /** The how manieth schedule it was, from 1. */
  readonly number: number;
  readonly course: Course;
}

export type Exploration =
  | { readonly outcome: 'invalid'; readonly reason: string; readonly output: string }
  | {
      readonly outcome: 'found' | 'not-found';
      readonly baseline: Baseline;
      readonly facts: StrategyFacts;
      readonly tried: number;
      readonly failing: number;
      /** The first one. */
      readonly failure: Failure | null;
      readonly interrupted: boolean;
    };

/** Undisturbed runs that must end alike before anything is compared with them. */
const BASELINE_RUNS = 3;
/** For the first run nothing is known yet. */
const FIRST_LIMIT: Seconds = 60;
/** A disturbed run waits at some thousand points at most: a run that takes this much longer than an undisturbed one hangs. */
const LIMIT_FACTOR = 20;
const LEAST_LIMIT: Seconds = 10;
/** What a reproduction's script ends with when it cannot test. */
const CANNOT_TEST = 125;

/** Explores. A program that fails undisturbed, cannot start, or gives no chance to wait, is `invalid`. */
export async function explore(runner: CourseRunner, options: ExploreOptions): Promise<Exploration> {
  const baseline = await undisturbed(runner, options);
  if ('outcome' in baseline) return baseline;
  const { strategy: name, depth, places } = options;
  const facts = { name, depth, places, points: baseline.points, tasks: baseline.tasks };
  let failure: Failure | null = null;
  let doubtful: Failure | null = null;
  let failing = 0;
  let tried = 0;
  const failsAgain = async ({ schedule }: Failure): Promise<boolean> =>
    !endsAlike(await runner.run(schedule, baseline.limit), baseline.course);
  while (tried < options.schedules && !isStopped(options)) {
    const seed = options.seed + tried;
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    const course = await runner.run(scheduleOf(seed, facts, settingOf(options)), baseline.limit);
    if (isStopped(options)) break;
    tried++;
    // A script that could not test under a schedule says nothing about it.
    if (course.code !== CANNOT_TEST && !endsAlike(course, baseline.course)) {
      failing++;
      const one = { schedule: writtenOut(course, options), seed, number: tried, course };
      // A machine that stood still fails a run as well: what fails again is preferred to what was seen once.
      // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
      if (failure === null && (await failsAgain(one))) failure = one;
      doubtful ??= one;
    }
    options.onSchedule?.(tried, failing);
    if (failure !== null && !options.all) break;
  }
  failure ??= doubtful;
  return {
    outcome: failure === null ? 'not-found' : 'found',
    baseline,
    facts,
    tried,
    failing,
    failure,
    interrupted: isStopped(options),
  };
}

/** The undisturbed program, run several times; `invalid` when it fails by itself, differs, or meets no point. */
export async function undisturbed(
  runner: CourseRunner,
  options: ScheduleSetting & { readonly limit: Seconds | null; readonly abort?: AbortSignal },
): Promise<Baseline | Extract<Exploration, { outcome: 'invalid' }>> {
  const courses: Course[] = [];
  for (let count = 0; count < BASELINE_RUNS; count++) {
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    const course = await runner.run(
      { ...settingOf(options), strategy: 'none' },
      options.limit ?? FIRST_LIMIT,
    );
    if (isStopped(options)) return { outcome: 'invalid', reason: 'interrupted', output: '' };
    if (course.code !== 0) {
      const reason =
        course.code === CANNOT_TEST
          ? 'it cannot test'
          : `undisturbed, it ${describeCourseEnd(course)}`;
      return { outcome: 'invalid', reason, output: course.output };
    }
    courses.push(course);
  }
  const [course] = courses;
  if (course === undefined) throw new TypeError('no run');
  const points = Math.max(...courses.map((one) => one.points.length));
  if (points === 0) {
    const reason = 'it met no point where it could wait: no await or thread of its own code';
    return { outcome: 'invalid', reason, output: course.output };
  }
  const longest = Math.max(...courses.map(({ seconds }) => seconds));
  const limit = options.limit ?? Math.max(LEAST_LIMIT, LIMIT_FACTOR * longest);
  const tasks = new Set(course.points.map(({ task }) => task)).size;
  return { course, points, tasks, limit };
}

function settingOf({ clock, threads, include }: ScheduleSetting): ScheduleSetting {
  return { clock, threads, include };
}

/** The schedule of a run with each of its waits written out, so that single ones can be left out. */
function writtenOut({ points }: Course, setting: ScheduleSetting): Schedule {
  return { ...settingOf(setting), strategy: 'explicit', delays: delaysOf(points) };
}

/** How often a schedule fails when it is repeated. */
export interface Replay {
  readonly runs: number;
  readonly failing: number;
  /** Of the runs that ended otherwise than the first, or else met other points. */
  readonly divergence: Divergence | null;
  readonly first: Course;
}

/** Repeats a schedule. */
export async function replay(
  runner: CourseRunner,
  schedule: Schedule,
  options: {
    readonly runs: number;
    readonly limit: Seconds;
    readonly baseline: Course;
    readonly abort?: AbortSignal;
  },
): Promise<Replay> {
  const courses: Course[] = [];
  while (courses.length < options.runs && !isStopped(options)) {
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    courses.push(await runner.run(schedule, options.limit));
  }
  const [first] = courses;
  if (first === undefined) throw new TypeError('no run');
  const failing = courses.filter((one) => !endsAlike(one, options.baseline)).length;
  const other =
    courses.find((one) => !endsAlike(one, first)) ??
    courses.find((one) => firstDivergence(first.points, one.points) !== null);
  const divergence = other === undefined ? null : firstDivergence(first.points, other.points);
  return { runs: courses.length, failing, divergence, first };
}

/** Asked anew each time: it changes while a run is waited for. */
function isStopped({ abort }: { readonly abort?: AbortSignal }): boolean {
  return abort?.aborted === true;
}
