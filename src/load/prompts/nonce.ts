import type { RequestError } from '../../core/load-types.ts';
import type { Ask } from './body.ts';

/**
 * `--check-nonce`: each prompt asks for a mark of its own to be repeated, and an answer that has the mark of another request belongs to that
 * one. A model that does not repeat it shows nothing; no model makes up the mark of somebody else.
 */

/** The mark of a request: seed and index, and a check so that a model's typing error is not another request. */
function nonceOf(seed: number, index: number): string {
  return `TW${mixed(seed, 0)}x${index}x${mixed(seed, index + 1)}`;
}

/** Eight digits of two numbers, the same everywhere. */
function mixed(seed: number, index: number): string {
  let x = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35);
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  return ((x ^ (x >>> 13)) >>> 0).toString(16).padStart(8, '0');
}

const NONCE = /TW([0-9a-f]{8})x(\d{1,10})x([0-9a-f]{8})/g;
/** Marks looked at in one answer: one that repeats a whole log is wrong by its first. */
const LOOKED_AT = 100;

/** What is asked, with the mark before it. Of a conversation in a data set it stands in the last message, where that is text. */
export function withNonce(ask: Ask, seed: number, index: number): Ask {
  const request = `Begin your answer with this code, exactly: ${nonceOf(seed, index)}\n\n`;
  if (typeof ask === 'string') return request + ask;
  const last = ask.at(-1);
  return typeof last?.content === 'string'
    ? [...ask.slice(0, -1), { ...last, content: request + last.content }]
    : ask;
}

/** The failure of an answer that has the mark of another request of the run; null of any other. */
export function foreignAnswer(
  text: string,
  { seed, index }: { readonly seed: number; readonly index: number },
): RequestError | null {
  let looked = 0;
  for (const [nonce, , other] of text.matchAll(NONCE)) {
    if (++looked > LOOKED_AT) return null;
    const owner = Number(other);
    if (owner === index || nonce !== nonceOf(seed, owner)) continue;
    return {
      class: 'crosstalk',
      status: null,
      detail: `request ${index} was answered with the mark of request ${owner}`,
      retryAfter: null,
    };
  }
  return null;
}
