import { usageError } from '../../core/errors.ts';
import { parsePid } from '../../core/pid.ts';
import type { OptionValues } from './command.ts';

/** The one process that a verb was given, as its argument or by `--pid`; null for none. `remedy`: what to do when it was several. */
export function optionalPid(
  values: OptionValues,
  positionals: readonly string[],
  remedy?: string,
): number | null {
  const flag = values['pid'];
  const words = [...positionals, ...(typeof flag === 'string' ? [flag] : [])];
  const pids = new Set(words.map((word) => parsePid(word)));
  const [pid = null, another] = pids;
  if (another !== undefined)
    throw usageError(`one process at a time, got pids ${[...pids].join(', ')}`, remedy);
  return pid;
}
