import type { ReproParameters } from '../parameters/parameters.ts';
import { runTrial, type TrialEnvironment } from '../trials/run-trial.ts';
import type { Trial } from '../trials/trial.ts';

/** What is tried: a reproduction with some parameters in some environment. */
export interface Arm {
  /** As the verdict names it. */
  readonly label: string;
  readonly parameters: ReproParameters;
  readonly environment: TrialEnvironment;
}

/** Trials of an arm so far. */
export interface ArmTrials {
  readonly label: string;
  readonly trials: Trial[];
}

/** A series of trials, some of them of the control. */
export interface SeriesOptions {
  readonly folder: string;
  readonly subject: Arm;
  readonly control: Arm | null;
  /** Trials of each arm. */
  readonly runs: number;
  readonly seed: number;
  readonly abort: AbortSignal;
  /** Called after each trial; the series ends when it says true. */
  readonly onTrial: (arm: Arm, trial: Trial) => boolean;
}

/**
 * Runs trials one after another, subject and control in turn with the same seeds, so that a machine that becomes slower does so to both. Which
 * of a pair goes first alternates. Gives what was run until an abort.
 */
export async function runSeries(
  options: SeriesOptions,
): Promise<{ readonly subject: ArmTrials; readonly control: ArmTrials | null }> {
  const { folder, subject, control, runs, seed, abort, onTrial } = options;
  const subjects: ArmTrials = { label: subject.label, trials: [] };
  const controls: ArmTrials | null = control === null ? null : { label: control.label, trials: [] };
  const pairs = [
    { arm: subject, into: subjects },
    ...(control === null || controls === null ? [] : [{ arm: control, into: controls }]),
  ];
  for (let i = 0; i < runs; i++) {
    for (const { arm, into } of i % 2 === 0 ? pairs : pairs.toReversed()) {
      const trial = await runTrial(folder, {
        seed: seed + i,
        parameters: arm.parameters,
        environment: arm.environment,
        abort,
      });
      // One that was cut off says nothing, not even that it could not run.
      if (abort.aborted) return { subject: subjects, control: controls };
      into.trials.push(trial);
      if (onTrial(arm, trial)) return { subject: subjects, control: controls };
    }
  }
  return { subject: subjects, control: controls };
}
