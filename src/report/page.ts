import { clipEnd, displayWidth, pad, toAscii, wrap } from './layout.ts';
import { createStyle, type Style, type Surface } from './style.ts';

/** Where a paragraph stands. */
interface Indent {
  /** Columns before the first line. */
  readonly first: number;
  /** Columns before the other lines. */
  readonly rest: number;
}

/** Lines being laid out for one surface: nothing on it is wider than the surface, except what `verbatim` puts there. */
export class Page {
  readonly style: Style;
  readonly width: number;
  readonly #unicode: boolean;
  readonly #lines: string[] = [];

  constructor(surface: Surface) {
    this.style = createStyle(surface.color);
    this.width = surface.width;
    this.#unicode = surface.unicode;
  }

  /** A wrapped paragraph. */
  paragraph(text: string, indent: Indent = { first: 0, rest: 0 }): void {
    const margin = Math.max(indent.first, indent.rest);
    for (const [i, line] of wrap(this.#shown(text), this.width - margin).entries()) {
      this.#lines.push(' '.repeat(i === 0 ? indent.first : indent.rest) + line);
    }
  }

  /** A label in its own column, and wrapped text beside it. */
  field(label: string, text: string, indent: { at: number; labelWidth: number }): void {
    const start = indent.at + indent.labelWidth;
    const lines = wrap(this.#shown(text), this.width - start);
    for (const [i, line] of lines.entries()) {
      const left = i === 0 ? ' '.repeat(indent.at) + this.style.dim(label) : '';
      this.#lines.push(pad(left, start) + line);
    }
  }

  /** One line, cut at the width. */
  row(text: string): void {
    this.#lines.push(clipEnd(this.#shown(text), this.width));
  }

  /** A line that is copied by people (a path, a command) and so never broken; a terminal wraps it itself. */
  verbatim(text: string): void {
    this.#lines.push(this.#shown(text));
  }

  /** An empty line, unless there is one or the page is empty. */
  gap(): void {
    if (this.#lines.length > 0 && this.#lines.at(-1) !== '') this.#lines.push('');
  }

  /** Columns left beside something that takes `used`. */
  beside(used: number | string): number {
    return Math.max(8, this.width - (typeof used === 'number' ? used : displayWidth(used)));
  }

  toString(): string {
    return `${this.#lines.map((line) => line.trimEnd()).join('\n')}\n`;
  }

  #shown(text: string): string {
    return this.#unicode ? text : toAscii(text);
  }
}
