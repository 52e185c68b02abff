import { closeSync, fstatSync, readSync } from 'node:fs';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import { formatBytes } from '../../core/units.ts';
import { openOutsideSync, readOutsideSync, UnreadFile } from '../../platform/outside-file.ts';

/** The records of a JSON Lines file, or of one JSON array, read one at a time: a data set of a gigabyte costs its line offsets. */

/** A longer line is no prompt, and would be held in memory as a whole. */
const LONGEST_LINE = 64 * 1024 * 1024;
/** An array has to be parsed as a whole: JSON.parse takes strings up to 512 MiB, and needs some times as much. */
const LARGEST_ARRAY = 256 * 1024 * 1024;
const MOST_LINES = 50_000_000;
const CHUNK = 1024 * 1024;
const NEWLINE = 0x0a;

/** A mistake in a file of prompts: where, and what (exit 2). */
export function datasetError(path: string, line: number | null, what: string): TraceError {
  const where = line === null ? '' : ` line ${line}`;
  return new TraceError('ERR_LOAD_DATASET', `${printable(path)}${where}: ${what}`, {
    exitCode: EXIT.usage,
  });
}

/** One record and the line it stands on (of an array: its number), from 1. */
export interface Line {
  readonly line: number;
  readonly value: unknown;
}

export interface Records {
  readonly count: number;
  /** Throws a TraceError for a line that is no JSON. */
  at(index: number): Line;
  close(): void;
}

/** Opens a file of records. Throws a TraceError that names the file when there are none. */
export function openRecords(path: string): Records {
  const file = open(path);
  const { size } = fstatSync(file);
  const head = Buffer.alloc(64);
  readSync(file, head, 0, head.length, 0);
  const records = head
    .toString('latin1')
    .replace(/^\u00ef\u00bb\u00bf/, '')
    .trimStart()
    .startsWith('[')
    ? arrayOf(path, file, size)
    : linesOf(path, file);
  if (records.count > 0) return records;
  records.close();
  throw datasetError(path, null, 'holds no records');
}

function open(path: string): number {
  try {
    return openOutsideSync(path);
  } catch (error) {
    if (error instanceof UnreadFile) throw datasetError(path, null, 'is no file');
    const code = errorCode(error);
    throw new TraceError('ERR_LOAD_DATASET', `cannot read ${printable(path)}: ${code}`, {
      exitCode: code === 'ENOENT' ? EXIT.notFound : EXIT.usage,
    });
  }
}

function arrayOf(path: string, file: number, size: number): Records {
  closeSync(file);
  if (size > LARGEST_ARRAY) {
    throw datasetError(path, null, 'is one large JSON array: make it JSON Lines (jq -c .[])');
  }
  const text = readOutsideSync(path, LARGEST_ARRAY).toString('utf8');
  const values = parse(path, null, text.replace(/^\ufeff/, ''));
  const list: readonly unknown[] = Array.isArray(values) ? values : [];
  return {
    count: list.length,
    at: (index) => ({ line: index + 1, value: list[index] }),
    close: () => undefined,
  };
}

function linesOf(path: string, file: number): Records {
  const { starts, ends, numbers } = scan(path, file);
  let buffer = Buffer.alloc(CHUNK);
  return {
    count: starts.length,
    at(index) {
      const start = starts[index] ?? 0;
      const length = (ends[index] ?? 0) - start;
      if (length > buffer.length) buffer = Buffer.alloc(length);
      let read = 0;
      while (read < length) {
        const more = readSync(file, buffer, read, length - read, start + read);
        if (more === 0) throw datasetError(path, numbers[index] ?? null, 'the file became shorter');
        read += more;
      }
      const line = numbers[index] ?? 0;
      return { line, value: parse(path, line, buffer.toString('utf8', 0, length)) };
    },
    close: () => closeSync(file),
  };
}

/** Where each line that is not blank begins and ends. */
function scan(
  path: string,
  file: number,
): { readonly starts: number[]; readonly ends: number[]; readonly numbers: number[] } {
  const starts: number[] = [];
  const ends: number[] = [];
  const numbers: number[] = [];
  const chunk = Buffer.alloc(CHUNK);
  let at = 0;
  let start = 0;
  let line = 1;
  let isBlank = true;
  const finish = (end: number): void => {
    if (end - start > LONGEST_LINE) {
      throw datasetError(path, line, `is longer than ${formatBytes(LONGEST_LINE)}`);
    }
    if (!isBlank) {
      starts.push(start);
      ends.push(end);
      numbers.push(line);
      if (starts.length > MOST_LINES) throw datasetError(path, line, 'too many lines');
    }
    isBlank = true;
    start = end + 1;
    line++;
  };
  for (;;) {
    const read = readSync(file, chunk, 0, chunk.length, at);
    if (read === 0) break;
    let from = 0;
    // A mark of byte order before the first line.
    if (at === 0 && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf) start = from = 3;
    while (from < read) {
      const found = chunk.indexOf(NEWLINE, from);
      const end = found === -1 || found >= read ? read : found;
      if (isBlank) isBlank = !hasText(chunk, from, end);
      if (end === read) break;
      finish(at + end);
      from = end + 1;
    }
    at += read;
    if (at - start > LONGEST_LINE) finish(at);
  }
  finish(at);
  return { starts, ends, numbers };
}

/** Whether anything but spaces, tabs and carriage returns stands there. */
function hasText(chunk: Buffer, from: number, end: number): boolean {
  for (let i = from; i < end; i++) {
    const byte = chunk[i];
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return true;
  }
  return false;
}

function parse(path: string, line: number | null, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? printable(error.message, 100) : 'unreadable';
    throw datasetError(path, line, `is not JSON: ${why}`);
  }
}
