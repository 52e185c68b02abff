import type { Ratio, Seconds } from '../../src/core/types.ts';
import type { Json, ReproParameters, TrafficRequest } from '../parameters/parameters.ts';
import { isRecord } from '../parameters/read.ts';
import { type Budget, MOST_INVALID, stillFails } from './budget.ts';
import { ddmin, smallest } from './ddmin.ts';
import { smallestThatHolds, type Verified } from './verify.ts';

/** The smallest parameters with which a reproduction still fails, and its control still does not. */

/** One trial in a fresh process: whether it failed; null when it could not run. */
export type ParameterTrial = (parameters: ReproParameters, seed: number) => Promise<boolean | null>;

/** What must not fail, with whatever parameters: the fixed version, or one attempt at a time. */
export interface ShrinkControl {
  readonly trial: ParameterTrial;
  /** False: one that fails with the parameters as given is done without. */
  readonly isAskedFor: boolean;
}

export interface ShrinkParametersOptions {
  readonly trial: ParameterTrial;
  readonly control: ShrinkControl | null;
  readonly keep: Ratio;
  readonly budget: Budget;
}

export interface ShrunkParameters {
  readonly parameters: ReproParameters;
  /** False when the budget ended before everything was tried. */
  readonly isMinimal: boolean;
  /** What looking for it took, without the trials that verify it. */
  readonly looked: Seconds;
  /** Of trials with the result and with seeds that were not used before. */
  readonly verified: Verified;
  /** The same of the control; null without one that passes as given. */
  readonly control: Verified | null;
  /** Cases that were smaller, and that fresh trials did not confirm. */
  readonly fellBack: number;
}

/** Why nothing was shrunk: as given it is too rare, the control fails as well, or the budget ended before that was known. */
export type NotShrunk = 'too-rare' | 'control-fails' | 'out-of-budget';

/** Trials after the end, on top of the budget: what was found by trying is not taken on its own word. */
const VERIFYING_RUNS = 20;

type Keeps = (parameters: ReproParameters) => Promise<boolean | null>;

/**
 * Shrinks, one thing after another: attempts, concurrency, then argument lists of a call, or requests of traffic, their bodies and their
 * offsets. A step after which the control fails is not taken: what then fails is another fault, such as a request that became a wrong one.
 */
export async function shrinkParameters(
  given: ReproParameters,
  { trial, control: wanted, keep, budget }: ShrinkParametersOptions,
): Promise<ShrunkParameters | NotShrunk> {
  let seed = given.seed;
  const fails: Keeps = (parameters) => stillFails(() => trial(parameters, seed++), keep, budget);
  const asGiven = await fails(given);
  if (asGiven !== true) return asGiven === null ? 'out-of-budget' : 'too-rare';
  const passes = wanted === null || (await controlPasses(given, wanted, { keep, budget, seed }));
  if (passes !== true && wanted?.isAskedFor === true)
    return passes === null ? 'out-of-budget' : 'control-fails';
  const control = passes === true ? (wanted?.trial ?? null) : null;
  const taken: [ReproParameters, ...ReproParameters[]] = [given];
  const keeps: Keeps = async (parameters) => {
    const fault = await fails(parameters);
    const does =
      fault !== true || control === null
        ? fault
        : await oncePassed(() => control(parameters, seed++), budget);
    // What is kept is gone on with: the smallest yet.
    if (does === true) taken.push(parameters);
    return does;
  };
  let parameters = given;
  parameters = await smallestCount(parameters, 'attempts', keeps);
  parameters = await smallestCount(parameters, 'concurrency', keeps);
  parameters = await fewerArguments(parameters, keeps);
  await lessTraffic(parameters, keeps);
  const isMinimal = !budget.isSpent;
  const looked = budget.elapsed;
  // Of one seed are a run and that of its control.
  const held = await smallestThatHolds(taken, {
    trial: (one) => trial(one, seed++),
    control: control === null ? null : (one) => control(one, seed - 1),
    keep,
    runs: VERIFYING_RUNS,
    budget,
  });
  return {
    parameters: held.one,
    isMinimal,
    looked,
    verified: held.verified,
    control: held.control,
    fellBack: held.fellBack,
  };
}

/** Whether the control passes with the parameters as given; one that cannot run does not. Null when the budget ends first. */
async function controlPasses(
  given: ReproParameters,
  { trial }: ShrinkControl,
  { keep, budget, seed }: { readonly keep: Ratio; readonly budget: Budget; readonly seed: number },
): Promise<boolean | null> {
  let hasRun = false;
  let next = seed;
  const once = async (): Promise<boolean | null> => {
    const hit = await trial(given, next++);
    hasRun ||= hit !== null;
    return hit;
  };
  const fails = await stillFails(once, keep, budget);
  return fails === null ? null : !fails && hasRun;
}

/** Whether one trial of the control that could run passed; null when the budget ends first. */
async function oncePassed(
  trial: () => Promise<boolean | null>,
  budget: Budget,
): Promise<boolean | null> {
  for (let invalid = 0; invalid < MOST_INVALID; invalid++) {
    if (budget.isSpent) return null;
    budget.spent++;
    // oxlint-disable-next-line no-await-in-loop -- again only when it could not run
    const hit = await trial();
    if (hit !== null) return !hit;
  }
  return false;
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
