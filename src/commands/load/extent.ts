import type { Seconds } from '../../core/types.ts';
import type { PromptClass, StagePlan } from '../../load/plan.ts';
import type { LoadOptions } from './options.ts';

/** How much a run will send, as far as its plan tells. */
export interface LoadExtent {
  /** Most streams at once; infinite where a high rate has no limit. */
  readonly streams: number;
  /** Null: as many as the server answers, or as the data hold. */
  readonly requests: number | null;
  /** Requests before them that are not measured; 0 where that is a matter of time. */
  readonly warmup: number;
  /** Null: until the requests are sent. Drains are not in it. */
  readonly seconds: Seconds | null;
  /** Tokens of one request, on average; null where the data decide. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
}

/** Below this rate a server that does not answer is noticed before there are a thousand streams: connections time out. */
const HIGH_RATE = 1000;

export function extentOf(options: LoadOptions): LoadExtent {
  const { stages, prompts } = options;
  const { warmup } = options;
  const requests = sum(stages.map((stage) => requestsOf(stage, prompts.turns)));
  return {
    streams: Math.max(...stages.map(streamsOf)),
    requests,
    warmup: warmup !== null && 'requests' in warmup ? warmup.requests : 0,
    seconds: sum(stages.map(({ duration }) => duration)),
    inputTokens: mean(prompts.classes, (one) =>
      one.kind === 'file' ? null : one.inputTokens + one.prefixTokens,
    ),
    outputTokens: mean(prompts.classes, (one) => one.outputTokens),
  };
}

/** A rate is one of conversations, a number one of requests. */
function requestsOf({ arrival, duration, requests }: StagePlan, turns: number): number | null {
  if (arrival.kind !== 'open' || duration === null) return requests;
  const due = Math.round(((arrival.rate + arrival.rateTo) / 2) * duration) * turns;
  return requests === null ? due : Math.min(due, requests);
}

function streamsOf({ arrival, maxConcurrency }: StagePlan): number {
  if (arrival.kind === 'closed') return arrival.concurrency;
  if (maxConcurrency !== null) return maxConcurrency;
  if (arrival.kind === 'open' && Math.max(arrival.rate, arrival.rateTo) > HIGH_RATE) {
    return Number.POSITIVE_INFINITY;
  }
  return 0;
}

function sum(values: readonly (number | null)[]): number | null {
  let total = 0;
  for (const value of values) {
    if (value === null) return null;
    total += value;
  }
  return total;
}

function mean(
  classes: readonly PromptClass[],
  of: (prompts: PromptClass['prompts']) => number | null,
): number | null {
  const weights = sum(classes.map(({ weight }) => weight)) ?? 1;
  const values = classes.map(({ prompts, weight }) => {
    const value = of(prompts);
    return value === null ? null : value * weight;
  });
  const total = sum(values);
  return total === null ? null : total / weights;
}
