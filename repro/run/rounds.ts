import type { ReproParameters } from '../parameters/parameters.ts';
import { runTrial, type TrialEnvironment } from '../trials/run-trial.ts';
import type { Trial } from '../trials/trial.ts';

/** What is tried: a reproduction with some parameters in some environment. */
export interface Arm {
  readonly parameters: ReproParameters;
  readonly environment: TrialEnvironment;
  /** In place of the interpreter and the script. */
  readonly command?: readonly string[];
}

/** Trials of an arm so far. */
export interface ArmTrials<A extends Arm> {
  readonly arm: A;
  readonly trials: readonly Trial[];
}

/** Trials of some arms, in turn. */
export interface RoundsOptions<A extends Arm> {
  readonly folder: string;
  readonly arms: readonly A[];
  /** Trials of each arm. */
  readonly runs: number;
  readonly seed: number;
  readonly abort: AbortSignal;
  /** Called after each trial; the rounds end when it says true. */
  readonly onTrial: (arm: A, trial: Trial) => boolean;
}

/**
 * One trial of each arm a round, all with one seed, the order turned by one place from round to round: a machine that becomes slower does so
 * to all of them. Gives what was run until an abort.
 */
export async function runRounds<A extends Arm>(
  options: RoundsOptions<A>,
): Promise<readonly ArmTrials<A>[]> {
  const { folder, arms, runs, seed, abort, onTrial } = options;
  const all = arms.map((arm) => ({ arm, trials: [] as Trial[] }));
  for (let round = 0; round < runs; round++) {
    for (let turn = 0; turn < all.length; turn++) {
      const one = all[(turn + round) % all.length];
      if (one === undefined) continue;
      const { parameters, environment, command } = one.arm;
      const trial = await runTrial(folder, {
        seed: seed + round,
        parameters,
        environment,
        ...(command === undefined ? {} : { command }),
        abort,
      });
      // One that was cut off says nothing, not even that it could not run.
      if (abort.aborted) return all;
      one.trials.push(trial);
      if (onTrial(one.arm, trial)) return all;
    }
  }
  return all;
}
