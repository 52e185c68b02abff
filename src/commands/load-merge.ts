import { usageError } from '../core/errors.ts';
import type { ExitCode } from '../core/exit-code.ts';
import type { Environment, OptionValues } from './command.ts';

/** `trace load merge A B C`: the results of several machines as one. */
export function mergeLoads(
  _values: OptionValues,
  _paths: readonly string[],
  _environment: Environment,
): Promise<ExitCode> {
  return Promise.reject(usageError('merging is not there yet'));
}
