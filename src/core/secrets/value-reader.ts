/**
 * Reads the value behind a name, as far as it goes: quoted, escaped, or up to what ends it there.
 */

/** Where a value stands in its text. */
export interface Value {
  readonly from: number;
  readonly to: number;
  /** Behind it and the quote that closes it. */
  readonly end: number;
  readonly isQuoted: boolean;
}

/** What ends a value without quotes. */
export interface ValueEnd {
  /**
   * `word`: a space, and a separator with another pair behind it. `query`: what separates
   * parameters. `encoded`: the same, percent-encoded. `line` and `all`: the end of the line or of
   * the text, and a separator with another pair behind it.
   */
  readonly ending: 'word' | 'query' | 'encoded' | 'line' | 'all';
  /** What joins names and values here. */
  readonly sign: string;
  /** It is read no further than that. */
  readonly most: number;
}

const PREFIX = /[bBfFrRuU]{1,2}(?=["'])/y;
const OPENING = /\\{0,16}["'`]|%22|%27|&quot;|&#39;/y;
/** What ends no value. Bounded: of some values only the beginning is looked at. */
const PLAIN = /[^\s"'`<>;&,|\\%#)\]}]{1,512}/y;
const ENCODED_END = /^%(?:26|23|22|27|3B|20|0A)$/i;
const NEXT_PAIR = /\s?["']?[\w.[\]-]{1,64}["']?\]?\s?(=|:|%3D)/y;
/** What stands for a value: `${{ secrets.KEY }}`, `{{ key }}`, `$(cat key)`. */
const TEMPLATE = /\$\{\{[^{}\n]{0,80}\}\}|\{\{[^{}\n]{0,80}\}\}|\$\([^()\n]{0,80}\)/y;
const SEPARATOR = /[;&,\s]/g;

export class ValueReader {
  readonly #text: string;
  /** Of the line that was looked at last. */
  #lineEnd = -1;

  constructor(text: string) {
    this.#text = text;
  }

  /** The value that begins at `at`. */
  read(at: number, end: ValueEnd): Value {
    const prefix = this.#match(PREFIX, at)?.[0].length ?? 0;
    const opening = this.#match(OPENING, at + prefix)?.[0];
    return opening === undefined
      ? this.#bare(at, end)
      : this.within(at + prefix + opening.length, opening);
  }

  /**
   * From `from`, behind that opening, to the quote that closes it; to the end of the line where
   * none does.
   */
  within(from: number, opening: string): Value {
    const text = this.#text;
    const limit = this.lineEnd(from);
    const isEntity = !/["'`]$/.test(opening);
    const quote = isEntity ? opening : opening.slice(-1);
    const depth = isEntity ? 0 : opening.length - 1;
    let to = text.indexOf(quote, from);
    for (; to !== -1 && to < limit; to = text.indexOf(quote, to + 1)) {
      let slashes = 0;
      while (to - slashes > from && text[to - slashes - 1] === '\\') slashes++;
      if (depth === 0 ? slashes % 2 === 1 : slashes > depth) continue;
      // A shell's way to write a quote between quotes.
      if (quote === "'" && depth === 0 && text.startsWith("\\''", to + 1)) to += 3;
      else
        return {
          from,
          to: depth === 0 ? to : to - slashes,
          end: to + quote.length,
          isQuoted: true,
        };
    }
    return { from, to: limit, end: limit, isQuoted: true };
  }

  /** Where the line ends in which `at` is. */
  lineEnd(at: number): number {
    if (at > this.#lineEnd) {
      const found = this.#text.indexOf('\n', at);
      this.#lineEnd = found === -1 ? this.#text.length : found;
    }
    return this.#lineEnd;
  }

  #bare(from: number, end: ValueEnd): Value {
    const { ending, most } = end;
    const text = this.#text;
    let to = this.#match(TEMPLATE, from) === null ? from : TEMPLATE.lastIndex;
    if (ending === 'line' || ending === 'all')
      to = this.#lastOf(from, ending === 'all' ? text.length : this.lineEnd(from), end.sign);
    else
      while (to < text.length && to - from < most) {
        if (this.#match(PLAIN, to) !== null) {
          to = PLAIN.lastIndex;
          continue;
        }
        if (this.#ends(to, from, end)) break;
        to += text[to] === '\\' ? 2 : 1;
      }
    to = Math.min(to, text.length);
    return { from, to, end: to, isQuoted: false };
  }

  /** Up to a separator with another pair behind it. */
  #lastOf(from: number, limit: number, sign: string): number {
    SEPARATOR.lastIndex = from;
    for (let found = SEPARATOR.exec(this.#text); found !== null;) {
      if (found.index >= limit) break;
      const at = SEPARATOR.lastIndex;
      // A header holds spaces, and what follows one there is no name.
      const isOne = sign !== ':' || !/\s/.test(found[0]);
      if (isOne && this.#hasPair(at, sign)) return found.index;
      SEPARATOR.lastIndex = at;
      found = SEPARATOR.exec(this.#text);
    }
    return limit;
  }

  #ends(at: number, from: number, { ending, sign }: ValueEnd): boolean {
    const text = this.#text;
    const next = text[at + 1] ?? ' ';
    switch (text.charAt(at)) {
      case '"':
      case "'":
      case '`':
        // One within a word is a part of it.
        return at === from || !/\w/.test(next);
      case ';':
      case '&':
        if (ending !== 'word') return true;
        return next === text[at] || /[\s"'`)\]}]/.test(next) || this.#hasPair(at + 1, sign);
      case ',':
        return /[\s"'`)\]}]/.test(next) || this.#hasPair(at + 1, sign);
      case '|':
        return next === '|' || /\s/.test(next);
      case '%':
        return ending === 'encoded' && ENCODED_END.test(text.slice(at, at + 3));
      case '#':
        return ending === 'query';
      case '<':
        return /[\s/]/.test(next);
      case '>':
        return /\s/.test(next);
      case ')':
      case ']':
      case '}':
        return /[\s"'`,;:)\]}>\\]/.test(next);
      case '\\':
        return /["'`\r\n]/.test(next);
      default:
        return true;
    }
  }

  /** Whether a name and a sign of the same kind follow. */
  #hasPair(at: number, sign: string): boolean {
    const found = this.#match(NEXT_PAIR, at)?.[1];
    return found !== undefined && (found === ':') === sign.includes(':');
  }

  #match(pattern: RegExp, at: number): RegExpExecArray | null {
    pattern.lastIndex = at;
    return pattern.exec(this.#text);
  }
}
