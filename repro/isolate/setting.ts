import type { ReproParameters } from '../parameters/parameters.ts';
import type { TrialEnvironment } from '../trials/run-trial.ts';

/** A reproduction with one thing changed. */
export interface Setting {
  /** The thing that is changed: `concurrency`, `serialize app:deposit`, `flag CACHE`. */
  readonly factor: string;
  /** What it is changed to: `1`, `one at a time`, `off`. */
  readonly value: string;
  readonly parameters: ReproParameters;
  readonly environment: TrialEnvironment;
  /** In place of the interpreter and the script. */
  readonly command?: readonly string[];
}

/** The reproduction as it is: what every setting is compared with. */
export const AS_GIVEN = 'as given';
