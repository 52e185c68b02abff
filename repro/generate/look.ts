import { usageError } from '../../src/core/errors.ts';
import { runBriefly } from '../../src/platform/run-briefly.ts';
import { reproFile } from '../../src/platform/standalone.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';
import { isRecord } from '../parameters/read.ts';

/** What interpreter there is, and what the callable's module loads. */
export interface Surroundings {
  readonly version: string;
  readonly packages: Readonly<Record<string, string>>;
}

/** Importing a large framework from a cold disk on a busy machine. */
const LIMIT: Seconds = 60;

/** Imports a Python callable (that runs its module's own code) and says what it found. Rejects with a TraceError when it cannot be called. */
export async function lookAtPython(options: {
  readonly python: string;
  /** Empty: only the interpreter. */
  readonly target: string;
  /** Where modules are imported from. */
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  /** How many arguments it may be called with: one of these has to fit. */
  readonly counts?: readonly number[];
}): Promise<Surroundings> {
  const { python, target, path, env, counts = [] } = options;
  return lookWith({
    env,
    program: python,
    args: ['-c', reproFile('templates/python/versions.py'), target, path, JSON.stringify(counts)],
    target,
  });
}

/** The same for what a Node module exports, `./file.mjs#name`, relative to `path`. */
export async function lookAtNode(options: {
  readonly node: string;
  /** Empty: only the interpreter. */
  readonly target: string;
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}): Promise<Surroundings> {
  const { node, target, path, env } = options;
  const script = reproFile('templates/node/versions.mjs');
  return lookWith({
    env,
    program: node,
    args: ['--input-type=module', '-e', script, '--', target, path],
    target,
  });
}

const VERSION_LIMIT: Seconds = 10;

/** The version of curl, which a shell script needs. Rejects with a TraceError without one. */
export async function lookAtCurl(): Promise<Surroundings> {
  const run = await runBriefly('curl', ['-q', '--version'], VERSION_LIMIT);
  const version = run.ended === 'exit' ? /^curl (\S+)/.exec(run.output)?.[1] : undefined;
  if (version === undefined)
    throw usageError('there is no curl here', 'Install curl, or give --language python or node.');
  return { version: printable(version, 40), packages: {} };
}

async function lookWith(options: {
  readonly program: string;
  readonly args: readonly string[];
  readonly target: string;
  readonly env: Readonly<Record<string, string>>;
}): Promise<Surroundings> {
  const { program, args, target, env } = options;
  const run = await runBriefly(program, args, LIMIT, { ...process.env, ...env });
  const name = printable(program, 100);
  if (run.ended === 'not-started') throw usageError(`${name} cannot be started: ${run.reason}`);
  if (run.ended === 'timeout')
    throw usageError(
      `${printable(target)} was not imported by ${name} within ${formatSeconds(LIMIT)}`,
    );
  const answer = parsed(run.output.trimEnd().split('\n').at(-1) ?? '');
  if (answer === null || typeof answer['version'] !== 'string')
    throw usageError(`${name} does not answer: ${printable(run.output.trim().slice(-300), 300)}`);
  if (typeof answer['problem'] === 'string')
    throw usageError(
      `${printable(target)} cannot be called: ${printable(answer['problem'], 300)}`,
      / arguments?\b/.test(answer['problem'])
        ? 'Give --args-file with a JSON list of argument lists, such as [["ann", 1], ["bob", 2]].'
        : 'Write it as package.module:callable (Python), importable from here, or ./file.mjs#export (Node).',
    );
  const packages = isRecord(answer['packages']) ? answer['packages'] : {};
  return {
    version: answer['version'],
    packages: Object.fromEntries(
      Object.entries(packages).map(([key, version]) => [key, String(version)]),
    ),
  };
}

function parsed(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
