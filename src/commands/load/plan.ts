import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { errorCode, usageError } from '../../core/errors.ts';
import { newTraceId } from '../../core/ids.ts';
import { printable } from '../../core/text.ts';
import type { BodyPlan, EndpointPlan, LoadPlan, PromptPlan } from '../../load/plan.ts';
import type { LoadOptions } from './options.ts';
import type { EndpointOptions } from './url.ts';

/** From options to the plan of a run: files are read, names are given; nothing is sent. */

/** Everything of a plan but what only the server's name service and the server itself can tell. */
export interface DraftPlan {
  /** The plan as a whole once the address is known and the model named. */
  complete(address: EndpointPlan['address'], model: string): LoadPlan;
  /** The endpoint, to ask for its models with. */
  endpoint(address: EndpointPlan['address']): EndpointPlan;
  readonly prompts: PromptPlan;
}

export async function draftPlan(options: LoadOptions, cwd: string): Promise<DraftPlan> {
  const { endpoint: given, part } = options;
  const ca = given.caFile === null ? null : await readText(resolve(cwd, given.caFile), '--cacert');
  const extra = await extraBody(options.extraBody, cwd);
  const prompts = withPaths(options.prompts, cwd);
  const runId = options.runId ?? `load-${randomBytes(4).toString('hex')}`;
  const endpoint = (address: EndpointPlan['address']): EndpointPlan =>
    endpointAt(given, address, ca);
  return {
    prompts,
    endpoint,
    complete: (address, model) => ({
      runId,
      part,
      endpoint: endpoint(address),
      prompts,
      body: {
        model,
        stream: options.stream,
        ignoreEos: options.ignoreEos,
        ...outputLimit(given.host),
        extra,
      },
      stages: options.stages,
      warmup: options.warmup,
      timeouts: options.timeouts,
      drain: options.drain,
      seed: options.seed,
      workers: options.workers,
      slos: options.slos,
      trace: options.propagate
        ? {
            // All parts of a run are one trace.
            traceId: part.of > 1 ? traceIdOf(runId) : newTraceId(),
            sample: options.traceSample ?? 'thinning',
          }
        : null,
    }),
  };
}

/** The endpoint that an URL named, at this address; `ca`: certificates to trust beside the usual ones. */
export function endpointAt(
  given: EndpointOptions,
  address: EndpointPlan['address'],
  ca: string | null,
): EndpointPlan {
  return {
    url: given.shown,
    address,
    tls: given.secure ? { servername: given.host, verify: given.verify, ca } : null,
    authority: given.authority,
    path: given.path,
    api: given.api,
    headers: given.headers,
  };
}

function traceIdOf(runId: string): string {
  return createHash('sha256').update(runId).digest('hex').slice(0, 32);
}

/** OpenAI's own newer models refuse `max_tokens`, which is the name that every other server knows. */
export function outputLimit(host: string): Pick<BodyPlan, 'outputLimit'> {
  return /(?:^|\.)openai\.(?:com|azure\.com)$/i.test(host)
    ? { outputLimit: 'max_completion_tokens' }
    : {};
}

/** Workers have no working directory of their own, but a user's path belongs to his. */
function withPaths(plan: PromptPlan, cwd: string): PromptPlan {
  return {
    ...plan,
    classes: plan.classes.map((one) =>
      one.prompts.kind === 'file'
        ? { ...one, prompts: { ...one.prompts, path: resolve(cwd, one.prompts.path) } }
        : one,
    ),
  };
}

async function extraBody(
  texts: readonly string[],
  cwd: string,
): Promise<Readonly<Record<string, unknown>>> {
  let extra: Record<string, unknown> = {};
  for (const text of texts) {
    const json = text.startsWith('@')
      ? await readText(resolve(cwd, text.slice(1)), '--extra-body')
      : text;
    extra = { ...extra, ...parseObject(json) };
  }
  return extra;
}

function parseObject(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    const why = error instanceof Error ? printable(error.message, 100) : 'unreadable';
    throw usageError(`--extra-body is not JSON: ${why}`, `Such as '{"temperature": 0}', or @file`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw usageError('--extra-body takes a JSON object', `Such as '{"temperature": 0}', or @file`);
}

/** A body or a certificate beyond this is the wrong file. */
const LARGEST_FILE = 16 * 1024 * 1024;

async function readText(path: string, flag: string): Promise<string> {
  try {
    const text = await readFile(path);
    if (text.length <= LARGEST_FILE) return text.toString('utf8');
  } catch (error) {
    throw usageError(`${flag}: cannot read ${printable(path)}: ${errorCode(error)}`);
  }
  throw usageError(`${flag}: ${printable(path)} is too large`);
}
