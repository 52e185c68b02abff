import { relative, resolve } from 'node:path';
import type { Between } from '../../../../repro/schedules/between.ts';
import type { Point } from '../../../../repro/schedules/course.ts';
import type { Program } from '../../../../repro/schedules/program.ts';
import { writeSchedule } from '../../../../repro/schedules/schedule.ts';
import type { Budget } from '../../../../repro/shrink/budget.ts';
import type { ShrunkSchedule } from '../../../../repro/shrink/schedule.ts';
import { printable } from '../../../core/text.ts';
import type { Ratio, Seconds } from '../../../core/types.ts';
import { writeDuration } from '../../../core/duration.ts';
import { formatSeconds } from '../../../core/units.ts';

/** What minimising may cost, before it begins. */
export function budgetText(limits: { keep: Ratio; trials: number; time: Seconds }): string {
  return `at most ${limits.trials} runs and ${writeDuration(limits.time)}; kept is what fails at a rate of ${limits.keep} or more\n`;
}

/** That smaller cases were given up, as a part of a line; nothing where the smallest one held. */
export function fellBackText(fellBack: number): string {
  return fellBack === 0
    ? ''
    : `; ${fellBack} smaller ${fellBack === 1 ? 'one' : 'ones'} did not hold`;
}

/** What is left of a schedule, and where. */
export function shrunkText(
  shrunk: ShrunkSchedule,
  around: readonly (Between | null)[],
  { program, budget }: { readonly program: Program; readonly budget: Budget },
): string {
  const { delays, places, before, verified, isMinimal, fellBack, schedule } = shrunk;
  const lines = [
    `${before} waits before, ${delays.length} left, in ${budget.spent} runs and ${formatSeconds(budget.elapsed)}${isMinimal ? '' : '; the budget ended before every one was tried'}`,
    `verified: fails ${verified.failing} of ${verified.runs}${fellBackText(fellBack)}`,
    `schedule: ${writeSchedule(program.language, schedule)}`,
  ];
  const described = places.map((point, at) => placeText(point, around[at] ?? null, program.cwd));
  const [only] = described;
  if (described.length === 1 && only !== undefined) lines.push(`one delay suffices: ${only}`);
  else lines.push(`${delays.length} delays are needed:`, ...described.map((text) => `  ${text}`));
  return `${lines.join('\n')}\n`;
}

function placeText(point: Point, around: Between | null, cwd: string): string {
  if (around === null) {
    const [frame = '?'] = point.frames;
    const at = frame.lastIndexOf(':');
    const path = relative(cwd, resolve(cwd, frame.slice(0, at)));
    return `the \`await\` at ${printable(path, 120)}${frame.slice(at)}`;
  }
  const { path, line, name, before, after } = around;
  return `the \`await\` at ${printable(path, 120)}:${line}, between the ${before.kind} of \`${printable(name, 60)}\` at :${before.line} and the ${after.kind} at :${after.line}`;
}
