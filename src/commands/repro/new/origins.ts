import { resolve } from 'node:path';
import { usageError } from '../../../core/errors.ts';
import { environmentWith } from '../../../../repro/environments/environment.ts';
import { findCall, languageOf } from '../../../../repro/generate/from-call.ts';
import { lookAtCurl, lookAtNode, lookAtPython } from '../../../../repro/generate/look.ts';
import { transactionsOf } from '../../../../repro/generate/transactions.ts';
import type {
  Oracle,
  OracleKind,
  ReproParameters,
} from '../../../../repro/parameters/parameters.ts';
import { parseRecordingAddress } from '../../../recording/format.ts';
import type { Environment } from '../../command-line/command.ts';
import { readArgs } from './args-file.ts';
import type { NewOptions } from './options.ts';

/** What a reproduction attempts, and what it was found with. */
export type Origin = Pick<
  ReproParameters,
  'language' | 'origin' | 'call' | 'traffic' | 'oracle' | 'packages' | 'runtime'
> & {
  /** Files that come into the folder as they are. */
  readonly copies: readonly string[];
};

/** A function that is called. Rejects with a TraceError when it is not there. */
export async function callOrigin(
  options: NewOptions & { readonly call: string; readonly oracle: Oracle },
  context: { readonly environment: Environment; readonly folder: string },
): Promise<Origin> {
  const { cwd, env } = context.environment;
  const { call, packages, python, node, argsFile, setup } = options;
  const language = languageOf(call);
  const made = await environmentWith({ language, pins: packages, python, node, env });
  const found = await findCall({
    target: call,
    setup,
    args: argsFile === null ? [[]] : await readArgs(resolve(cwd, argsFile)),
    oracle: options.oracle,
    cwd,
    folder: context.folder,
    python: made.python ?? python,
    node,
    env: made.env ?? {},
  });
  const { surroundings, ...origin } = found;
  return {
    ...origin,
    origin: 'call',
    packages: surroundings.packages,
    runtime: { name: language, version: surroundings.version },
  };
}

/** Transactions in SQL files, by a Python script. Rejects with a TraceError. */
export async function sqlOrigin(
  options: NewOptions & { readonly oracle: Oracle },
  { cwd, env }: Environment,
): Promise<Origin> {
  const { oracle, packages, python, node, sql } = options;
  if (oracle.kind !== 'transactions')
    throw usageError(`--sql takes --oracle transactions, not ${oracle.kind}`);
  const language = 'python';
  const { call, copies } = transactionsOf(sql, { oracle, cwd });
  const made = await environmentWith({ language, pins: packages, python, node, env });
  const found = await lookAtPython({
    python: made.python ?? python,
    target: '',
    path: cwd,
    env: made.env ?? {},
  });
  const runtime = { name: language, version: found.version };
  return { language, origin: 'call', call, oracle, packages: found.packages, runtime, copies };
}

/** What cannot be seen from outside of a server by its answers. */
const NOT_OF_TRAFFIC: readonly OracleKind[] = ['growth', 'lost-update', 'transactions', 'script'];
/** What curl can tell; the others compare answers of a model or times. */
const OF_SHELL: readonly OracleKind[] = ['exception', 'cross-talk', 'no-progress'];

/** Requests that are sent again, by a script in Python, for Node, or for a shell with curl. Rejects with a TraceError when there are none. */
export async function trafficSource(
  options: NewOptions & { readonly oracle: Oracle },
  { cwd }: Environment,
): Promise<Origin> {
  const { oracle, python, node, language } = options;
  if (NOT_OF_TRAFFIC.includes(oracle.kind))
    throw usageError(
      `the oracle ${oracle.kind} needs a function: answers do not show it`,
      'Give --call with the function behind the requests, or another --oracle.',
    );
  if (language === 'shell' && !OF_SHELL.includes(oracle.kind))
    throw usageError(
      `a shell script has no check for ${oracle.kind}`,
      'Give --language python or node, or --oracle exception, cross-talk or no-progress.',
    );
  const { path } = parseRecordingAddress(options.traffic ?? '');
  const [{ openRecording }, { trafficOf }] = await Promise.all([
    import('../../../recording/reader.ts'),
    import('./traffic.ts'),
  ]);
  const traffic = trafficOf(await openRecording(resolve(cwd, path)), oracle, { name: path });
  const from = { target: '', path: cwd, env: {} };
  const look = {
    python: () => lookAtPython({ python, ...from }),
    node: () => lookAtNode({ node, ...from }),
    shell: lookAtCurl,
  };
  const { version } = await look[language]();
  return {
    language,
    origin: 'traffic',
    traffic,
    oracle,
    packages: {},
    runtime: { name: language === 'shell' ? 'curl' : language, version },
    copies: [],
  };
}
