import { copyFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { errorCode, usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import { printable } from '../../../core/text.ts';
import { checkFolder, writeFolder } from '../../../../repro/generate/folder.ts';
import { environmentWith } from '../../../../repro/environments/environment.ts';
import { findCall, languageOf } from '../../../../repro/generate/from-call.ts';
import { generate, scriptName } from '../../../../repro/generate/generate.ts';
import { SCHEMA_VERSION } from '../../../../repro/parameters/parameters.ts';
import type { Command, CommandContext } from '../../command-line/command.ts';
import { readArgs } from './args-file.ts';
import { thisMachine } from './machine.ts';
import { parseNewOptions } from './options.ts';
import { reproNewUsage } from './usage.ts';

/** `trace repro new`: writes a reproduction's folder. */
export const reproNewCommand: Command = { ...reproNewUsage, run };

async function run({ values, environment }: CommandContext): Promise<ExitCode> {
  const options = parseNewOptions(values);
  const { cwd, stdout } = environment;
  const folder = resolve(cwd, options.output);
  await checkFolder(folder);
  const { attempts, concurrency, timeout, seed } = options;
  const made = await environmentWith({
    language: languageOf(options.call),
    pins: options.packages,
    python: options.python,
    node: options.node,
    env: environment.env,
  });
  const found = await findCall({
    target: options.call,
    setup: options.setup,
    args: options.argsFile === null ? [[]] : await readArgs(resolve(cwd, options.argsFile)),
    oracle: options.oracle,
    cwd,
    folder,
    python: made.python ?? options.python,
    node: options.node,
    env: made.env ?? {},
  });
  const { language, call, oracle, surroundings, copies } = found;
  const files = generate(
    {
      schema_version: SCHEMA_VERSION,
      language,
      script: scriptName(language),
      origin: 'call',
      hypothesis: null,
      call,
      oracle,
      attempts,
      concurrency,
      timeout_s: timeout,
      seed,
      packages: surroundings.packages,
      runtime: { name: language, version: surroundings.version },
    },
    await thisMachine(),
  );
  await writeFolder(folder, files);
  for (const path of copies)
    await copyFile(path, join(folder, basename(path))).catch((error: unknown) => {
      throw usageError(`${printable(path)} cannot be copied: ${errorCode(error)}`);
    });
  stdout.write(`${printable(options.output)}: ${files.map(({ name }) => name).join(', ')}\n`);
  return EXIT.ok;
}
