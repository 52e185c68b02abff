/** Names in text, as far as what stands around them says what they are. */

/** A name in a text, and what stands around it. */
export interface Name {
  readonly text: string;
  readonly from: number;
  readonly end: number;
  /** An option: `--name`, `-name`, `/name`. */
  readonly isFlag: boolean;
  /** A parameter of an address. */
  readonly isQuery: boolean;
  /** The same, percent-encoded. */
  readonly isEncoded: boolean;
  /** The quote before it, with its backslashes; empty where there is none. */
  readonly quote: string;
  /** The word before it. */
  readonly before: string;
}

/** Headers with a form of their own, and how sure their name makes a value that is an option's. */
export const HEADERS = { authorization: 'certain', cookie: 'likely' } as const;

export type Header = keyof typeof HEADERS;

/** Which of them a name is, also behind curl's `-H`; null for another. */
export function headerOf(name: string): Header | null {
  const found = /(?:^H?|[-_.])(authorization|cookie)$/i.exec(name)?.[1]?.toLowerCase();
  return found === 'authorization' || found === 'cookie' ? found : null;
}

/** What decides stands so near before a name. */
const AROUND = 24;

/** The name that a word at `index` holds. */
export function nameAt(text: string, index: number, word: string): Name {
  const from = index + notItsOwn(text, index, word);
  const around = text.slice(Math.max(0, from - AROUND), from);
  const quote = /(?:\\{0,16}["'`]|%22|%27|&quot;|&#39;)$/.exec(around)?.[0] ?? '';
  const isFlag = /(?:^|[\s"'`=([{,;|&\\:])--?$/.test(around) || /(?:^|\s)\/$/.test(around);
  return {
    text: word.slice(from - index),
    from,
    end: index + word.length,
    isFlag,
    isQuery: /[?&#]$/.test(around),
    isEncoded: /%(?:26|3F|23)$/i.test(around),
    quote,
    before: /(?:^|[^\w.-])([A-Za-z]{2,20})[ \t]$/.exec(around)?.[1] ?? '',
  };
}

/** Characters at the beginning of a word that belong to `%3D` or `\n` before it. */
function notItsOwn(text: string, index: number, word: string): number {
  if (text[index - 1] === '%' && /^[\da-f]{2}/i.test(word)) return 2;
  const before = text.slice(Math.max(0, index - 2), index);
  if (/^%[\da-f]$/i.test(before) && /^[\da-f]/i.test(word)) return 1;
  return before.endsWith('\\') && /^[nrt]/.test(word) ? 1 : 0;
}
