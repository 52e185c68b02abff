import { seededRandom } from '../../src/core/random.ts';

/** What the tiny Llamas have in common, whatever file they are written to: their size, their random weights, how they spell, their prompts. */

export const HIDDEN = 128;
export const LAYERS = 2;
export const HEADS = 2;
export const FEED_FORWARD = 256;
/** Standard deviation of a weight: large enough that the letters vary. */
const SPREAD = 0.3;

/** The format of a prompt, in Jinja, as Qwen and others have it. */
export const CHAT_TEMPLATE =
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** A named array of numbers; the order of the sizes in `shape` is the file format's. */
export interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** Makes tensors of near enough normal numbers; each call goes on with the numbers behind those of the last. */
export function randomTensors(seed: number): (name: string, ...shape: readonly number[]) => Tensor {
  const random = seededRandom(seed);
  return (name, ...shape) => ({
    name,
    shape,
    // The sum of three uniform numbers is near enough to normal.
    data: Float32Array.from(
      { length: shape.reduce((product, one) => product * one, 1) },
      () => (random() + random() + random() - 1.5) * 2 * SPREAD,
    ),
  });
}

/** The weights of a normalization that leaves its input as it is. */
export function ones(name: string): Tensor {
  return { name, shape: [HIDDEN], data: new Float32Array(HIDDEN).fill(1) };
}

/** Rows of zeros for all but these words: only they can win, so an answer never ends before it is told to. */
export function silenceAllBut(words: RegExp, vocabulary: readonly string[], head: Tensor): void {
  vocabulary.forEach((word, id) => {
    if (!words.test(word)) head.data.fill(0, id * HIDDEN, (id + 1) * HIDDEN);
  });
}

/** GPT-2's letters for the 256 bytes. */
export function byteSpellings(): readonly string[] {
  const isPrintable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let moved = 256;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(isPrintable(byte) ? byte : moved++),
  );
}
