import { basename, resolve } from 'node:path';
import { usageError } from '../../src/core/errors.ts';
import { printable } from '../../src/core/text.ts';
import type { CallOrigin, Oracle, ReproParameters } from '../parameters/parameters.ts';

/** Transactions that stand in SQL files, run by a module that comes into the folder with them. */

/** The module, a template of that name. */
export const TRANSACTIONS_FILE = 'transactions.py';
const TARGET = 'transactions:run';
const SETUP = 'transactions:ready';
const USUAL_VARIABLE = 'DATABASE_URL';
const ENDS: readonly string[] = ['rollback', 'commit'];
const ISOLATIONS: readonly string[] = ['read-committed', 'repeatable-read', 'serializable'];

/** How the files come into a folder: each attempt runs one of them, in turns. Throws a usage error. */
export function transactionsOf(
  files: readonly string[],
  { oracle, cwd }: { readonly oracle: Oracle; readonly cwd: string },
): { readonly call: CallOrigin; readonly copies: readonly string[] } {
  const names = files.map((file) => basename(file));
  if (new Set(names).size < names.length)
    throw usageError('--sql: two files of one name', 'Their copies stand in one folder.');
  const wrong = names.find((name) => /[\0/\\]/.test(name) || name === 'parameters.json');
  if (wrong !== undefined) throw usageError(`--sql: no name for a file: ${printable(wrong, 60)}`);
  checkOption(oracle, 'end', ENDS);
  checkOption(oracle, 'isolation', ISOLATIONS);
  if (!/^[A-Za-z_]\w*$/.test(databaseVariable(oracle)))
    throw usageError('--oracle transactions: env takes the name of an environment variable');
  return {
    call: { target: TARGET, path: '.', args: names.map((name) => [name]), setup: SETUP },
    copies: files.map((file) => resolve(cwd, file)),
  };
}

/** The files whose transactions a reproduction runs; null where it calls something else. */
export function sqlFilesOf({ call }: Pick<ReproParameters, 'call'>): readonly string[] | null {
  return call?.target === TARGET ? call.args.flat().map(String) : null;
}

/** The environment variable that says which database. */
export function databaseVariable(oracle: Oracle): string {
  return typeof oracle['env'] === 'string' ? oracle['env'] : USUAL_VARIABLE;
}

function checkOption(oracle: Oracle, name: string, known: readonly string[]): void {
  const value = oracle[name];
  if (typeof value === 'string' && !known.includes(value))
    throw usageError(
      `--oracle transactions: ${name} is ${known.join(', ')}, got '${printable(value, 60)}'`,
    );
}
