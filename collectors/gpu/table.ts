/** nvidia-smi's CSV: no quotes, a comma and a space between cells, and names that may hold both. Columns are found by their header. */

/** One line below a header, by the names of its columns. */
export interface Row {
  /** As printed; undefined for a column that is not there. */
  cell(names: readonly string[]): string | undefined;
  /** What the header says its numbers are in: `MiB`. */
  unit(names: readonly string[]): string | null;
  /** The whole line. */
  readonly line: string;
}

interface Column {
  readonly name: string;
  readonly unit: string | null;
}

/** Columns whose text may hold a comma: what is too much in a line is theirs. */
const FREE_TEXT: ReadonlySet<string> = new Set(['name', 'gpu_name', 'process_name']);

export class CsvTable {
  readonly #known: ReadonlySet<string>;
  #columns: readonly Column[] = [];
  /** Where a column stands, by the array of its names: the same arrays are asked for in each line. */
  #places = new WeakMap<readonly string[], number>();

  /** `known`: names of columns, by which a header is recognised wherever it comes. */
  constructor(known: ReadonlySet<string>) {
    this.#known = known;
  }

  /** Whether a header was seen: what stands before it is no row. */
  get hasHeader(): boolean {
    return this.#columns.length > 0;
  }

  /** `header`; null for a line that is neither that nor a row that fits its header. */
  take(line: string): Row | 'header' | null {
    const cells = line.split(',').map((cell) => cell.trim());
    // A cell that begins with a digit is in nearly every row, and in no header.
    const header = /(?:^|, ?)\d/.test(line) ? null : this.#headerOf(cells);
    if (header !== null) {
      this.#columns = header;
      this.#places = new WeakMap();
      return 'header';
    }
    const fitted = this.hasHeader ? fit(cells, this.#columns) : null;
    if (fitted === null) return null;
    return {
      cell: (names) => fitted[this.#placeOf(names)],
      unit: (names) => this.#columns[this.#placeOf(names)]?.unit ?? null,
      line,
    };
  }

  /** -1 for a column that is not there. */
  #placeOf(names: readonly string[]): number {
    let place = this.#places.get(names);
    if (place === undefined) {
      place = this.#columns.findIndex(({ name }) => names.includes(name));
      this.#places.set(names, place);
    }
    return place;
  }

  /** A line whose cells are all names, and most of them known: a newer driver may print one that was not asked for. */
  #headerOf(cells: readonly string[]): readonly Column[] | null {
    const columns: Column[] = [];
    for (const cell of cells) {
      const match = /^([A-Za-z_][\w.]*)(?: \[([^\]]*)\])?$/.exec(cell);
      if (match === null) return null;
      columns.push({ name: match[1] ?? '', unit: match[2] ?? null });
    }
    const known = columns.filter(({ name }) => this.#known.has(name)).length;
    return known * 2 > columns.length ? columns : null;
  }
}

/** As many cells as columns, outside in: surplus commas belong to the one column that may hold them. Null where it does not come out. */
function fit(cells: readonly string[], columns: readonly Column[]): readonly string[] | null {
  const surplus = cells.length - columns.length;
  if (surplus === 0) return cells;
  const free = columns.flatMap(({ name }, i) => (FREE_TEXT.has(name) ? [i] : []));
  const [at] = free;
  if (surplus < 0 || at === undefined || free.length > 1) return null;
  const text = cells.slice(at, at + surplus + 1).join(', ');
  return [...cells.slice(0, at), text, ...cells.slice(at + surplus + 1)];
}
