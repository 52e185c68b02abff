import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { nearest } from '../command-line/nearest.ts';
import { VERBS } from '../registry.ts';
import { reproUsage } from './usage.ts';

/** `trace repro` without a verb that there is: the command line takes those that are there to the verbs themselves. */
export const reproCommand: Command = { ...reproUsage, run };

async function run({ positionals }: CommandContext): Promise<ExitCode> {
  const names = (VERBS.find(({ name }) => name === 'repro')?.verbs ?? []).map(({ name }) => name);
  const [first] = positionals;
  const meant = first === undefined ? null : nearest(first, names);
  throw usageError(
    first === undefined ? 'repro needs a verb' : `repro has no verb '${printable(first, 60)}'`,
    meant === null
      ? `Verbs: ${names.join(', ')}. See trace repro --help`
      : `Did you mean trace repro ${meant}? See trace repro --help`,
  );
}
