/** The inference servers that a session knows how to name. */

/** A server by its name here. */
export type Backend = 'vllm' | 'sglang' | 'trtllm' | 'dynamo' | 'llama.cpp';

/** What each is recognised by, in a report or on a command line. Dynamo first: its commands name the engine behind it, too. */
const SIGNS: readonly { readonly backend: Backend; readonly words: RegExp }[] = [
  { backend: 'dynamo', words: /\bdynamo(?:\.\w+|[-_]run)?\b/gi },
  { backend: 'vllm', words: /\bvllm(?:\s+serve)?\b/gi },
  { backend: 'sglang', words: /\bsglang(?:\.launch_server)?\b|\bsgl[-_]\w+/gi },
  { backend: 'trtllm', words: /\btrtllm(?:-serve)?\b|\btensorrt[-_ ]?llm\b/gi },
  { backend: 'llama.cpp', words: /\bllama[.-](?:cpp|server)\b|\bllama_cpp\b/gi },
];

export const BACKENDS: readonly Backend[] = ['vllm', 'sglang', 'trtllm', 'dynamo', 'llama.cpp'];

/** A backend that a text speaks of, and its words. */
export interface BackendSign {
  readonly backend: Backend;
  /** As it stands in the text, the first time; untrusted. */
  readonly quote: string;
  readonly times: number;
}

/** Around what was recognised, in characters. */
const QUOTE_MARGIN = 30;
const TEXT_LIMIT = 200_000;

/** The backends that a text speaks of, the most often named first. */
export function backendsIn(text: string): readonly BackendSign[] {
  const looked = text.slice(0, TEXT_LIMIT);
  return SIGNS.flatMap(({ backend, words }) => {
    const found = [...looked.matchAll(words)];
    const [first] = found;
    if (first === undefined) return [];
    const from = Math.max(0, first.index - QUOTE_MARGIN);
    const quote = looked.slice(from, first.index + first[0].length + QUOTE_MARGIN);
    return [{ backend, quote: quote.replaceAll(/\s+/g, ' ').trim(), times: found.length }];
  }).toSorted((a, b) => b.times - a.times);
}
