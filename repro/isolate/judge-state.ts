import type { ReproParameters } from '../parameters/parameters.ts';
import { runTrial, type TrialEnvironment } from '../trials/run-trial.ts';
import type { Judged } from './border.ts';

/** What was tried in one state of the code: a commit, a release. */
export interface StateJudgement {
  readonly judged: Judged;
  readonly reproduced: number;
  readonly trials: number;
}

/** Trials until one reproduces, which makes the state bad; good after `runs` that did not, skipped when none could run. */
export async function judgeState(options: {
  readonly folder: string;
  readonly parameters: ReproParameters;
  readonly environment: TrialEnvironment;
  readonly runs: number;
  readonly seed: number;
  readonly abort: AbortSignal;
}): Promise<StateJudgement> {
  const { folder, parameters, environment, runs, seed, abort } = options;
  let trials = 0;
  for (let run = 0; run < runs && !abort.aborted; run++) {
    // oxlint-disable-next-line no-await-in-loop -- one after another: the first that reproduces decides
    const { outcome } = await runTrial(folder, {
      seed: seed + run,
      parameters,
      environment,
      abort,
    });
    if (outcome === 'invalid') continue;
    trials += 1;
    if (outcome === 'reproduced') return { judged: 'bad', reproduced: 1, trials };
  }
  return { judged: trials === 0 ? 'skip' : 'good', reproduced: 0, trials };
}
