import { readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { errorCode, usageError } from '../../../core/errors.ts';
import { EXIT, type ExitCode } from '../../../core/exit-code.ts';
import { printable } from '../../../core/text.ts';
import { checkFolder, writeFolder } from '../../../../repro/generate/folder.ts';
import { generate, scriptName } from '../../../../repro/generate/generate.ts';
import { lookAtPython } from '../../../../repro/generate/look.ts';
import { type Json, SCHEMA_VERSION } from '../../../../repro/parameters/parameters.ts';
import { isJson } from '../../../../repro/parameters/read.ts';
import type { Command, CommandContext } from '../../command-line/command.ts';
import { parseNewOptions } from './options.ts';
import { reproNewUsage } from './usage.ts';

/** `trace repro new`: writes a reproduction's folder. */
export const reproNewCommand: Command = { ...reproNewUsage, run };

async function run({ values, environment }: CommandContext): Promise<ExitCode> {
  const options = parseNewOptions(values);
  const { cwd, stdout } = environment;
  const folder = resolve(cwd, options.output);
  await checkFolder(folder);
  const args = options.argsFile === null ? [[]] : await readArgs(resolve(cwd, options.argsFile));
  const { version, packages } = await lookAtPython({
    python: options.python,
    target: options.call,
    path: cwd,
  });
  const { oracle, attempts, concurrency, timeout, seed, setup } = options;
  const files = generate({
    schema_version: SCHEMA_VERSION,
    language: 'python',
    script: scriptName('python'),
    origin: 'call',
    hypothesis: null,
    call: {
      target: options.call,
      path: relative(folder, cwd),
      args,
      ...(setup === null ? {} : { setup }),
    },
    oracle: { kind: oracle },
    attempts,
    concurrency,
    timeout_s: timeout,
    seed,
    packages,
    runtime: { name: 'python', version },
  });
  await writeFolder(folder, files);
  stdout.write(`${printable(options.output)}: ${files.map(({ name }) => name).join(', ')}\n`);
  return EXIT.ok;
}

async function readArgs(path: string): Promise<readonly (readonly Json[])[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usageError(`--args-file ${printable(path)} cannot be read: ${errorCode(error)}`);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every(isArguments))
    throw usageError(
      `--args-file ${printable(path)} holds no list of lists of arguments`,
      'One list for each attempt, gone through in a circle: [["a", 1], ["b", 2]]',
    );
  return value as readonly (readonly Json[])[];
}

function isArguments(value: unknown): boolean {
  return Array.isArray(value) && isJson(value);
}
