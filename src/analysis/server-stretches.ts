import type { ServerCourse } from '../core/server-course.ts';
import { median } from '../core/statistics.ts';
import type { Ratio, Seconds } from '../core/types.ts';

/** Stretches between two readings of a server's page in which requests waited for something that its numbers name. */

/** What held requests up. */
export type ServerCause =
  /** Not yet begun: the queue. */
  | 'queue'
  /** The KV cache was full: requests waited for blocks, or were put back for want of them. */
  | 'kv-cache'
  /** Running, and no token came while the prompt of another was worked on. */
  | 'long-prefill';

export interface ServerStretch {
  readonly cause: ServerCause;
  readonly from: Seconds;
  readonly to: Seconds;
}

/**
 * From here on a scheduler finds no blocks for a long prompt. vLLM and SGLang put requests back at 1; NVIDIA's AIPerf calls 0.9 high
 * ("Am I hitting capacity limits?" in its guide to server metrics).
 */
export const KV_FULL: Ratio = 0.9;
/** A stretch with less than this share of the usual tokens is one in which none came: pages are not read on the beat of the steps. */
const STALLED: Ratio = 0.1;
/** Fewer running have nobody to hold up. */
const LEAST_RUNNING = 2;
/** A prompt that stops the others for as long as a page lasts is this many times what usually comes in between two pages, and has at least so many tokens: vLLM's own default of tokens a step is 2,048. */
const LONG_PROMPT = { factor: 3, tokens: 2048 } as const;

/** All stretches of a run, by time; one stretch of the page may have several causes. */
export function serverStretches(course: ServerCourse): readonly ServerStretch[] {
  const { at } = course;
  const waiting = course.gauge('waiting');
  const kv = course.gauge('kvUsage');
  const preemptions = steps(course.counted('preemptions'));
  const stalls = new Set(prefillStalls(course));
  const stretches: ServerStretch[] = [];
  for (let i = 1; i < at.length; i++) {
    const [from, to] = [at[i - 1] ?? 0, at[i] ?? 0];
    const add = (cause: ServerCause): void => void stretches.push({ cause, from, to });
    const queued = Math.max(waiting?.[i - 1] ?? 0, waiting?.[i] ?? 0) >= 1;
    const full = Math.max(kv?.[i - 1] ?? 0, kv?.[i] ?? 0) >= KV_FULL;
    // What says most comes first: of two causes of the same stretch that one is named.
    if (stalls.has(i)) add('long-prefill');
    if ((full && queued) || (preemptions?.[i - 1] ?? 0) > 0) add('kv-cache');
    else if (queued) add('queue');
  }
  return stretches;
}

/**
 * Indices i of stretches from page i-1 to i in which requests ran and no token came, and a long prompt was done by the end of it or of the next:
 * servers count a prompt's tokens when its prefill is over. Empty where tokens are counted only when a request ends.
 */
export function prefillStalls(course: ServerCourse): readonly number[] {
  const running = course.gauge('running');
  const tokens = steps(course.counted('outputTokens'));
  const prompts = steps(course.counted('inputTokens'));
  if (running === null || tokens === null || prompts === null) return [];
  if (!course.isLive('outputTokens') || !course.isLive('inputTokens')) return [];
  const usual = median(tokens.filter((count) => count > 0));
  const usualPrompt = median(prompts.filter((count) => count > 0));
  const long = Math.max(LONG_PROMPT.tokens, LONG_PROMPT.factor * usualPrompt);
  return tokens.flatMap((count, i) => {
    const isBusy = Math.min(running[i] ?? 0, running[i + 1] ?? 0) >= LEAST_RUNNING;
    if (!isBusy || !(count < usual * STALLED)) return [];
    // Over the stalled stretches that follow, too: a prefill may last longer than one.
    let end = i;
    while ((tokens[end] ?? usual) < usual * STALLED && end < tokens.length) end++;
    const done = Math.max(...prompts.slice(i, end + 1));
    return done >= long ? [i + 1] : [];
  });
}

/** What was added from each page to the next. */
function steps(counted: readonly number[] | null): readonly number[] | null {
  return counted === null
    ? null
    : counted.slice(1).map((count, i) => count - (counted[i] ?? count));
}
