import { pinsText, withPin } from '../../../../repro/environments/pins.ts';
import type { ReproParameters } from '../../../../repro/parameters/parameters.ts';
import type { Arm } from '../../../../repro/run/rounds.ts';
import type { Environment } from '../../command-line/command.ts';
import { type TrialChoice, trialEnvironment } from '../trial-environment.ts';
import type { RunOptions } from './options.ts';

/** An arm as the verdict names it. */
export interface NamedArm extends Arm {
  readonly label: string;
}

/** What is tried, and what it is compared with. */
export interface Arms {
  readonly subject: NamedArm;
  readonly control: NamedArm | null;
}

/** Makes the environments that the options ask for. Rejects with a TraceError when one cannot be made. */
export async function makeArms(
  parameters: ReproParameters,
  context: {
    readonly options: Pick<RunOptions, 'control' | 'trials'>;
    readonly environment: Environment;
    readonly abort: AbortSignal;
  },
): Promise<Arms> {
  const { options, environment, abort } = context;
  const { control, trials } = options;
  const { language } = parameters;
  const within = (choice: TrialChoice) =>
    trialEnvironment(choice, { language, environment, abort });
  const subject: NamedArm = {
    label: trials.packages.length === 0 ? 'as given' : pinsText(trials.packages),
    parameters,
    environment: await within(trials),
  };
  if (control.kind === 'package') {
    const packages = withPin(trials.packages, control.pin);
    const made = await within({ ...trials, packages });
    return { subject, control: { label: pinsText(packages), parameters, environment: made } };
  }
  if (control.kind === 'interpreter') {
    const made = await within({ ...trials, [control.language]: control.program });
    return { subject, control: { label: control.program, parameters, environment: made } };
  }
  // One attempt at a time is no control of one that makes one at a time anyway.
  if (control.kind === 'none' || parameters.concurrency === 1) return { subject, control: null };
  const alone = { ...parameters, concurrency: 1 };
  return { subject, control: { ...subject, label: 'concurrency 1', parameters: alone } };
}
