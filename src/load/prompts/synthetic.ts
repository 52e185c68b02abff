import type { PromptClass } from '../plan.ts';
import { pick, randomOf, STREAM } from './random.ts';
import { WORDS } from './words.ts';

/** Prompts that are made up: words from the seed, about as many tokens as asked for, no two alike. */

type Synthetic = Extract<PromptClass['prompts'], { kind: 'synthetic' }>;

/** A prompt and how long its answer may be; null leaves that to the server. */
export interface Prompt {
  readonly text: string;
  readonly outputTokens: number | null;
}

/** The `index`th prompt. It shares a beginning with others only as far as prefixes were asked for, so a server's prefix cache finds nothing. */
export function syntheticPrompt(prompts: Synthetic, seed: number, index: number): Prompt {
  const lengths = randomOf(seed, STREAM.lengths, index);
  const spread =
    prompts.spread === 'uniform' ? () => lengths.uniform() * 2 - 1 : () => lengths.normal();
  const inputTokens = length(prompts.inputTokens, prompts.inputDeviation, spread);
  const outputTokens =
    prompts.outputTokens === null
      ? null
      : length(prompts.outputTokens, prompts.outputDeviation, spread);
  const own = words(seed, STREAM.words, index, inputTokens);
  if (prompts.prefixTokens === 0) return { text: own, outputTokens };
  const prefix = prefixText(seed, pick(lengths, prompts.prefixes), prompts.prefixTokens);
  return { text: `${prefix} ${own}`, outputTokens };
}

function length(mean: number, deviation: number, spread: () => number): number {
  return deviation === 0 ? mean : Math.max(1, Math.round(mean + deviation * spread()));
}

/** `count` words, one token each for most vocabularies. */
export function words(seed: number, stream: number, index: number, count: number): string {
  const random = randomOf(seed, stream, index);
  let text = '';
  for (let i = 0; i < count; i++) {
    const word = WORDS[pick(random, WORDS.length)] ?? '';
    text = text === '' ? word : `${text} ${word}`;
  }
  return text;
}

/** Prefixes that were used last: making one anew for each request would cost as much as the rest of it. */
const kept = new Map<string, string>();
const MOST_KEPT = 64;

function prefixText(seed: number, which: number, tokens: number): string {
  const key = `${seed}/${which}/${tokens}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const text = words(seed, STREAM.prefix, which, tokens);
  const [oldest] = kept.keys();
  if (kept.size >= MOST_KEPT && oldest !== undefined) kept.delete(oldest);
  kept.set(key, text);
  return text;
}
