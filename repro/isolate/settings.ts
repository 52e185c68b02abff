import { usageError } from '../../src/core/errors.ts';
import type { Json, ReproParameters } from '../parameters/parameters.ts';
import { interpreterOf, scriptCommand, type TrialEnvironment } from '../trials/run-trial.ts';
import { AS_GIVEN, type Setting } from './setting.ts';

/** From what is asked to settings, each with one thing changed. */

/** One environment variable and the values it may have; the first is the one that it has as given. */
export interface Flag {
  readonly name: string;
  readonly values: readonly string[];
}

export interface Asked {
  /** How many attempts at a time; those above the reproduction's own number of attempts say nothing. */
  readonly concurrency: readonly number[];
  /** `package.module:callable`, called one at a time. */
  readonly serialize: readonly string[];
  /** `package.module:callable`, and what it answers at once. */
  readonly mock: readonly { readonly target: string; readonly value: Json }[];
  readonly flags: readonly Flag[];
  /** The command that runs another watched by trace; null: being watched is no factor. */
  readonly observer: readonly string[] | null;
  /** An environment variable that has the address of something upstream, and what of it may be put between. */
  readonly upstreams: readonly Upstream[];
}

/** Faulty links to one upstream, each with the address that the program is given in place of the upstream's own. */
export interface Upstream {
  readonly name: string;
  /** Null: the base URL of the traffic. */
  readonly variable: string | null;
  readonly links: readonly { readonly fault: string; readonly address: string }[];
}

/** In place of a fault: something that answers from a recording. */
export const STUB = 'stub';

/** In what the settings run. */
export interface Base {
  readonly parameters: ReproParameters;
  readonly environment: TrialEnvironment;
  /** The text's place on disk: repro/templates/python/patched.py. */
  readonly patched: string;
}

/** The reproduction as given, then each change, one at a time. Throws a usage error for what this reproduction cannot have. */
export function settingsOf(asked: Asked, base: Base): readonly Setting[] {
  const { parameters, environment } = base;
  const given: Setting = {
    factor: AS_GIVEN,
    value: '',
    parameters,
    environment: withFlags(environment, asked.flags, new Map()),
  };
  return [
    given,
    ...asked.concurrency
      .filter((count) => count !== parameters.concurrency)
      .map((concurrency) => ({
        ...given,
        factor: 'concurrency',
        value: String(concurrency),
        parameters: { ...parameters, concurrency },
      })),
    ...asked.serialize.map((target) => ({
      ...given,
      factor: `serialize ${target}`,
      value: 'one at a time',
      command: patchedCommand(base, { serialize: [target] }),
    })),
    ...asked.mock.map(({ target, value }) => ({
      ...given,
      factor: `mock ${target}`,
      value: 'instant',
      command: patchedCommand(base, { mock: { [target]: value } }),
    })),
    ...asked.flags.flatMap(({ name, values }) =>
      values.slice(1).map((value) => ({
        ...given,
        factor: `flag ${name}`,
        value,
        environment: withFlags(environment, asked.flags, new Map([[name, value]])),
      })),
    ),
    ...asked.upstreams.flatMap(({ name, variable, links }) =>
      links.map(({ fault, address }) => ({
        ...given,
        factor: `upstream ${name}`,
        value: fault,
        ...throughLink(given, variable, address),
      })),
    ),
    ...(asked.observer === null ? [] : [observed(given, asked.observer, base)]),
  ];
}

/** Variables of all flags, each with its first value where `changed` names no other. */
export function withFlags(
  environment: TrialEnvironment,
  flags: readonly Flag[],
  changed: ReadonlyMap<string, string>,
): TrialEnvironment {
  const own = Object.fromEntries(
    flags.map(({ name, values }) => [name, changed.get(name) ?? values[0] ?? '']),
  );
  return { ...environment, env: { ...environment.env, ...own } };
}

function throughLink(
  given: Setting,
  variable: string | null,
  address: string,
): Pick<Setting, 'parameters' | 'environment'> {
  const { parameters, environment } = given;
  if (variable !== null)
    return {
      parameters,
      environment: { ...environment, env: { ...environment.env, [variable]: address } },
    };
  const { traffic } = parameters;
  if (traffic === undefined)
    throw usageError(
      'this reproduction sends no traffic of its own, so what is upstream of it needs a name',
      'Give --upstream VARIABLE=url, the environment variable that the program has the address from.',
    );
  return { parameters: { ...parameters, traffic: { ...traffic, base_url: address } }, environment };
}

function patchedCommand(
  { parameters, environment, patched }: Base,
  spec: { readonly serialize?: readonly string[]; readonly mock?: Readonly<Record<string, Json>> },
): readonly string[] {
  const { language, script } = parameters;
  if (language !== 'python')
    throw usageError(
      `functions can be serialised or mocked in Python only, and this reproduction is in ${language}`,
      'Take the lock, or the stub, into the function that the reproduction calls.',
    );
  return [interpreterOf(language, environment), patched, JSON.stringify(spec), script];
}

function observed(
  given: Setting,
  observer: readonly string[],
  { parameters, environment }: Base,
): Setting {
  return {
    ...given,
    factor: 'observed',
    value: 'by trace run',
    command: [...observer, ...scriptCommand(parameters, environment)],
  };
}
