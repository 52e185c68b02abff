import { resolve } from 'node:path';
import { accessesAround } from '../../../../repro/schedules/between.ts';
import { delaysOf } from '../../../../repro/schedules/course.ts';
import { undisturbed } from '../../../../repro/schedules/explore.ts';
import type { Schedule } from '../../../../repro/schedules/schedule.ts';
import { Budget } from '../../../../repro/shrink/budget.ts';
import { shrinkSchedule } from '../../../../repro/shrink/schedule.ts';
import { usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import type { Ratio } from '../../../core/types.ts';
import type { Command, CommandContext, OptionValues } from '../../command-line/command.ts';
import { parseDecimal, parseDuration } from '../../command-line/parse.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { chooseProgram, countOf, limitOf, openRunner, textOf } from '../explore/options.ts';
import { givenSchedule, scheduleFor } from '../replay/replay.ts';
import { shrinkFolder } from './folder.ts';
import { stopCode } from './stop-code.ts';
import { budgetText, shrunkText } from './text.ts';
import { reproShrinkUsage } from './usage.ts';
import { inOneLine } from '../../../core/text.ts';

/** `trace repro shrink`: the smallest case that still fails. */
export const reproShrinkCommand: Command = { ...reproShrinkUsage, run };

const TRIALS = 1000;
const MOST_TRIALS = 1_000_000;
const KEEP: Ratio = 0.5;

/** What the flags say of rate and cost. */
function limitsOf(values: OptionValues): { keep: Ratio; trials: number; time: number } {
  const rate = { flag: '--keep-rate', least: 0.01, most: 1 };
  const time = { flag: '--time', bare: 's', least: 1, most: 86_400 } as const;
  return {
    keep: parseDecimal(textOf(values, 'keep-rate') ?? String(KEEP), rate),
    trials: countOf(values, 'trials', { fallback: TRIALS, least: 1, most: MOST_TRIALS }),
    time: parseDuration(textOf(values, 'time') ?? '10m', time),
  };
}

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, environment } = context;
  const limits = limitsOf(values);
  const [folder] = context.positionals;
  if (textOf(values, 'schedule') === undefined && folder !== undefined)
    return shrinkFolder(context, { folder: resolve(environment.cwd, folder), limits });
  if (values['control'] !== undefined || values['no-control'] === true)
    throw usageError(
      'with a schedule, the control is the run without its waits',
      'Leave --control out, or shrink the parameters: trace repro shrink <dir>',
    );
  const given = givenSchedule(values);
  const program = await chooseProgram(context);
  const schedule = scheduleFor(program, given);
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  const runner = await openRunner(program);
  // The run that is going is finished: what is smallest until then is printed.
  signals.listen(() => abort.abort());
  try {
    if (values['quiet'] !== true) environment.stderr.write(budgetText(limits));
    const { clock, threads, include } = schedule;
    const limit = limitOf(values);
    const baseline = await undisturbed(runner, { clock, threads, include, limit });
    if ('outcome' in baseline) {
      environment.stdout.write(`invalid: ${baseline.reason}\n`);
      return EXIT.invalid;
    }
    const budget = new Budget({ ...limits, abort: abort.signal });
    const shrunk = await shrinkSchedule(runner, {
      schedule: await explicitOf(schedule, (one) => runner.run(one, baseline.limit)),
      baseline: baseline.course,
      limit: baseline.limit,
      keep: limits.keep,
      budget,
    });
    if (shrunk === null) {
      environment.stdout.write(
        `invalid: under this schedule it does not fail at a rate of ${limits.keep}\n`,
      );
      return stopCode(signals) ?? EXIT.invalid;
    }
    const around = await accessesAround(program, shrunk.places);
    const text = shrunkText(shrunk, around, { program, budget });
    environment.onResult?.({ summary: inOneLine(text), link: folder ?? null });
    environment.stdout.write(text);
    return stopCode(signals) ?? (shrunk.verified.failing > 0 ? EXIT.ok : EXIT.invalid);
  } finally {
    signals.close();
    await runner.close();
  }
}

/** A schedule with its waits written out: of one that draws them, those that a run drew. */
async function explicitOf(
  schedule: Schedule,
  run: (schedule: Schedule) => Promise<{ points: Parameters<typeof delaysOf>[0] }>,
): Promise<Schedule & { readonly strategy: 'explicit' }> {
  if (schedule.strategy === 'explicit') return schedule;
  const { clock, threads, include } = schedule;
  const { points } = await run(schedule);
  return { clock, threads, include, strategy: 'explicit', delays: delaysOf(points) };
}
