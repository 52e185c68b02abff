import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { Language, ReproParameters } from '../parameters/parameters.ts';
import { readParameters } from '../parameters/read.ts';
import { writeParameters } from '../parameters/write.ts';
import { judge } from './judge.ts';
import { runGroup } from './process-group.ts';
import type { Trial } from './trial.ts';

/** In what a trial runs. */
export interface TrialEnvironment {
  /** Variables beside (and before) our own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Interpreters in place of `python3` and `node` of the PATH. */
  readonly python?: string;
  readonly node?: string;
}

export interface TrialOptions {
  readonly seed: number;
  /** In place of those of the folder. */
  readonly parameters?: ReproParameters;
  readonly environment?: TrialEnvironment;
  /** In place of the interpreter and the script. */
  readonly command?: readonly string[];
  /** Ends the trial, and with it all of its processes; it is invalid then. */
  readonly abort?: AbortSignal;
}

/** Over the trial's own limit: the script is to say itself what hangs. */
const GRACE: Seconds = 5;
/** A script whose main thread is stuck says so from another, and cannot end. */
const STUCK = { pattern: /^Errors: [1-9]\d* \/ \d+$/m, grace: GRACE } as const;

/**
 * Runs the script of a folder once, in a process group of its own. What it started is gone when
 * this returns, daemons too. It does not throw for what goes wrong in the trial: that is an invalid
 * one.
 */
export async function runTrial(folder: string, options: TrialOptions): Promise<Trial> {
  const parameters = options.parameters ?? (await readParameters(folder));
  const { seed, environment = {}, abort } = options;
  const scratch = await mkdtemp(join(tmpdir(), 'trace-trial-'));
  try {
    const variables: Record<string, string> = { ...environment.env, REPRO_SEED: String(seed) };
    if (options.parameters !== undefined) {
      const path = join(scratch, 'parameters.json');
      await writeParameters(path, options.parameters);
      variables['REPRO_PARAMETERS'] = path;
    }
    const command = options.command ?? scriptCommand(parameters, environment);
    const began = monotonicNow();
    const end = await runGroup(command, {
      cwd: resolve(folder),
      // Python's hash seed decides the order of sets: a trial is repeated by its seed.
      env: { ...process.env, PYTHONHASHSEED: String(seed % 2 ** 32), ...variables },
      limit: parameters.timeout_s + GRACE,
      abort,
      ...(parameters.oracle.kind === 'head-of-line' ? { saidAll: STUCK } : {}),
    });
    const left = end.ended === 'exit' ? end.left : [];
    return { seed, seconds: monotonicNow() - began, left, ...judge(end, parameters.oracle.kind) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

const INTERPRETER: Readonly<Record<Language, string>> = {
  python: 'python3',
  node: 'node',
  shell: 'sh',
};

/** The program that runs scripts of a language: the environment's, or else that of the PATH. */
export function interpreterOf(language: Language, environment: TrialEnvironment): string {
  const chosen = language === 'shell' ? undefined : environment[language];
  return chosen ?? INTERPRETER[language];
}

/** What runs the script of a folder, in the folder. */
export function scriptCommand(
  { language, script }: ReproParameters,
  environment: TrialEnvironment,
): readonly string[] {
  return [interpreterOf(language, environment), script];
}
