import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { maskText } from '../core/secrets/mask.ts';
import type { Fields } from '../core/session.ts';
import {
  entriesIn,
  type Entry,
  type Field,
  fieldRange,
  fieldsIn,
  keyOf,
  opaqueLines,
  type Range,
} from './fields.ts';
import { decodeValue, encodeScalar, encodeValue, type Form } from './value.ts';

/**
 * A session's Markdown file, read and written without losing a byte: what is set or added changes its own lines, everything else stays as the person left
 * it. Reading is total: what is missing is empty.
 */

interface Section extends Range {
  readonly name: string;
  readonly level: number;
  readonly heading: number;
}

/** Sections by key (`current_focus`), in order, with the keys of their fields. */
export type Shape = Readonly<Record<string, readonly string[]>>;

/** What a file calls its parts. */
export interface Layout {
  readonly shape: Shape;
  /** Headings of sections that are called otherwise, by the section's key. */
  readonly headings: Readonly<Record<string, string>>;
  /** Names of properties that stand in bold below the title, by key; null where they are a frontmatter's. */
  readonly head: Readonly<Record<string, string>> | null;
}

const HEADING = /^(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$/;

export class SessionDocument {
  #lines: string[];
  /** What ends each line. */
  #ends: string[];
  readonly #newline: string;
  /** Sections in the order of a new file: where one that is missing goes. */
  readonly #order: readonly string[];
  readonly #known: Readonly<Record<string, ReadonlySet<string>>>;

  readonly #layout: Layout;

  constructor(text: string, layout: Layout) {
    const { shape } = layout;
    this.#layout = layout;
    const parts = text.split(/(\r\n|\n)/);
    this.#lines = parts.filter((_, i) => i % 2 === 0);
    this.#ends = parts.filter((_, i) => i % 2 === 1);
    this.#newline = this.#ends[0] ?? '\n';
    this.#order = Object.keys(shape);
    this.#known = Object.fromEntries(
      Object.entries(shape).map(([name, keys]) => [name, new Set(keys)]),
    );
  }

  toString(): string {
    return this.#lines.map((line, i) => line + (this.#ends[i] ?? '')).join('');
  }

  /** A value of the frontmatter; empty where there is none. */
  property(key: string): string {
    const field = this.#properties().find((one) => one.key === this.#nameOf(key));
    return field === undefined ? '' : this.#valueOf(field);
  }

  setProperty(key: string, value: string): void {
    if (this.#layout.head !== null) {
      this.#setBold(key, value);
      return;
    }
    const line = `${key}: ${encodeScalar(maskText(value))}`;
    const range = this.#frontmatter();
    if (range === null) {
      this.#splice(0, 0, ['---', line, '---', '']);
      return;
    }
    const field = this.#properties().find((one) => one.key === key);
    if (field === undefined) this.#splice(range.to, 0, [line]);
    else this.#splice(field.from, field.to - field.from, [line]);
  }

  field(section: string, key: string): string {
    const field = this.#fieldsOf(section).find((one) => one.key === key);
    return field === undefined ? '' : this.#valueOf(field);
  }

  fields(section: string): Fields {
    // The first counts, as everywhere here.
    const pairs = this.#fieldsOf(section).map(
      (field) => [field.key, this.#valueOf(field)] as const,
    );
    return Object.fromEntries(pairs.toReversed());
  }

  /** Fields that stand below the name of one. */
  nested(section: string, key: string): Fields {
    const lines = this.field(section, key).split('\n');
    const fields = fieldsIn(lines, { from: 0, to: lines.length }, new Set());
    return Object.fromEntries(
      fields.map(({ key: name, rest, from, to }) => [
        name,
        decodeValue(rest, lines.slice(from + 1, to)),
      ]),
    );
  }

  /** Sets a field, which is added where it was not there, and so is its section. */
  setField(section: string, key: string, value: string, written: Form = {}): void {
    const field = this.#fieldsOf(section).find((one) => one.key === key);
    if (field !== undefined) {
      this.#replace(field, value, written);
      return;
    }
    const at = this.#endOf(section, this.#fieldsOf(section).at(-1)?.to);
    this.#insert(at, linesOf(key, value, written), { apart: false });
  }

  entries(section: string): readonly Fields[] {
    return this.#entriesOf(section).map(({ fields }) =>
      Object.fromEntries(fields.map((field) => [field.key, this.#valueOf(field)]).toReversed()),
    );
  }

  /** Adds an entry behind the others; fields that are empty are left out. */
  append(section: string, entry: Fields, written: Readonly<Record<string, Form>> = {}): void {
    const lines = Object.entries(entry)
      .filter(([, value]) => value !== '')
      .flatMap(([key, value]) => linesOf(key, value, written[key]))
      .map((line, i) => (i === 0 ? `- ${line}` : line === '' ? '' : `  ${line}`));
    const at = this.#endOf(section, this.#entriesOf(section).at(-1)?.to);
    this.#insert(at, lines, { apart: true });
  }

  /** Sets a field of the entry at `index`. Throws a RangeError where there is no such entry. */
  setEntryField(section: string, index: number, key: string, value: string): void {
    const entry = this.#entriesOf(section)[index];
    if (entry === undefined) throw new RangeError(`${section} has no entry ${index}`);
    const field = entry.fields.find((one) => one.key === key);
    if (field !== undefined) {
      this.#replace(field, value, {});
      return;
    }
    const indent = ' '.repeat(entry.fields[0]?.column ?? 2);
    this.#splice(
      entry.to,
      0,
      linesOf(key, value).map((line) => (line === '' ? '' : indent + line)),
    );
  }

  #replace(field: Field, value: string, written: Form): void {
    const [first = '', ...below] = linesOf('', value, written);
    const indent = ' '.repeat(/^\s*[-*]\s/.test(field.prefix) ? field.column + 2 : field.column);
    const lines = [
      field.prefix + first.slice(1),
      ...below.map((line) => (line === '' ? '' : indent + line)),
    ];
    this.#splice(field.from, field.to - field.from, lines);
  }

  #valueOf({ rest, from, to }: Field): string {
    return decodeValue(rest, this.#lines.slice(from + 1, to));
  }

  #frontmatter(): Range | null {
    if (!/^\ufeff?---\s*$/.test(this.#lines[0] ?? '')) return null;
    const end = this.#lines.findIndex((line, i) => i > 0 && /^---\s*$/.test(line));
    return end === -1 ? null : { from: 1, to: end };
  }

  /** The frontmatter's, or what stands in bold below the title. */
  #properties(): readonly Field[] {
    const range = this.#layout.head === null ? this.#frontmatter() : this.#head();
    return range === null ? [] : fieldsIn(this.#lines, range, new Set());
  }

  #nameOf(key: string): string {
    const { head } = this.#layout;
    return head === null ? key : keyOf(head[key] ?? key);
  }

  /** From below the title to the first heading of a section. */
  #head(): Range {
    const [title, next] = this.#sections();
    const from = title?.level === 1 ? title.from : 0;
    const to = (title?.level === 1 ? next : title)?.heading ?? this.#lines.length;
    return { from, to };
  }

  #setBold(key: string, value: string): void {
    const name = this.#layout.head?.[key] ?? titleOf(key);
    const line = `**${name}**: ${encodeScalar(maskText(value))}`;
    const field = this.#properties().find((one) => one.key === this.#nameOf(key));
    if (field !== undefined) {
      this.#splice(field.from, field.to - field.from, [line]);
      return;
    }
    const { from, to } = this.#head();
    const at = this.#properties().at(-1)?.to ?? Math.min(from + 1, to);
    const isApart = at > from && (this.#lines[at] ?? '').trim() === '';
    this.#splice(at, 0, isApart ? [line] : [line, '']);
  }

  #sections(): readonly Section[] {
    const range = { from: (this.#frontmatter()?.to ?? -1) + 1, to: this.#lines.length };
    const opaque = opaqueLines(this.#lines, range);
    const headings: { name: string; level: number; heading: number }[] = [];
    for (let heading = range.from; heading < range.to; heading++) {
      const match = opaque.has(heading) ? null : HEADING.exec(this.#lines[heading] ?? '');
      if (match === null) continue;
      headings.push({ name: keyOf(match[2] ?? ''), level: match[1]?.length ?? 1, heading });
    }
    return headings.map((one, i) => {
      const next = headings.slice(i + 1).find(({ level }) => level <= one.level);
      return { ...one, from: one.heading + 1, to: next?.heading ?? range.to };
    });
  }

  /** The first of this name. */
  #section(name: string): Section | undefined {
    const heading = keyOf(this.#layout.headings[keyOf(name)] ?? name);
    return this.#sections().find((one) => one.name === heading);
  }

  #fieldsOf(section: string): readonly Field[] {
    const found = this.#section(section);
    if (found === undefined) return [];
    const known = this.#known[keyOf(section)] ?? new Set();
    return fieldsIn(this.#lines, fieldRange(this.#lines, found), known);
  }

  #entriesOf(section: string): readonly Entry[] {
    const found = this.#section(section);
    return found === undefined ? [] : entriesIn(this.#lines, fieldRange(this.#lines, found));
  }

  /** Where something new in a section goes: behind what is there, else below its heading and the comment under it. */
  #endOf(section: string, behind: number | undefined): number {
    if (behind !== undefined) return behind;
    const found = this.#section(section) ?? this.#make(section);
    const range = fieldRange(this.#lines, found);
    if (range.from !== found.from) return range.to;
    let end = found.to;
    while (end > found.from && (this.#lines[end - 1] ?? '').trim() === '') end--;
    return end;
  }

  /** Puts lines into a section, with a blank line before them where they stand apart or nothing but the heading is above, and one behind. */
  #insert(at: number, lines: readonly string[], { apart }: { readonly apart: boolean }): void {
    const above = this.#lines[at - 1] ?? '';
    const isFirst = HEADING.test(above) || above.trimEnd().endsWith('-->');
    const inFence = /^\s*(?:`{3,}|~{3,})/.test(above);
    const before = !inFence && above.trim() !== '' && (apart || isFirst) ? [''] : [];
    const below = this.#lines[at];
    const after = below !== undefined && HEADING.test(below) ? [''] : [];
    this.#splice(at, 0, [...before, ...lines, ...after]);
  }

  /** Adds a section that is missing: before the first that comes later in the order of a new file. */
  #make(name: string): Section {
    const there = this.#sections();
    const { headings } = this.#layout;
    const names = this.#order.map((key) => keyOf(headings[key] ?? key));
    const later = new Set(names.slice(this.#order.indexOf(keyOf(name)) + 1));
    const next = there.find((one) => later.has(one.name));
    const level = next?.level ?? there.find((one) => names.includes(one.name))?.level ?? 2;
    const heading = `${'#'.repeat(level)} ${headings[keyOf(name)] ?? titleOf(name)}`;
    if (next !== undefined) this.#splice(next.heading, 0, [heading, '']);
    else {
      const isApart = this.#lines.length < 2 || (this.#lines.at(-2) ?? '').trim() === '';
      this.#splice(this.#lines.length, 0, [...(isApart ? [] : ['']), heading]);
    }
    const made = this.#section(name);
    if (made === undefined) throw unclosed(name);
    return made;
  }

  #splice(at: number, remove: number, lines: readonly string[]): void {
    // What stands behind the last line feed is an empty line, behind which nothing is put; a last line without one gets it.
    if (at === this.#lines.length && lines.length > 0) {
      if (this.#lines.at(-1) === '') at--;
      else this.#ends.push(this.#newline);
    }
    this.#lines = spliced(this.#lines, at, { remove, added: lines });
    const ends = lines.map(() => this.#newline);
    this.#ends = spliced(this.#ends, at, { remove, added: ends });
    // One end fewer than lines: the file does not end in the middle of a line.
    if (this.#ends.length >= this.#lines.length) this.#lines.push('');
  }
}

/** What is put at the end of such a file is a part of the comment, or of the quoted code. */
function unclosed(name: string): TraceError {
  return new TraceError(
    'ERR_SESSION_DAMAGED',
    `the session has no section ${titleOf(name)}, and none can be added: a comment or code fence has no end`,
    { exitCode: EXIT.notFound, remedy: 'Close it in an editor. The file is unchanged.' },
  );
}

/** As `splice` would leave it, which takes no more items than a function takes arguments. */
function spliced(
  items: readonly string[],
  at: number,
  { remove, added }: { readonly remove: number; readonly added: readonly string[] },
): string[] {
  return [...items.slice(0, at), ...added, ...items.slice(at + remove)];
}

/**
 * A value as it is written. A session is committed and read by others, so that no credential gets
 * into it; only lists stay as they are, which are commands to be run again and quotes of code.
 */
function linesOf(key: string, value: string, written: Form = {}): readonly string[] {
  return encodeValue(key, written.list === true ? value : maskText(value), written);
}

/** `current_focus` as a heading. */
function titleOf(name: string): string {
  return name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');
}
