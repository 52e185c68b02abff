import { describeCourseEnd } from '../../../../repro/schedules/course.ts';
import { replay, undisturbed } from '../../../../repro/schedules/explore.ts';
import type { Program } from '../../../../repro/schedules/program.ts';
import { readSchedule, type Schedule } from '../../../../repro/schedules/schedule.ts';
import { usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode, exitCodeOfStop } from '../../../core/exit-code.ts';
import type { Command, CommandContext, OptionValues } from '../../command-line/command.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { chooseProgram, countOf, limitOf, openRunner, textOf } from '../explore/options.ts';
import { replayLines } from '../explore/text.ts';
import { reproReplayUsage } from './usage.ts';

/** `trace repro replay`: one schedule, again and again. */
export const reproReplayCommand: Command = { ...reproReplayUsage, run };

const RUNS = 10;
const MOST_RUNS = 100_000;

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, environment } = context;
  const runs = countOf(values, 'runs', { fallback: RUNS, least: 1, most: MOST_RUNS });
  const given = givenSchedule(values);
  const program = await chooseProgram(context);
  const schedule = scheduleFor(program, given);
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  const runner = await openRunner(program);
  signals.listen(() => {
    abort.abort();
    void runner.close();
  });
  try {
    const { clock, threads, include } = schedule;
    const baseline = await undisturbed(runner, {
      clock,
      threads,
      include,
      limit: limitOf(values),
      abort: abort.signal,
    });
    if ('outcome' in baseline) {
      if (signals.received !== null) return EXIT.interrupted;
      environment.stdout.write(`invalid: ${baseline.reason}\n`);
      return EXIT.invalid;
    }
    const { course, limit } = baseline;
    const repeated = await replay(runner, schedule, {
      runs,
      limit,
      baseline: course,
      abort: abort.signal,
    });
    const lines = [`it ${describeCourseEnd(repeated.first)}`, ...replayLines(repeated)];
    environment.onResult?.({ summary: lines.join('; '), link: context.positionals[0] ?? null });
    environment.stdout.write(`${lines.join('\n')}\n`);
    if (signals.received !== null) return exitCodeOfStop(signals.received);
    return repeated.failing > 0 ? EXIT.finding : EXIT.ok;
  } finally {
    signals.close();
    await runner.close();
  }
}

/** The schedule that was given. A usage error without one. */
export function givenSchedule(values: OptionValues): ReturnType<typeof readSchedule> {
  const text = textOf(values, 'schedule');
  if (text === undefined)
    throw usageError('--schedule is missing', 'trace repro explore prints schedules that fail');
  return readSchedule(text);
}

/** A schedule, if it is one of this program's language. */
export function scheduleFor(
  program: Program,
  { language, schedule }: ReturnType<typeof readSchedule>,
): Schedule {
  if (language === program.language) return schedule;
  throw usageError(`the schedule is one of ${language}, and the program is ${program.language}`);
}
