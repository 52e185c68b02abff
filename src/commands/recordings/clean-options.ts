import { usageError } from '../../core/errors.ts';
import type { Seconds } from '../../core/types.ts';
import {
  COMMON_OPTIONS,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import { parseCount, parseDuration } from '../command-line/parse.ts';

const AGE_BOUNDS = { least: 0, most: 100 * 365 * 86_400 } as const;
const MOST_KEPT = 1_000_000;

const OPTIONS = {
  'older-than': { type: 'string' },
  keep: { type: 'string' },
  'dry-run': { type: 'boolean', short: 'n' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace clean - remove old recordings

Usage:
  trace clean --older-than <time> [options]
  trace clean --keep <n> [options]
  trace clean --older-than <time> <folder>... [options]

Removes the recordings that ended longer ago than <time>, from the places where
they go by default (trace ls lists them), or from the folders that are named. It
removes recordings and nothing else: a folder that holds any other file is left
as it is, one that is being written too, and no symbolic link is followed.

Options:
      --older-than <time>  ended longer ago: 12h, 7d
      --keep <n>           keep the newest <n> whatever their age; without
                           --older-than all others are removed
  -n, --dry-run            say what would be removed, and remove nothing
  -f, --format <format>    text (default) or json
      --json               the same as --format json: one document on stdout
  -q, --quiet              nothing on stderr but errors
  -v, --verbose            errors with their code and cause
      --no-color           no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    done, or nothing to do
  1    one that should go could not be removed; the reason is said
  2    wrong usage
  3    no such folder
  70   a bug in trace

Examples:
  trace clean --older-than 7d --dry-run
  trace clean --older-than 30d --keep 20

More: docs/clean.md says what counts as a recording, and as its age.
`;

/** `trace clean` as its help shows it. */
export const cleanUsage: Usage = {
  name: 'clean',
  summary: 'Remove old recordings',
  help,
  options: OPTIONS,
  completes: { argument: 'folder', values: { format: ['text', 'json'] } },
};

/** Which recordings are to go. */
export interface CleanRule {
  /** Those that ended longer ago; null: of any age. */
  readonly olderThan: Seconds | null;
  /** So many of the newest stay. */
  readonly keep: number;
}

/** The rule that the flags make. Without any there is none: everything would be too much to remove by mistake. */
export function chooseCleanRule(values: OptionValues): CleanRule {
  const { 'older-than': age, keep } = values;
  if (typeof age !== 'string' && typeof keep !== 'string')
    throw usageError(
      'clean needs to know which recordings are old',
      'For example --older-than 7d, or --keep 20 for all but the newest 20; --dry-run shows which.',
    );
  return {
    olderThan:
      typeof age === 'string'
        ? parseDuration(age, { flag: '--older-than', bare: 's', ...AGE_BOUNDS })
        : null,
    keep:
      typeof keep === 'string'
        ? parseCount(keep, { flag: '--keep', least: 0, most: MOST_KEPT })
        : 0,
  };
}
