import type { CourseRunner } from '../../../../repro/schedules/course.ts';
import {
  explore,
  type Exploration,
  replay,
  type Replay,
} from '../../../../repro/schedules/explore.ts';
import { EXIT, type ExitCode, exitCodeOfStop } from '../../../core/exit-code.ts';
import type { Command, CommandContext } from '../../command-line/command.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { chooseProgram, openRunner, parseExploreOptions } from './options.ts';
import { explorationText } from './text.ts';
import { reproExploreUsage } from './usage.ts';
import { inOneLine } from '../../../core/text.ts';

/** `trace repro explore`: schedules until one makes the program fail. */
export const reproExploreCommand: Command = { ...reproExploreUsage, run };

/** How often a failing schedule is repeated before it is said to repeat. */
const REPLAYS = 5;
/** A line on stderr after this many schedules. */
const PROGRESS_EVERY = 50;

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, environment } = context;
  const options = parseExploreOptions(values);
  const program = await chooseProgram(context);
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  const runner = await openRunner(program);
  // What runs is ended at once; what was tried until then is printed.
  signals.listen(() => {
    abort.abort();
    void runner.close();
  });
  try {
    const found = await explore(runner, {
      ...options,
      abort: abort.signal,
      onSchedule: (tried, failing) => {
        if (values['quiet'] !== true && tried % PROGRESS_EVERY === 0)
          environment.stderr.write(`${tried} schedules, ${failing} failed\n`);
      },
    });
    const repeated = await repeat(runner, found, abort.signal);
    const text = explorationText(found, repeated, { program, ...sourceOf(context) });
    // Without the program's own last lines, which are indented.
    const summary = inOneLine(text.replaceAll(/^ .*\n/gm, ''));
    environment.onResult?.({ summary, link: context.positionals[0] ?? null });
    environment.stdout.write(text);
    return exitCodeOf(found, signals.received);
  } finally {
    signals.close();
    await runner.close();
  }
}

async function repeat(
  runner: CourseRunner,
  found: Exploration,
  abort: AbortSignal,
): Promise<Replay | null> {
  if (found.outcome === 'invalid' || found.failure === null || abort.aborted) return null;
  const { course: baseline, limit } = found.baseline;
  return replay(runner, found.failure.schedule, { runs: REPLAYS, limit, baseline, abort });
}

/** How the program was named, for the commands that go on with it. */
function sourceOf({ positionals, command }: CommandContext): { readonly named: readonly string[] } {
  return { named: command.length > 0 ? ['--', ...command] : positionals };
}

function exitCodeOf(found: Exploration, signal: 'SIGINT' | 'SIGTERM' | null): ExitCode {
  if (signal !== null) return exitCodeOfStop(signal);
  if (found.outcome === 'invalid') return EXIT.invalid;
  return found.outcome === 'found' ? EXIT.finding : EXIT.ok;
}
