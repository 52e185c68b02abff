import type { Ratio, Seconds } from '../../src/core/types.ts';
import { type Course, type CourseRunner, endsAlike, type Point } from '../schedules/course.ts';
import type { Delay, Schedule } from '../schedules/schedule.ts';
import { type Budget, stillFails } from './budget.ts';
import { ddmin, smallest } from './ddmin.ts';
import { smallestThatHolds, type Verified } from './verify.ts';

/** The fewest and shortest waits with which a program still fails. */

export interface ShrunkSchedule {
  readonly schedule: Schedule;
  /** The waits that are left. */
  readonly delays: readonly Delay[];
  /** Where they are, from a run that failed. */
  readonly places: readonly Point[];
  /** Waits of the schedule that was given. */
  readonly before: number;
  readonly isMinimal: boolean;
  /** Of runs with the result, after it was found. */
  readonly verified: Verified;
  /** Schedules that were smaller, and that runs did not confirm. */
  readonly fellBack: number;
}

export interface ShrinkScheduleOptions {
  readonly schedule: Schedule & { readonly strategy: 'explicit' };
  readonly baseline: Course;
  readonly limit: Seconds;
  readonly keep: Ratio;
  readonly budget: Budget;
}

/** Runs after the end, on top of the budget: what was found by trying is not taken on its own word. */
const VERIFYING_RUNS = 10;

/** Shrinks. Null when the schedule as given does not fail at the rate to keep. */
export async function shrinkSchedule(
  runner: CourseRunner,
  options: ShrinkScheduleOptions,
): Promise<ShrunkSchedule | null> {
  const { schedule, baseline, limit, keep, budget } = options;
  let witness: Course | null = null;
  const trial = (delays: readonly Delay[]) => async (): Promise<boolean> => {
    const course = await runner.run({ ...schedule, delays }, limit);
    const fails = !endsAlike(course, baseline);
    if (fails) witness = course;
    return fails;
  };
  const taken: [readonly Delay[], ...(readonly Delay[])[]] = [schedule.delays];
  const keeps = async (delays: readonly Delay[]): Promise<boolean | null> => {
    // Without any wait it is the undisturbed program, which was seen not to fail.
    if (delays.length === 0) return false;
    const does = await stillFails(trial(delays), keep, budget);
    if (does === true) taken.push(delays);
    return does;
  };
  if ((await stillFails(trial(schedule.delays), keep, budget)) !== true) return null;
  const { kept, isMinimal } = await ddmin(schedule.delays, keeps);
  await shorten(kept, keeps);
  const held = await smallestThatHolds(taken, {
    trial: (delays) => trial(delays)(),
    control: null,
    keep,
    runs: VERIFYING_RUNS,
    budget,
  });
  return {
    schedule: { ...schedule, delays: held.one },
    delays: held.one,
    places: placesOf(held.one, witness),
    before: schedule.delays.length,
    isMinimal,
    verified: held.verified,
    fellBack: held.fellBack,
  };
}

/** Tries each wait as short as it can be while the others are what they are. */
async function shorten(
  delays: readonly Delay[],
  keeps: (delays: readonly Delay[]) => Promise<boolean | null>,
): Promise<void> {
  let shortened = delays;
  for (const [at, [task, step, turns]] of delays.entries()) {
    const sign = Math.sign(turns);
    const attempt = (size: number): readonly Delay[] =>
      shortened.map((delay, other) => (other === at ? [task, step, sign * size] : delay));
    // oxlint-disable-next-line no-await-in-loop -- each step depends on the one before
    const size = await smallest(Math.abs(turns), 1, (candidate) => keeps(attempt(candidate)));
    shortened = attempt(size);
  }
}

function placesOf(delays: readonly Delay[], witness: Course | null): readonly Point[] {
  return delays.flatMap(([task, step]) => {
    const found = witness?.points.find((point) => point.task === task && point.step === step);
    return found === undefined ? [] : [found];
  });
}
