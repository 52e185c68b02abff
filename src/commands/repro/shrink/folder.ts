import { join } from 'node:path';
import type { ReproParameters } from '../../../../repro/parameters/parameters.ts';
import { PARAMETERS_FILE, readParameters } from '../../../../repro/parameters/read.ts';
import { writeParameters } from '../../../../repro/parameters/write.ts';
import { Budget } from '../../../../repro/shrink/budget.ts';
import { shrinkParameters } from '../../../../repro/shrink/parameters.ts';
import { runTrial } from '../../../../repro/trials/run-trial.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import type { Ratio, Seconds } from '../../../core/types.ts';
import type { CommandContext } from '../../command-line/command.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { parseTrialChoice, trialEnvironment } from '../trial-environment.ts';
import { stopCode } from './stop-code.ts';
import { budgetText } from './text.ts';

const SMALL_FILE = 'parameters.small.json';

/** Shrinks the parameters of a folder, and writes them there. */
export async function shrinkFolder(
  { values, environment }: CommandContext,
  asked: {
    readonly folder: string;
    readonly limits: { keep: Ratio; trials: number; time: Seconds };
  },
): Promise<ExitCode> {
  const { folder, limits } = asked;
  const given = await readParameters(folder);
  const choice = parseTrialChoice(values);
  const { language } = given;
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  // The trial that is going is ended, with all of its processes; it counts as none.
  signals.listen(() => abort.abort());
  const budget = new Budget({ ...limits, abort: abort.signal });
  try {
    const chosen = await trialEnvironment(choice, { language, environment, abort: abort.signal });
    if (values['quiet'] !== true) environment.stderr.write(budgetText(limits));
    const shrunk = await shrinkParameters(given, {
      keep: limits.keep,
      budget,
      trial: async (parameters, seed) => {
        const options = { seed, parameters, environment: chosen, abort: abort.signal };
        const { outcome } = await runTrial(folder, options);
        return outcome === 'invalid' ? null : outcome === 'reproduced';
      },
    });
    if (shrunk === null) {
      environment.stdout.write(`invalid: it does not fail at a rate of ${limits.keep}\n`);
      return stopCode(signals) ?? EXIT.invalid;
    }
    const { parameters, isMinimal, verified } = shrunk;
    const name = values['write'] === true ? PARAMETERS_FILE : SMALL_FILE;
    const isSound = verified.failing > 0;
    if (isSound || name === SMALL_FILE) await writeParameters(join(folder, name), parameters);
    const lines = [
      `${sizes(given)} before, in ${budget.spent} trials and ${budget.elapsed.toFixed(1)} s${isMinimal ? '' : '; the budget ended before everything was tried'}`,
      `${sizes(parameters)} left: ${name}`,
      `verified with fresh seeds: fails ${verified.failing} of ${verified.runs}`,
    ];
    environment.stdout.write(`${lines.join('\n')}\n`);
    return stopCode(signals) ?? (isSound ? EXIT.ok : EXIT.invalid);
  } finally {
    signals.close();
  }
}

function sizes({ attempts, concurrency, call, traffic }: ReproParameters): string {
  const input =
    call === undefined
      ? `${traffic?.requests.length ?? 0} requests`
      : `${call.args.length} argument lists`;
  return `${attempts} attempts, ${concurrency} at once, ${input}`;
}
