import type { Ratio } from '../../src/core/types.ts';
import type { Json, ReproParameters, TrafficRequest } from '../parameters/parameters.ts';
import { isRecord } from '../parameters/read.ts';
import { type Budget, stillFails } from './budget.ts';
import { ddmin, smallest } from './ddmin.ts';

/** The smallest parameters with which a reproduction still fails. */

/** One trial in a fresh process: whether it failed; null when it could not run. */
export type ParameterTrial = (parameters: ReproParameters, seed: number) => Promise<boolean | null>;

export interface ShrinkParametersOptions {
  readonly trial: ParameterTrial;
  readonly keep: Ratio;
  readonly budget: Budget;
}

export interface ShrunkParameters {
  readonly parameters: ReproParameters;
  /** False when the budget ended before everything was tried. */
  readonly isMinimal: boolean;
  /** Of trials with the result and with seeds that were not used before. */
  readonly verified: { readonly failing: number; readonly runs: number };
}

/** Trials after the end, on top of the budget: what was found by trying is not taken on its own word. */
const VERIFYING_RUNS = 20;

type Keeps = (parameters: ReproParameters) => Promise<boolean | null>;

/**
 * Shrinks, one thing after another: attempts, concurrency, then argument lists of a call, or requests of traffic, their bodies and their
 * offsets. Null when the parameters as given do not fail at the rate to keep.
 */
export async function shrinkParameters(
  given: ReproParameters,
  { trial, keep, budget }: ShrinkParametersOptions,
): Promise<ShrunkParameters | null> {
  let seed = given.seed;
  const keeps: Keeps = (parameters) => stillFails(() => trial(parameters, seed++), keep, budget);
  if ((await keeps(given)) !== true) return null;
  let parameters = given;
  parameters = await smallestCount(parameters, 'attempts', keeps);
  parameters = await smallestCount(parameters, 'concurrency', keeps);
  parameters = await fewerArguments(parameters, keeps);
  parameters = await lessTraffic(parameters, keeps);
  const isMinimal = !budget.isSpent;
  const outcomes: (boolean | null)[] = [];
  while (outcomes.length < VERIFYING_RUNS) {
    // oxlint-disable-next-line no-await-in-loop -- one after another: they share the machine
    outcomes.push(await trial(parameters, seed++));
  }
  const failing = outcomes.filter((one) => one === true).length;
  // One that could not run says nothing.
  const runs = outcomes.filter((one) => one !== null).length;
  return { parameters, isMinimal, verified: { failing, runs } };
}

async function smallestCount(
  parameters: ReproParameters,
  name: 'attempts' | 'concurrency',
  keeps: Keeps,
): Promise<ReproParameters> {
  const size = await smallest(parameters[name], 1, (count) =>
    keeps({ ...parameters, [name]: count }),
  );
  return { ...parameters, [name]: size };
}

async function fewerArguments(parameters: ReproParameters, keeps: Keeps): Promise<ReproParameters> {
  const { call } = parameters;
  if (call === undefined || call.args.length < 2) return parameters;
  const having = (args: readonly (readonly Json[])[]): ReproParameters => ({
    ...parameters,
    call: { ...call, args },
  });
  // A reproduction needs a list of arguments, if an empty one.
  const { kept } = await ddmin(call.args, async (args) => args.length > 0 && keeps(having(args)));
  return having(kept);
}

async function lessTraffic(parameters: ReproParameters, keeps: Keeps): Promise<ReproParameters> {
  const { traffic } = parameters;
  if (traffic === undefined) return parameters;
  const having = (requests: readonly TrafficRequest[]): ReproParameters => ({
    ...parameters,
    traffic: { ...traffic, requests },
  });
  const { kept } = await ddmin(
    traffic.requests,
    async (requests) => requests.length > 0 && keeps(having(requests)),
  );
  let requests = kept;
  for (const [at, request] of kept.entries()) {
    const before = requests;
    // oxlint-disable-next-line no-await-in-loop -- each step depends on the one before
    const simple = await simplerRequest(request, (one) => keeps(having(before.with(at, one))));
    requests = before.with(at, simple);
  }
  return having(requests);
}

/** A request with less in it: sent at once, then with fewer members or characters of its body. */
async function simplerRequest(
  request: TrafficRequest,
  keeps: (request: TrafficRequest) => Promise<boolean | null>,
): Promise<TrafficRequest> {
  let current = request;
  const atOnce = { ...request, offset_s: 0 };
  if (request.offset_s > 0 && (await keeps(atOnce)) === true) current = atOnce;
  const { body } = current;
  if (body === null || body === '') return current;
  const members = membersOf(body);
  const withBody = (text: string): TrafficRequest => ({ ...current, body: text });
  if (members === null) {
    const length = await smallest(body.length, 0, (size) => keeps(withBody(body.slice(0, size))));
    return withBody(body.slice(0, length));
  }
  const text = (kept: readonly (readonly [string, unknown])[]): string =>
    JSON.stringify(Object.fromEntries(kept));
  const { kept } = await ddmin(members, (some) => keeps(withBody(text(some))));
  return kept.length === members.length ? current : withBody(text(kept));
}

/** The members of a body that is a JSON object; null for any other. */
function membersOf(body: string): readonly (readonly [string, unknown])[] | null {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) ? Object.entries(value) : null;
  } catch {
    return null;
  }
}
