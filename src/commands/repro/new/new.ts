import { copyFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { errorCode, usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import { printable } from '../../../core/text.ts';
import { checkFolder, writeFolder } from '../../../../repro/generate/folder.ts';
import { generate, scriptName } from '../../../../repro/generate/generate.ts';
import { oracleFor } from '../../../../repro/generate/oracle.ts';
import {
  type Oracle,
  type OracleKind,
  type ReproParameters,
  SCHEMA_VERSION,
} from '../../../../repro/parameters/parameters.ts';
import type { Command, CommandContext } from '../../command-line/command.ts';
import { thisMachine } from './machine.ts';
import {
  ATTEMPTS,
  ATTEMPTS_OF_GROWTH,
  ATTEMPTS_OF_TRANSACTIONS,
  parseNewOptions,
} from './options.ts';
import { callOrigin, sqlOrigin, trafficSource } from './origins.ts';
import { testedHypothesis } from './tested.ts';
import { reproNewUsage } from './usage.ts';

/** `trace repro new`: writes a reproduction's folder. */
export const reproNewCommand: Command = { ...reproNewUsage, run };

/** Attempts of one trial, where it takes more or fewer than usual. */
const USUAL: Partial<Record<OracleKind, number>> = {
  growth: ATTEMPTS_OF_GROWTH,
  transactions: ATTEMPTS_OF_TRANSACTIONS,
};

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = parseNewOptions(values, positionals);
  const { cwd, stdout } = environment;
  const folder = resolve(cwd, options.output);
  await checkFolder(folder);
  const hypothesis = options.tested === null ? null : await testedHypothesis(options.tested, cwd);
  const usualOracle: Oracle =
    options.sql.length > 0 ? { kind: 'transactions' } : oracleFor(hypothesis?.mechanism ?? 'race');
  const oracle = options.oracle ?? usualOracle;
  const found =
    options.sql.length > 0
      ? await sqlOrigin({ ...options, oracle }, environment)
      : options.call === null
        ? await trafficSource({ ...options, oracle }, environment)
        : await callOrigin({ ...options, call: options.call, oracle }, { environment, folder });
  const { copies, ...origin } = found;
  const parameters: ReproParameters = {
    schema_version: SCHEMA_VERSION,
    script: scriptName(origin.language),
    hypothesis,
    ...origin,
    attempts: options.attempts ?? origin.traffic?.requests.length ?? USUAL[oracle.kind] ?? ATTEMPTS,
    concurrency: options.concurrency,
    timeout_s: options.timeout,
    seed: options.seed,
  };
  const files = generate(parameters, await thisMachine());
  await writeFolder(folder, files);
  for (const path of copies)
    await copyFile(path, join(folder, basename(path))).catch((error: unknown) => {
      throw usageError(`${printable(path)} cannot be copied: ${errorCode(error)}`);
    });
  stdout.write(`${printable(options.output)}: ${files.map(({ name }) => name).join(', ')}\n`);
  return EXIT.ok;
}
