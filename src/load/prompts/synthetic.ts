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

/**
 * The words, a space before each, as the doubles that have their bytes: a word is written by one or two stores, five times as fast as byte by
 * byte, which was itself three times as fast as putting strings together. (ASCII is never the bytes of a NaN, which may come out as another.) No word has more than 15 letters.
 */
const WORD_BYTES = 16;
const LENGTHS: Uint8Array = Uint8Array.from(WORDS, (word) => word.length + 1);
const HALVES: Float64Array = new Float64Array(
  WORDS.flatMap((word) => {
    const padded = Buffer.from(` ${word}`.padEnd(WORD_BYTES), 'latin1');
    return [padded.readDoubleLE(0), padded.readDoubleLE(WORD_BYTES / 2)];
  }),
);
/** A number from 0 to 1 has 53 random bits: five words of ten bits. */
const WORDS_A_NUMBER = 5;
let scratch: Buffer = Buffer.alloc(64 * 1024);
let view: DataView = viewOf(scratch);

/** `count` words, one token each for most vocabularies. */
export function words(seed: number, stream: number, index: number, count: number): string {
  const random = randomOf(seed, stream, index);
  if (scratch.length < (count + 1) * WORD_BYTES) {
    scratch = Buffer.alloc((count + 1) * WORD_BYTES);
    view = viewOf(scratch);
  }
  let at = 0;
  let bits = 0;
  for (let i = 0; i < count; i++) {
    if (i % WORDS_A_NUMBER === 0) bits = random.uniform();
    bits *= WORDS.length;
    const which = Math.floor(bits);
    bits -= which;
    const length = LENGTHS[which] ?? 0;
    view.setFloat64(at, HALVES[2 * which] ?? 0, true);
    if (length > WORD_BYTES / 2) {
      view.setFloat64(at + WORD_BYTES / 2, HALVES[2 * which + 1] ?? 0, true);
    }
    at += length;
  }
  return scratch.toString('latin1', 1, Math.max(1, at));
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
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
