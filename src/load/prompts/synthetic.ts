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

/** The words as bytes, a space before each; copying them is three times as fast as putting strings together. */
const BYTES: readonly Uint8Array[] = WORDS.map((word) =>
  Uint8Array.from(Buffer.from(` ${word}`, 'latin1')),
);
const LONGEST = Math.max(...BYTES.map((bytes) => bytes.length));
/** A number from 0 to 1 has 53 random bits: five words of ten bits. */
const WORDS_A_NUMBER = 5;
let scratch: Buffer = Buffer.alloc(64 * 1024);

/** `count` words, one token each for most vocabularies. */
export function words(seed: number, stream: number, index: number, count: number): string {
  const random = randomOf(seed, stream, index);
  if (scratch.length < count * LONGEST) scratch = Buffer.alloc(count * LONGEST);
  let at = 0;
  let bits = 0;
  for (let i = 0; i < count; i++) {
    if (i % WORDS_A_NUMBER === 0) bits = random.uniform();
    bits *= WORDS.length;
    const which = Math.floor(bits);
    bits -= which;
    const bytes = BYTES[which];
    if (bytes === undefined) continue;
    for (let j = 0; j < bytes.length; j++) scratch[at++] = bytes[j] ?? 0;
  }
  return scratch.toString('latin1', 1, Math.max(1, at));
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
