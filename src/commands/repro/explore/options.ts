import { resolve } from 'node:path';
import { readParameters } from '../../../../repro/parameters/read.ts';
import type { CourseRunner } from '../../../../repro/schedules/course.ts';
import type { ExploreOptions } from '../../../../repro/schedules/explore.ts';
import { type Program, programOf } from '../../../../repro/schedules/program.ts';
import { STRATEGY_NAMES } from '../../../../repro/schedules/strategies.ts';
import { interpreterOf } from '../../../../repro/trials/run-trial.ts';
import { usageError } from '../../../core/errors.ts';
import { printable } from '../../../core/text.ts';
import type { Seconds } from '../../../core/types.ts';
import type { CommandContext, OptionValues } from '../../command-line/command.ts';
import { parseChoice, parseCount, parseDuration } from '../../command-line/parse.ts';
import { LARGEST_SEED } from '../new/options.ts';
import { parseTrialChoice, trialEnvironment } from '../trial-environment.ts';

const SCHEDULES = 200;
const MOST_SCHEDULES = 1_000_000;
/** Two constraints suffice for most races (Burckhardt et al., ASPLOS 2010). */
const DEPTH = 2;
const MOST_DEPTH = 10;
const PLACE = /^.+:\d{1,7}$/;

/** What `trace repro explore` was asked for. A usage error for what it does not take. */
export function parseExploreOptions(values: OptionValues): Omit<ExploreOptions, 'abort'> {
  const places = textsOf(values, 'place');
  const wrong = places.find((place) => !PLACE.test(place));
  if (wrong !== undefined) {
    throw usageError(
      `--place takes file:line, got '${printable(wrong, 60)}'`,
      'trace repro explore lost --place app/account.py:36',
    );
  }
  const strategy = parseChoice(
    textOf(values, 'strategy') ?? (places.length > 0 ? 'targeted' : 'random'),
    STRATEGY_NAMES,
    '--strategy',
  );
  if (strategy === 'targeted' && places.length === 0)
    throw usageError('--strategy targeted needs a --place', '--place app/account.py:36');
  return {
    strategy,
    places,
    schedules: countOf(values, 'schedules', {
      fallback: SCHEDULES,
      least: 1,
      most: MOST_SCHEDULES,
    }),
    seed: countOf(values, 'seed', { fallback: 0, least: 0, most: LARGEST_SEED }),
    depth: countOf(values, 'depth', { fallback: DEPTH, least: 1, most: MOST_DEPTH }),
    all: values['all'] === true,
    threads: values['threads'] === true,
    clock: values['real-clock'] === true ? 'real' : 'virtual',
    include: textsOf(values, 'include'),
    limit: limitOf(values),
  };
}

/** What one run may take; null when it is not said. */
export function limitOf(values: OptionValues): Seconds | null {
  const text = textOf(values, 'timeout');
  if (text === undefined) return null;
  return parseDuration(text, { flag: '--timeout', bare: 's', least: 0.1, most: 3600 });
}

/** A number of a flag, or what holds without it. */
export function countOf(
  values: OptionValues,
  name: string,
  rule: { readonly fallback: number; readonly least: number; readonly most: number },
): number {
  const text = textOf(values, name);
  if (text === undefined) return rule.fallback;
  return parseCount(text, { flag: `--${name}`, least: rule.least, most: rule.most });
}

export function textOf(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

function textsOf(values: OptionValues, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** What is run under schedules: the script of a folder, or a command. */
export async function chooseProgram({
  values,
  positionals,
  command,
  environment,
}: CommandContext): Promise<Program> {
  const [named, ...others] = positionals;
  if (command.length > 0 && named === undefined) {
    if (values['package'] !== undefined || values['env'] !== undefined) {
      throw usageError(
        '--package and --env are for a folder',
        'A command brings its own interpreter and variables.',
      );
    }
    return programOf(command, { cwd: environment.cwd, env: environment.env });
  }
  if (command.length > 0 || named === undefined || others.length > 0) {
    throw usageError(
      'one folder, or one command behind --',
      'trace repro explore <dir>, or trace repro explore -- python app.py',
    );
  }
  const folder = resolve(environment.cwd, named);
  const choice = parseTrialChoice(values);
  const { language, script, seed } = await readParameters(folder);
  if (language === 'shell') {
    throw usageError(
      'the script of this folder is a shell script, which has no schedule of its own',
      'Explore the server that it talks to: trace repro explore -- python server_test.py',
    );
  }
  const trials = await trialEnvironment(choice, { language, environment });
  const interpreter = interpreterOf(language, trials);
  const env = { ...trials.env, REPRO_SEED: String(seed) };
  return { language, interpreter, flags: [], argv: [script], cwd: folder, env };
}

/** What runs a program under schedules. */
export async function openRunner(program: Program): Promise<CourseRunner> {
  if (program.language === 'python') {
    const { PythonRunner } = await import('../../../../repro/schedules/python/runner.ts');
    return PythonRunner.open(program);
  }
  const { NodeRunner } = await import('../../../../repro/schedules/node/runner.ts');
  return NodeRunner.open(program);
}
