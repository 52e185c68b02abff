import {
  describeCourseEnd,
  type Divergence,
  type Point,
} from '../../../../repro/schedules/course.ts';
import type { Exploration, Replay } from '../../../../repro/schedules/explore.ts';
import type { Program } from '../../../../repro/schedules/program.ts';
import { writeSchedule } from '../../../../repro/schedules/schedule.ts';
import { pctBound } from '../../../../repro/schedules/strategies.ts';
import { maskArguments, maskText } from '../../../core/secrets/mask.ts';
import { printable } from '../../../core/text.ts';
import { formatNumber } from '../../../core/units.ts';

/** How the program was named on the command line: its folder, or `--` and a command. */
export interface Named {
  readonly program: Program;
  readonly named: readonly string[];
}

/** What exploring found, for people. */
export function explorationText(
  found: Exploration,
  repeated: Replay | null,
  { program, named }: Named,
): string {
  const rest = maskArguments(named).map((word) =>
    /^[\w./:=-]+$/.test(word) ? word : `'${printable(word, 200)}'`,
  );
  if (found.outcome === 'invalid') {
    const lines = ['invalid: ' + found.reason, ...tail(found.output)];
    // The script of a folder that has counted failures fails by itself, and often.
    if (named[0] !== '--' && /^Errors: [1-9]/m.test(found.output)) {
      const [folder] = rest;
      lines.push(
        `next: it takes no schedule; trace repro run ${folder} says how often it fails, trace repro shrink ${folder} makes it smaller`,
      );
    }
    return `${lines.join('\n')}\n`;
  }
  const { baseline, facts, tried, failing, failure } = found;
  const lines = [
    `${baseline.points} points in ${count(baseline.tasks, program.language === 'python' ? 'task' : 'place')} undisturbed, ${count(tried, 'schedule')} tried (${facts.name})${found.interrupted ? ', interrupted' : ''}`,
  ];
  if (facts.name === 'pct') {
    const bound = pctBound(facts, program.language === 'python');
    const together = 1 - (1 - bound) ** tried;
    lines.push(
      `a fault of depth ${facts.depth} shows with a probability of ${formatNumber(bound)} or more for each schedule, ${formatNumber(together)} for ${tried}`,
    );
  }
  if (failure === null) {
    lines.push(tried === 0 ? 'nothing was tried' : `no schedule failed: 0 / ${tried}`);
    return `${lines.join('\n')}\n`;
  }
  const { schedule, course, seed, number } = failure;
  const waits = schedule.strategy === 'explicit' ? schedule.delays.length : 0;
  lines.push(
    `failed: ${failing} / ${tried}, first at schedule ${number} (seed ${seed}): ${describeCourseEnd(course)}`,
    ...tail(course.output),
    `schedule of ${count(waits, 'wait')}: ${writeSchedule(program.language, schedule)}`,
  );
  if (repeated !== null) lines.push(...replayLines(repeated));
  lines.push(
    `next: trace repro shrink --schedule ${writeSchedule(program.language, schedule)} ${rest.join(' ')}`,
  );
  return `${lines.join('\n')}\n`;
}

/** How often a schedule failed again, and where two of its runs parted. */
export function replayLines({ runs, failing, divergence }: Replay): string[] {
  const lines = [`repeated: fails ${failing} of ${runs}`];
  if (divergence !== null) {
    lines.push(
      `the program has nondeterminism of its own: two runs part after ${count(divergence.after, 'point')}: ${parting(divergence)}`,
    );
  }
  return lines;
}

function parting({ one, other }: Divergence): string {
  return `${pointText(one)} in one, ${pointText(other)} in another`;
}

function pointText(point: Point | null): string {
  if (point === null) return 'its end';
  return `${printable(point.frames[0] ?? '?', 120)} (${printable(point.task, 60)}, step ${point.step})`;
}

/** The last lines of what a run wrote that are shown. */
const TAIL_LINES = 6;

function tail(output: string): string[] {
  const lines = output.trimEnd().split('\n').filter(Boolean);
  return lines
    .slice(-TAIL_LINES)
    .map((line) => `  | ${printable(maskText(line.slice(0, 1000)), 160)}`);
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
