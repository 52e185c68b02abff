import type { ReproParameters } from '../../../../repro/parameters/parameters.ts';
import type { TrialEnvironment } from '../../../../repro/trials/run-trial.ts';
import type { CommandContext } from '../../command-line/command.ts';
import type { IsolateOptions } from './options.ts';

/** What all ways of isolating are given. */
export interface IsolateSession {
  readonly folder: string;
  readonly options: IsolateOptions;
  readonly abort: AbortSignal;
  readonly context: CommandContext;
  readonly parameters: ReproParameters;
  readonly trials: TrialEnvironment;
}
