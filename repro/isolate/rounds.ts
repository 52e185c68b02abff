import { runTrial } from '../trials/run-trial.ts';
import type { Trial } from '../trials/trial.ts';
import type { Setting } from './setting.ts';

export interface RoundsOptions {
  readonly folder: string;
  readonly settings: readonly Setting[];
  /** Trials of each setting. */
  readonly runs: number;
  readonly seed: number;
  readonly abort: AbortSignal;
  readonly onTrial: (setting: Setting, trial: Trial) => void;
}

/** Trials of one setting. */
export interface SettingTrials {
  readonly setting: Setting;
  readonly trials: readonly Trial[];
}

/**
 * One trial of each setting a round, all with one seed, the order turned by one place from round to round: a machine that becomes slower does so
 * to all of them. Gives what was run until an abort.
 */
export async function runRounds(options: RoundsOptions): Promise<readonly SettingTrials[]> {
  const { folder, settings, runs, seed, abort, onTrial } = options;
  const all = settings.map((setting) => ({ setting, trials: [] as Trial[] }));
  for (let round = 0; round < runs; round++) {
    for (let turn = 0; turn < all.length; turn++) {
      const one = all[(turn + round) % all.length];
      if (one === undefined) continue;
      const { parameters, environment, command } = one.setting;
      const trial = await runTrial(folder, {
        seed: seed + round,
        parameters,
        environment,
        ...(command === undefined ? {} : { command }),
        abort,
      });
      if (abort.aborted) return all;
      one.trials.push(trial);
      onTrial(one.setting, trial);
    }
  }
  return all;
}
