import { environmentWith } from '../../../repro/environments/environment.ts';
import { type Pin, parsePin } from '../../../repro/environments/pins.ts';
import type { Language } from '../../../repro/parameters/parameters.ts';
import type { TrialEnvironment } from '../../../repro/trials/run-trial.ts';
import { usageError } from '../../core/errors.ts';
import type { Environment, OptionTable, OptionValues } from '../command-line/command.ts';

/** In what the trials of a reproduction run: the same flags of every verb that runs some. */

/** The flags of {@link parseTrialChoice}. */
export const TRIAL_OPTIONS: OptionTable = {
  package: { type: 'string', multiple: true },
  env: { type: 'string', multiple: true },
  python: { type: 'string' },
  node: { type: 'string' },
};

/** What the flags choose. */
export interface TrialChoice {
  readonly packages: readonly Pin[];
  /** Variables for the trials. */
  readonly env: Readonly<Record<string, string>>;
  /** Null: that of the PATH. */
  readonly python: string | null;
  readonly node: string | null;
}

/** What the flags say. Throws a usage error. */
export function parseTrialChoice(values: OptionValues): TrialChoice {
  const { python, node } = values;
  return {
    packages: list(values['package']).map((one) => parsePin(one, '--package')),
    env: Object.fromEntries(list(values['env']).map(variable)),
    python: typeof python === 'string' ? python : null,
    node: typeof node === 'string' ? node : null,
  };
}

/** Makes what was chosen, which installs packages that are not there yet. Rejects with a TraceError when they cannot be. */
export async function trialEnvironment(
  { packages, env, python, node }: TrialChoice,
  context: {
    readonly language: Language;
    readonly environment: Environment;
    readonly abort?: AbortSignal;
  },
): Promise<TrialEnvironment> {
  const { language, environment, abort } = context;
  const made = await environmentWith({
    language,
    pins: packages,
    python: python ?? 'python3',
    node: node ?? 'node',
    env: environment.env,
    ...(abort === undefined ? {} : { abort }),
  });
  return {
    ...(python === null ? {} : { python }),
    ...(node === null ? {} : { node }),
    ...made,
    env: { ...env, ...made.env },
  };
}

function list(value: OptionValues[string]): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function variable(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw usageError('--env takes NAME=value');
  return [text.slice(0, at), text.slice(at + 1)];
}
