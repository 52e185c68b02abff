import { join } from 'node:path';
import type { ReproParameters } from '../../../../repro/parameters/parameters.ts';
import { PARAMETERS_FILE, readParameters } from '../../../../repro/parameters/read.ts';
import { writeParameters } from '../../../../repro/parameters/write.ts';
import { Budget } from '../../../../repro/shrink/budget.ts';
import { type ParameterTrial, shrinkParameters } from '../../../../repro/shrink/parameters.ts';
import type { Verified } from '../../../../repro/shrink/verify.ts';
import { runTrial, type TrialEnvironment } from '../../../../repro/trials/run-trial.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import type { Ratio, Seconds } from '../../../core/types.ts';
import { formatSeconds } from '../../../core/units.ts';
import type { CommandContext } from '../../command-line/command.ts';
import { StopSignals } from '../../watching/stop-signals.ts';
import { makeArms } from '../run/arms.ts';
import { parseControl } from '../run/options.ts';
import { parseTrialChoice } from '../trial-environment.ts';
import { stopCode } from './stop-code.ts';
import { budgetText, fellBackText } from './text.ts';

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
  const choices = { trials: parseTrialChoice(values), control: parseControl(values) };
  const signals = new StopSignals(environment);
  const abort = new AbortController();
  // The trial that is going is ended, with all of its processes; it counts as none.
  signals.listen(() => abort.abort());
  const budget = new Budget({ ...limits, abort: abort.signal });
  try {
    const arms = await makeArms(given, { options: choices, environment, abort: abort.signal });
    const trialIn =
      (chosen: TrialEnvironment, alone = false): ParameterTrial =>
      async (parameters, seed) => {
        const { outcome } = await runTrial(folder, {
          seed,
          parameters: alone ? { ...parameters, concurrency: 1 } : parameters,
          environment: chosen,
          abort: abort.signal,
        });
        return outcome === 'invalid' ? null : outcome === 'reproduced';
      };
    const alone = choices.control.kind === 'alone';
    if (values['quiet'] !== true) environment.stderr.write(budgetText(limits));
    const shrunk = await shrinkParameters(given, {
      keep: limits.keep,
      budget,
      trial: trialIn(arms.subject.environment),
      control:
        arms.control === null
          ? null
          : { trial: trialIn(arms.control.environment, alone), isAskedFor: !alone },
    });
    if (typeof shrunk === 'string') {
      const why = {
        'too-rare': `it does not fail at a rate of ${limits.keep}`,
        'control-fails': `the control, ${arms.control?.label ?? ''}, fails as well, or cannot run`,
        'out-of-budget':
          'the budget ended before it was known how often it, or its control, fails as given',
      }[shrunk];
      environment.stdout.write(`invalid: ${why}\n`);
      return stopCode(signals) ?? EXIT.invalid;
    }
    const { parameters, isMinimal, looked, verified, control, fellBack } = shrunk;
    const name = values['write'] === true ? PARAMETERS_FILE : SMALL_FILE;
    const isSound =
      verified.failing > 0 && (control === null || (control.failing === 0 && control.runs > 0));
    if (isSound || name === SMALL_FILE) await writeParameters(join(folder, name), parameters);
    const lines = [
      `${sizes(given)} before, in ${budget.spent} trials and ${formatSeconds(looked)}${isMinimal ? '' : '; the budget ended before everything was tried'}`,
      `${sizes(parameters)} left: ${name}`,
      `verified with fresh seeds: fails ${verified.failing} of ${verified.runs}, in ${formatSeconds(budget.elapsed - looked)} more${fellBackText(fellBack)}`,
      controlText(arms.control?.label ?? null, control),
    ];
    environment.onResult?.({ summary: lines.join('; '), link: folder });
    environment.stdout.write(`${lines.join('\n')}\n`);
    return stopCode(signals) ?? (isSound ? EXIT.ok : EXIT.invalid);
  } finally {
    signals.close();
  }
}

/** What the control did with the result. */
function controlText(label: string | null, verified: Verified | null): string {
  if (label === null) return 'without a control';
  if (verified === null)
    return `without a control: with ${label} it fails as well; --control names a fixed version`;
  return `the control, ${label}: fails ${verified.failing} of ${verified.runs}`;
}

function sizes({ attempts, concurrency, call, traffic }: ReproParameters): string {
  const input =
    call === undefined
      ? `${traffic?.requests.length ?? 0} requests`
      : `${call.args.length} argument lists`;
  return `${attempts} attempts, ${concurrency} at once, ${input}`;
}
