import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/* Ways to damage a text, bytes and a folder of files, drawn by a seeded generator. */

type Random = () => number;

/** What takes effect in a terminal, a path, a number or a parser. */
const HOSTILE: readonly string[] = [
  '\u001B]0;title\u0007\u001B[2J',
  '../../../../etc/passwd',
  '\0',
  '\u202E\u2066',
  '__proto__',
  '1e308',
  '-1',
  '18446744073709551616',
  'NaN',
  '"',
  '\\',
  '\r\n',
  '{}',
  'null',
  'x'.repeat(300_000),
  '['.repeat(200_000),
  '{"a":'.repeat(50_000),
  '\n'.repeat(200_000),
];
const LARGEST_COPY = 64 * 1024;

/** A whole number below `n`. */
export const below = (random: Random, n: number): number => Math.floor(random() * n);

/** One of these. Throws when there is none. */
export function pick<T>(random: Random, from: readonly T[]): T {
  const one = from[below(random, from.length)];
  if (one === undefined) throw new Error('nothing to pick from');
  return one;
}

type Damage = (bytes: Buffer, random: Random) => Buffer;

const splice = (bytes: Buffer, from: number, to: number, put: Buffer): Buffer =>
  Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(to)]);

function slice(bytes: Buffer, random: Random): readonly [from: number, to: number] {
  const from = below(random, bytes.length + 1);
  return [from, Math.min(bytes.length, from + below(random, LARGEST_COPY))];
}

/** Puts something hostile in the place of one match of a pattern; as it was where none matches. */
const replaceOne =
  (pattern: RegExp): Damage =>
  (bytes, random) => {
    const found = [...bytes.toString('latin1').matchAll(pattern)];
    if (found.length === 0) return bytes;
    const match = pick(random, found);
    const put = Buffer.from(pick(random, HOSTILE));
    return splice(bytes, match.index, match.index + match[0].length, put);
  };

const DAMAGES: readonly Damage[] = [
  (bytes, random) => {
    const copy = Buffer.from(bytes);
    if (copy.length > 0) copy[below(random, copy.length)] = below(random, 256);
    return copy;
  },
  (bytes, random) => splice(bytes, ...slice(bytes, random), Buffer.alloc(0)),
  (bytes, random) => {
    const [from, to] = slice(bytes, random);
    return splice(bytes, from, from, bytes.subarray(from, to));
  },
  (bytes, random) => {
    const at = below(random, bytes.length + 1);
    return splice(bytes, at, at, Buffer.from(pick(random, HOSTILE)));
  },
  (bytes, random) => bytes.subarray(0, below(random, bytes.length + 1)),
  replaceOne(/-?\d+(?:\.\d+)?/g),
  replaceOne(/"[^"\n]{0,100}"/g),
  replaceOne(/\n/g),
];
const MOST_DAMAGES = 4;

/** The bytes, damaged in one to four ways. */
export function damaged(bytes: Buffer, random: Random): Buffer {
  let result = bytes;
  const n = 1 + below(random, MOST_DAMAGES);
  for (let i = 0; i < n; i += 1) result = pick(random, DAMAGES)(result, random);
  return result;
}

/** Every regular file below a folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

type FileDamage = (path: string, outside: string, random: Random) => void;

const instead =
  (make: (path: string, outside: string) => void): FileDamage =>
  (path, outside) => {
    rmSync(path);
    make(path, outside);
  };

const GIB = 2 ** 30;
const BOMB = 64 * 1024 * 1024;

/**
 * What somebody may have put in the place of a file; `outside` is a file that trace has no business
 * with.
 */
const FILE_DAMAGES: readonly FileDamage[] = [
  instead((path, outside) => symlinkSync(outside, path)),
  instead((path) => symlinkSync(path, path)),
  instead((path) => symlinkSync('/dev/zero', path)),
  instead((path) => void execFileSync('mkfifo', [path])),
  instead((path) => mkdirSync(path)),
  (path) => chmodSync(path, 0o666),
  (path) => truncateSync(path, 4 * GIB),
  (path) => writeFileSync(path, gzipSync(Buffer.alloc(BOMB, '\n'))),
  (path) => {
    rmSync(path);
    writeFileSync(`${path}.gz`, gzipSync(Buffer.alloc(BOMB, '{"a":')));
  },
  (path, _, random) =>
    writeFileSync(path, gzipSync(damaged(readFileSync(path), random)).subarray(0, -4)),
];
/** Of all damages to a folder: so many are to what a file is, the others to what is in it. */
const KIND_SHARE = 0.3;

/** Damages one file of a folder. */
export function damageOneFile(folder: string, outside: string, random: Random): void {
  const path = pick(random, filesBelow(folder).toSorted());
  if (random() < KIND_SHARE) pick(random, FILE_DAMAGES)(path, outside, random);
  else writeFileSync(path, damaged(readFileSync(path), random));
}
