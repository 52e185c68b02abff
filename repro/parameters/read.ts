import { join } from 'node:path';
import { errorCode, TraceError } from '../../src/core/errors.ts';
import { EXIT } from '../../src/core/exit-code.ts';
import { printable } from '../../src/core/text.ts';
import { readOutside } from '../../src/platform/outside-file.ts';
import { type Json, ORACLE_KINDS, type ReproParameters, SCHEMA_VERSION } from './parameters.ts';

/** The name of the file in a reproduction's folder. */
export const PARAMETERS_FILE = 'parameters.json';
/** Far more than requests of a run take; what is larger is no file of ours. */
const SIZE_LIMIT = 64 * 2 ** 20;

/** The parameters of the reproduction in a folder. Rejects with a TraceError when there is none, or none that can be run. */
export async function readParameters(folder: string): Promise<ReproParameters> {
  const path = join(folder, PARAMETERS_FILE);
  const text = await readOutside(path, SIZE_LIMIT).catch((error: unknown) => {
    throw new TraceError(
      'ERR_REPRO_NOT_FOUND',
      `${printable(folder)} holds no reproduction: ${PARAMETERS_FILE} cannot be read (${errorCode(error)})`,
      { exitCode: EXIT.notFound, remedy: 'Give the folder that trace repro new has written.' },
    );
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unusable(path, 'it is not JSON');
  }
  return checkParameters(value, path);
}

/** A value as parameters, or a TraceError that says what is wrong with it; `path` is only named. */
export function checkParameters(value: unknown, path: string): ReproParameters {
  const problem = problemOf(value);
  if (problem !== null) throw unusable(path, problem);
  return value as ReproParameters;
}

function problemOf(value: unknown): string | null {
  if (!isRecord(value)) return 'it is not an object';
  const { schema_version: version, script, origin, oracle, call, traffic } = value;
  if (typeof version === 'number' && version > SCHEMA_VERSION)
    return `its schema_version ${version} is newer than this trace knows (${SCHEMA_VERSION})`;
  if (version !== SCHEMA_VERSION) return `schema_version is not ${SCHEMA_VERSION}`;
  if (!['python', 'node', 'shell'].includes(String(value['language'])))
    return 'language is not python, node or shell';
  // A name, never a path: the script lies in the folder.
  if (typeof script !== 'string' || !/^[\w.-]+$/.test(script) || script.startsWith('.'))
    return 'script is not the name of a file in the folder';
  if (!isRecord(oracle) || !ORACLE_KINDS.some((kind) => kind === oracle['kind']))
    return `oracle.kind is not one of ${ORACLE_KINDS.join(', ')}`;
  for (const name of ['attempts', 'concurrency']) {
    const count = value[name];
    if (typeof count !== 'number' || !Number.isInteger(count) || count < 1)
      return `${name} is not a whole number above 0`;
  }
  if (typeof value['timeout_s'] !== 'number' || !(value['timeout_s'] > 0))
    return 'timeout_s is not a number of seconds above 0';
  if (!Number.isInteger(value['seed'])) return 'seed is not a whole number';
  if (origin === 'call') return isRecord(call) ? callProblem(call) : 'there is no call';
  if (origin === 'traffic')
    return isRecord(traffic) ? trafficProblem(traffic) : 'there is no traffic';
  return 'origin is neither call nor traffic';
}

function callProblem(call: Readonly<Record<string, unknown>>): string | null {
  if (typeof call['target'] !== 'string') return 'call.target is not text';
  const { args } = call;
  if (!Array.isArray(args) || args.length === 0 || !args.every(Array.isArray))
    return 'call.args is not a list of lists of arguments';
  return null;
}

function trafficProblem(traffic: Readonly<Record<string, unknown>>): string | null {
  const { base_url: url, requests } = traffic;
  if (typeof url !== 'string' || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return 'traffic.base_url is no address of http or https';
  if (!Array.isArray(requests) || requests.length === 0) return 'traffic.requests holds none';
  const isRequest = (one: unknown): boolean =>
    isRecord(one) &&
    typeof one['offset_s'] === 'number' &&
    typeof one['method'] === 'string' &&
    typeof one['path'] === 'string' &&
    isRecord(one['headers']) &&
    (one['body'] === null || typeof one['body'] === 'string');
  const wrong = requests.findIndex((one) => !isRequest(one));
  return wrong === -1 ? null : `traffic.requests[${wrong}] is not a request`;
}

function unusable(path: string, why: string): TraceError {
  return new TraceError('ERR_REPRO_PARAMETERS', `${printable(path)} cannot be used: ${why}`, {
    exitCode: EXIT.unsupported,
    remedy: 'Write the folder again with trace repro new.',
  });
}

/** Whether a value is an object with names. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value came, or could have come, from JSON. */
export function isJson(value: unknown): value is Json {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return true;
  if (Array.isArray(value)) return value.every(isJson);
  return isRecord(value) && Object.values(value).every(isJson);
}
