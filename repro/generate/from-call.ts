import { basename, relative, resolve, sep } from 'node:path';
import { usageError } from '../../src/core/errors.ts';
import {
  type CallOrigin,
  type Json,
  type Language,
  type Oracle,
} from '../parameters/parameters.ts';
import { lookAtNode, lookAtPython, type Surroundings } from './look.ts';

/** A callable as it was typed, from a folder. */
export interface CallRequest {
  readonly target: string;
  readonly setup: string | null;
  readonly args: readonly (readonly Json[])[];
  readonly oracle: Oracle;
  /** Where it was typed. */
  readonly cwd: string;
  /** Where the reproduction will be. */
  readonly folder: string;
  readonly python: string;
  readonly node: string;
  /** Beside and before our own. */
  readonly env: Readonly<Record<string, string>>;
}

/** What a reproduction holds of a callable. */
export interface FoundCall {
  readonly language: Language;
  readonly call: CallOrigin;
  readonly oracle: Oracle;
  readonly surroundings: Surroundings;
  /** A file to be copied into the folder: the oracle's script. */
  readonly copies: readonly string[];
}

/** Of a callable: `file#export` is Node's, `module:name` Python's. */
export function languageOf(target: string): 'python' | 'node' {
  if (target.includes('#') || /\.[cm]?js$/.test(target)) return 'node';
  if (/^[\w.]+:[\w.]+$/.test(target)) return 'python';
  throw usageError(
    `--call takes package.module:callable or ./file.mjs#export, got '${target.slice(0, 60)}'`,
  );
}

/** Makes sure that there is something to be called, by importing it, and says how the folder names it. Rejects with a TraceError. */
export async function findCall(request: CallRequest): Promise<FoundCall> {
  const { target, setup, args, oracle, cwd, folder } = request;
  const language = languageOf(target);
  if (oracle.kind === 'cross-talk' && !JSON.stringify(args).includes('{nonce}'))
    throw usageError(
      'no argument carries a mark: cross-talk is seen by marks that come back to another',
      'Put \'{nonce}\' into the arguments: --args-file with [["{nonce}"]]',
    );
  const surroundings =
    language === 'python'
      ? await lookAtPython({
          python: request.python,
          target,
          path: cwd,
          env: request.env,
          counts: countsOf(args, setup !== null),
        })
      : await lookAtNode({ node: request.node, target, path: cwd, env: request.env });
  const moved = (name: string): string =>
    language === 'node' && name.startsWith('.') ? movedTarget(name, { cwd, folder }) : name;
  const script = typeof oracle['script'] === 'string' ? oracle['script'] : null;
  return {
    language,
    call: {
      target: moved(target),
      ...(language === 'python' ? { path: relative(folder, cwd) || '.' } : {}),
      args,
      ...(setup === null ? {} : { setup: moved(setup) }),
    },
    oracle: {
      ...oracle,
      ...(typeof oracle['read'] === 'string' ? { read: moved(oracle['read']) } : {}),
      ...(script === null ? {} : { script: basename(script) }),
    },
    surroundings,
    copies: script === null ? [] : [resolve(cwd, script)],
  };
}

/** How many arguments a call may be given; what a setup returns comes first, unless it returns nothing. */
function countsOf(args: readonly (readonly Json[])[], hasSetup: boolean): readonly number[] {
  const given = args.map(({ length }) => length);
  return [...new Set(hasSetup ? given.flatMap((count) => [count, count + 1]) : given)];
}

/** `./file.mjs#name` from where it was typed, as the folder calls it. */
function movedTarget(
  target: string,
  { cwd, folder }: { readonly cwd: string; readonly folder: string },
): string {
  const [file = '', name] = target.split('#');
  const path = relative(folder, resolve(cwd, file)).split(sep).join('/');
  const dotted = path.startsWith('.') ? path : `./${path}`;
  return name === undefined ? dotted : `${dotted}#${name}`;
}
