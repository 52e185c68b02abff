/**
 * From an instruction to its source line, by the three encodings of CPython 3.8 to 3.13. Tables come from the target's memory:
 * any bytes give an answer in one pass, never an exception.
 */

/** The line of an instruction; null where the table gives it none. `instruction` is in the unit the decoder states. */
export type LineDecoder = (
  table: Uint8Array,
  firstLine: number,
  instruction: number,
) => number | null;

/** A line delta that means "no line" (Objects/lnotab_notes.txt of CPython 3.10). */
const NO_LINE = -128;

/** The decoder for CPython 3.`minor`. */
export function lineDecoder(minor: number): LineDecoder {
  if (minor >= 11) return lineByLocations;
  return minor === 10 ? lineByRanges : lineByIncrements;
}

/** 3.8, 3.9: co_lnotab, pairs of address and line increments. `instruction` is a byte offset. */
export function lineByIncrements(
  table: Uint8Array,
  firstLine: number,
  instruction: number,
): number | null {
  let address = 0;
  let line = firstLine;
  for (let at = 0; at + 1 < table.length; at += 2) {
    address += table[at] ?? 0;
    if (address > instruction) break;
    line += signed(table[at + 1]);
  }
  return sound(line);
}

/** 3.10: co_linetable, pairs of range length and line delta. `instruction` is a byte offset. */
export function lineByRanges(
  table: Uint8Array,
  firstLine: number,
  instruction: number,
): number | null {
  if (instruction < 0) return sound(firstLine);
  let end = 0;
  let line = firstLine;
  for (let at = 0; at + 1 < table.length; at += 2) {
    end += table[at] ?? 0;
    const delta = signed(table[at + 1]);
    if (delta !== NO_LINE) line += delta;
    if (instruction < end) return delta === NO_LINE ? null : sound(line);
  }
  return null;
}

/** Entry kinds of the location table (Objects/locations.md of CPython 3.11); those below 10 are short forms with the same line. */
const ONE_LINE_FORMS = 10;
const NO_COLUMNS = 13;
const LONG_FORM = 14;
const NO_LOCATION = 15;

/** 3.11 on: co_linetable as PEP 657's location table. `instruction` counts 2-byte code units. */
export function lineByLocations(
  table: Uint8Array,
  firstLine: number,
  instruction: number,
): number | null {
  if (instruction < 0) return sound(firstLine);
  let at = 0;
  let end = 0;
  let line = firstLine;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; at < table.length; shift += 6) {
      const byte = table[at++] ?? 0;
      value |= (byte & 63) << shift;
      if ((byte & 64) === 0) break;
    }
    return value >>> 0;
  };
  const signedVarint = (): number => {
    const value = varint();
    return (value & 1) === 1 ? -(value >>> 1) : value >>> 1;
  };
  while (at < table.length) {
    const head = table[at++] ?? 0;
    const kind = (head >> 3) & 15;
    end += (head & 7) + 1;
    if (kind === LONG_FORM) {
      line += signedVarint();
      for (let field = 0; field < 3; field++) varint();
    } else if (kind === NO_COLUMNS) line += signedVarint();
    else if (kind >= ONE_LINE_FORMS && kind < NO_COLUMNS) {
      line += kind - ONE_LINE_FORMS;
      at += 2;
    } else if (kind < ONE_LINE_FORMS) at += 1;
    if (instruction < end) return kind === NO_LOCATION ? null : sound(line);
  }
  return null;
}

function signed(byte = 0): number {
  return byte > 127 ? byte - 256 : byte;
}

/** CPython gives compiler-made instructions line 0; nothing shown to people has it. */
function sound(line: number): number | null {
  return line >= 1 && line < 2 ** 31 ? line : null;
}
