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
  /** Functions called one at a time. */
  readonly serialize: readonly FunctionTarget[];
  /** The same, and what they answer at once. */
  readonly mock: readonly (FunctionTarget & { readonly value: Json })[];
  readonly flags: readonly Flag[];
  /** Commands that run another one watched by trace, and how; none: being watched is no factor. */
  readonly observers: readonly Observer[];
  /** An environment variable that has the address of something upstream, and what of it may be put between. */
  readonly upstreams: readonly Upstream[];
}

/** A function of the program. */
export interface FunctionTarget {
  /** As it was asked for: `package.module:callable`, or of Node `./app.mjs#export` or `package#export`. */
  readonly name: string;
  /** As the program that changes functions finds it: of a file of Node its URL. */
  readonly target: string;
}

/** A way of being watched. */
export interface Observer {
  /** `by trace run` */
  readonly how: string;
  readonly command: readonly string[];
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
  /** Places on disk of the programs that change functions: repro/templates/python/patched.py, repro/templates/node/patched.mjs. */
  readonly patched: { readonly python: string; readonly node: string };
}

/** The row of all flags changed at once. */
export const TOGETHER = 'flags together';

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
    ...asked.serialize.map(({ name, target }) => ({
      ...given,
      factor: `serialize ${name}`,
      value: 'one at a time',
      command: patchedCommand(base, { serialize: [target] }),
    })),
    ...asked.mock.map(({ name, target, value }) => ({
      ...given,
      factor: `mock ${name}`,
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
    ...(asked.flags.length < 2 ? [] : [withChanged(given, asked.flags, asked.flags)]),
    ...asked.upstreams.flatMap(({ name, variable, links }) =>
      links.map(({ fault, address }) => ({
        ...given,
        factor: `upstream ${name}`,
        value: fault,
        ...throughLink(given, variable, address),
      })),
    ),
    ...asked.observers.map(({ how, command }) => ({
      ...given,
      factor: 'observed',
      value: how,
      command: [...command, ...scriptCommand(parameters, environment)],
    })),
  ];
}

/** The reproduction as given with some of the flags at the first of their other values. */
export function withChanged(
  given: Setting,
  flags: readonly Flag[],
  changed: readonly Flag[],
): Setting {
  const values = new Map(changed.map(({ name, values: [, value = ''] }) => [name, value]));
  return {
    ...given,
    factor: TOGETHER,
    value: changed.map(({ name }) => `${name}=${values.get(name) ?? ''}`).join(' '),
    environment: withFlags(given.environment, flags, values),
  };
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
  return {
    parameters: { ...parameters, traffic: { ...traffic, base_url: address } },
    // Somebody named what is behind the link: a key may go there, and no other server is meant.
    environment: { ...environment, env: { ...environment.env, REPRO_BASE_URL: address } },
  };
}

function patchedCommand(
  { parameters, environment, patched }: Base,
  spec: { readonly serialize?: readonly string[]; readonly mock?: Readonly<Record<string, Json>> },
): readonly string[] {
  const { language, script } = parameters;
  if (language === 'shell')
    throw usageError(
      'a script of the shell calls no function that could be serialised or mocked',
      'Put --upstream or --stub before what it sends its requests to.',
    );
  return [interpreterOf(language, environment), patched[language], JSON.stringify(spec), script];
}
