import { closesData, opensData } from '../core/data-block.ts';

/** Where the fields and entries of a section stand, by line; nothing is changed here. */

/** `key: value`, with the lines below that belong to the value. */
export interface Field {
  /** Lower case, words joined by `_`. */
  readonly key: string;
  /** What stands before the value in its first line: indentation, hyphen, bold, key, colon. */
  readonly prefix: string;
  /** The value in its first line. */
  readonly rest: string;
  /** Column of the first character, hyphen included. */
  readonly column: number;
  /** Its first line, and the one after its last that is not blank. */
  readonly from: number;
  readonly to: number;
}

/** A list item made of fields. */
export interface Entry {
  readonly fields: readonly Field[];
  readonly from: number;
  readonly to: number;
}

/** Lines of a section that may hold fields, `from` to before `to`. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

const FIELD =
  /^(?<indent>[ \t]*)(?<bullet>[-*][ \t]+)?(?<bold>\*\*|__)?(?<name>[A-Za-z][\w -]{0,40}?)(?:\*\*|__)?:(?:\*\*|__)?(?<rest>[ \t][^]*)?$/;
/** A field whose value is the indented lines below it, whatever they look like. */
const BLOCK =
  /^(?<indent>[ \t]*)(?:[-*][ \t]+)?[\w*][\w *-]*:(?:\*\*|__)?[ \t]+[|>][-+]?\d?[ \t]*$/;
const FENCE = /^[ \t]*(?<mark>`{3,}|~{3,})(?<info>.*)$/;

/** What a field's name is looked up by. */
export function keyOf(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
}

interface Start {
  readonly key: string;
  readonly prefix: string;
  readonly rest: string;
  readonly column: number;
  readonly isItem: boolean;
}

/** The field that begins in a line; null for any other line. A name that nobody knows has to look like a key: people write sentences with colons. */
function startOf(line: string, known: ReadonlySet<string>): Start | null {
  const groups = FIELD.exec(line)?.groups;
  if (groups === undefined) return null;
  const { indent = '', bullet, bold, name = '', rest = '' } = groups;
  const key = keyOf(name);
  if (!known.has(key) && bold === undefined && !/^[a-z][a-z0-9_]*$/.test(name)) return null;
  return {
    key,
    prefix: line.slice(0, line.length - rest.length),
    rest,
    column: indent.length,
    isItem: bullet !== undefined,
  };
}

/** Lines that belong together and begin nothing themselves. */
interface Region extends Range {
  readonly kind: 'fence' | 'comment' | 'data' | 'block';
  /** Of a fence: what stands behind its mark. */
  readonly info: string;
}

/** The fences, comments, data blocks and `|` blocks of a range; none within another. */
function regionsIn(lines: readonly string[], { from, to }: Range): readonly Region[] {
  const regions: Region[] = [];
  for (let i = from; i < to; i++) {
    const line = lines[i] ?? '';
    const fence = FENCE.exec(line)?.groups;
    const block = BLOCK.exec(line)?.groups;
    const until = (isLast: (line: string) => boolean): number => {
      let end = i + 1;
      while (end < to && !isLast(lines[end] ?? '')) end++;
      return Math.min(to, end + 1);
    };
    const add = (kind: Region['kind'], end: number, info = ''): void => {
      regions.push({ kind, from: i, to: end, info });
      i = end - 1;
    };
    if (opensData(line)) add('data', until(closesData));
    else if (fence !== undefined)
      add('fence', until(endOfFence(fence['mark'] ?? '')), fence['info']);
    else if (line.trimStart().startsWith('<!--'))
      add('comment', line.includes('-->') ? i + 1 : until(closesComment));
    else if (block !== undefined) {
      const column = block['indent']?.length ?? 0;
      let end = i + 1;
      while (end < to && belongs(lines[end] ?? '', column)) end++;
      regions.push({ kind: 'block', from: i + 1, to: end, info: '' });
      i = end - 1;
    }
  }
  return regions;
}

/** Lines within a fence, a comment, a data block or a `|` block. */
export function opaqueLines(lines: readonly string[], range: Range): ReadonlySet<number> {
  const opaque = new Set<number>();
  for (const { from, to } of regionsIn(lines, range)) for (let i = from; i < to; i++) opaque.add(i);
  return opaque;
}

const closesComment = (line: string): boolean => line.includes('-->');
const isYaml = (info = ''): boolean => /^\s*ya?ml\b/i.test(info);
const endOfFence =
  (mark: string) =>
  (line: string): boolean =>
    line.trim().startsWith(mark) && line.trim().replaceAll(mark[0] ?? '`', '') === '';

/** Where the fields of a section may stand: within its YAML fence, where it has one. */
export function fieldRange(lines: readonly string[], range: Range): Range {
  const fence = regionsIn(lines, range).find(({ kind, info }) => kind === 'fence' && isYaml(info));
  if (fence === undefined) return range;
  const isClosed = FENCE.test(lines[fence.to - 1] ?? '') && fence.to > fence.from + 1;
  return { from: fence.from + 1, to: isClosed ? fence.to - 1 : fence.to };
}

/** The fields of a section, in their order: those at the column of the first one; what is deeper belongs to a value. */
export function fieldsIn(
  lines: readonly string[],
  range: Range,
  known: ReadonlySet<string>,
): readonly Field[] {
  const opaque = opaqueLines(lines, range);
  const starts: (Start & { readonly line: number })[] = [];
  for (let line = range.from; line < range.to; line++) {
    const start = opaque.has(line) ? null : startOf(lines[line] ?? '', known);
    if (start === null || start.column > (starts[0]?.column ?? 3)) continue;
    starts.push({ ...start, line });
  }
  return starts.map(({ key, prefix, rest, column, line }, i) => {
    const end = starts[i + 1]?.line ?? range.to;
    return {
      key,
      prefix,
      rest,
      column,
      from: line,
      to: endOf(lines, { from: line + 1, to: end }, column),
    };
  });
}

/** The list items of a section that are made of fields. */
export function entriesIn(lines: readonly string[], range: Range): readonly Entry[] {
  const opaque = opaqueLines(lines, range);
  const starts: number[] = [];
  let column = -1;
  for (let line = range.from; line < range.to; line++) {
    const start = opaque.has(line) ? null : startOf(lines[line] ?? '', NONE);
    if (start === null || !start.isItem || (column !== -1 && start.column !== column)) continue;
    column = start.column;
    starts.push(line);
  }
  return starts.map((from, i) => entryAt(lines, opaque, from, starts[i + 1] ?? range.to));
}

const NONE: ReadonlySet<string> = new Set();

function entryAt(
  lines: readonly string[],
  opaque: ReadonlySet<number>,
  from: number,
  next: number,
): Entry {
  const first = startOf(lines[from] ?? '', NONE);
  const column = first?.column ?? 0;
  // What stands at the item's own column or left of it is the person's, between two entries.
  let to = from + 1;
  while (to < next && (opaque.has(to) || belongs(lines[to] ?? '', column))) to++;
  to = endOf(lines, { from: from + 1, to }, column);
  const keyColumn = column + (first?.prefix.slice(column).search(/[^-*\s]/) ?? 2);
  const starts = [from];
  for (let line = from + 1; line < to; line++) {
    const start = opaque.has(line) ? null : startOf(lines[line] ?? '', NONE);
    if (start !== null && !start.isItem && start.column === keyColumn) starts.push(line);
  }
  const fields = starts.map((line, i) => {
    const { key = '', prefix = '', rest = '' } = startOf(lines[line] ?? '', NONE) ?? {};
    const end = endOf(lines, { from: line + 1, to: starts[i + 1] ?? to }, column);
    return { key, prefix, rest, column: keyColumn, from: line, to: end };
  });
  return { fields, from, to };
}

function belongs(line: string, column: number): boolean {
  return line.trim() === '' || (/^[ \t]*/.exec(line)?.[0].length ?? 0) > column;
}

/** The line after the last that belongs to what began at this column: neither blank nor a comment of the person's own. */
function endOf(lines: readonly string[], range: Range, column: number): number {
  let end = range.to;
  while (end > range.from && isEmpty(lines[end - 1] ?? '', column)) end--;
  return end;
}

const isEmpty = (line: string, column: number): boolean =>
  line.trim() === '' || (/^\s*<!--.*-->\s*$/.test(line) && !belongs(line, column));
