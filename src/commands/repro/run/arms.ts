import { environmentWith } from '../../../../repro/environments/environment.ts';
import { type Pin, pinsText, withPin } from '../../../../repro/environments/pins.ts';
import type { ReproParameters } from '../../../../repro/parameters/parameters.ts';
import type { Arm } from '../../../../repro/run/series.ts';
import type { TrialEnvironment } from '../../../../repro/trials/run-trial.ts';
import type { Environment } from '../../command-line/command.ts';
import type { RunOptions } from './options.ts';

/** What is tried, and what it is compared with. */
export interface Arms {
  readonly subject: Arm;
  readonly control: Arm | null;
}

/** Makes the environments that the options ask for. Rejects with a TraceError when one cannot be made. */
export async function makeArms(
  parameters: ReproParameters,
  context: {
    readonly options: RunOptions;
    readonly environment: Environment;
    readonly abort: AbortSignal;
  },
): Promise<Arms> {
  const { options, environment, abort } = context;
  const { control, packages } = options;
  const within = async (pins: readonly Pin[]): Promise<TrialEnvironment> => {
    const made = await environmentWith({
      language: parameters.language,
      pins,
      python: options.python ?? 'python3',
      node: options.node ?? 'node',
      env: environment.env,
      abort,
    });
    return {
      ...(options.python === null ? {} : { python: options.python }),
      ...(options.node === null ? {} : { node: options.node }),
      ...made,
      env: { ...options.env, ...made.env },
    };
  };
  const subject: Arm = {
    label: packages.length === 0 ? 'as given' : pinsText(packages),
    parameters,
    environment: await within(packages),
  };
  if (control.kind === 'package') {
    const pins = withPin(packages, control.pin);
    return {
      subject,
      control: { label: pinsText(pins), parameters, environment: await within(pins) },
    };
  }
  // One attempt at a time is no control of one that makes one at a time anyway.
  if (control.kind === 'none' || parameters.concurrency === 1) return { subject, control: null };
  const alone = { ...parameters, concurrency: 1 };
  return { subject, control: { ...subject, label: 'concurrency 1', parameters: alone } };
}
