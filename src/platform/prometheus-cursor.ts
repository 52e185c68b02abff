const WORD = /[\w:.]*/y;
const TOKEN = /\S*/y;

/** A line of a Prometheus page, read from left to right. */
export class LineCursor {
  readonly #line: string;
  #at = 0;

  constructor(line: string) {
    this.#line = line;
  }

  /** Whether this character comes next. */
  sees(character: string): boolean {
    return this.#line[this.#at] === character;
  }

  /** Reads over this character, if it comes next. */
  take(character: string): boolean {
    if (!this.sees(character)) return false;
    this.#at++;
    return true;
  }

  spaces(): void {
    while (this.sees(' ') || this.sees('\t')) this.#at++;
  }

  /** A name: letters, digits, `_`, `:` and, as some servers write it, `.`; empty when none comes next. */
  word(): string {
    return this.#match(WORD);
  }

  /** All that was read so far. */
  before(): string {
    return this.#line.slice(0, this.#at);
  }

  /** All up to the next space. */
  token(): string {
    this.spaces();
    return this.#match(TOKEN);
  }

  /** A text in double quotes, without them and unescaped; null when none comes next, or it does not end. */
  quoted(): string | null {
    if (!this.sees('"')) return null;
    const end = this.#line.indexOf('"', this.#at + 1);
    const plain = this.#line.slice(this.#at + 1, end);
    if (end !== -1 && !plain.includes('\\')) {
      this.#at = end + 1;
      return plain;
    }
    return this.#escaped();
  }

  #escaped(): string | null {
    let text = '';
    for (let at = this.#at + 1; at < this.#line.length; at++) {
      const character = this.#line[at] ?? '';
      if (character === '"') {
        this.#at = at + 1;
        return text;
      }
      if (character !== '\\') {
        text += character;
        continue;
      }
      const escaped = this.#line[++at] ?? '';
      if (escaped === 'n') text += '\n';
      else text += escaped === '\\' || escaped === '"' ? escaped : `\\${escaped}`;
    }
    return null;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [text = ''] = pattern.exec(this.#line) ?? [];
    this.#at += text.length;
    return text;
  }
}
