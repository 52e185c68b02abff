import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { ELF_MACHINE, elfHeader, elfSymbols } from '../../src/platform/elf.ts';
import { mappedFile } from '../../src/platform/mapped-file.ts';
import { MemoryError, type MemoryMap } from '../../src/platform/memory.ts';
import type { PythonSymbols } from './objects.ts';

/**
 * Why a process cannot be read as Python: it is not, it is one we have no table for, we may not, it is gone, or what was read did
 * not hold together.
 */
export type RefusalCode = 'not-python' | 'unsupported' | 'permission' | 'gone' | 'unverified';

/** No reader, and what to tell the person about it. `reason` may quote paths of the target: untrusted. */
export interface PythonRefusal {
  readonly ok: false;
  readonly code: RefusalCode;
  readonly reason: string;
  /** What would make it readable, in the imperative; null when nothing would. */
  readonly remedy: string | null;
}

export function refuse(code: RefusalCode, reason: string, remedy: string | null): PythonRefusal {
  return { ok: false, code, reason, remedy };
}

/** The refusal for an error met on the way to the target's memory; what is a bug of ours is thrown on. */
export function refusalOf(error: unknown): PythonRefusal {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  if (code === 'EACCES' || code === 'EPERM')
    return refuse(
      'permission',
      `its memory may not be read (${code})`,
      'Run trace as the user of the process, or as root.',
    );
  if (code === 'ENOENT' || code === 'ESRCH') return refuse('gone', 'the process is gone', null);
  if (code === 'EFBIG')
    return refuse('unsupported', 'it has more mappings than trace goes through', null);
  if (error instanceof MemoryError)
    return refuse('gone', 'its memory went away while it was being read', null);
  throw error;
}

const NOT_PYTHON = refuse('not-python', 'no CPython interpreter is loaded in this process', null);

/** The file of a process that holds the interpreter, and where its variables lie at run time. */
export interface PythonImage {
  /** As the target names it. Untrusted. */
  readonly path: string;
  readonly symbols: PythonSymbols;
  /** Address of `Py_Version` (3.11 on). */
  readonly versionAddress: number | null;
}

const SYMBOLS = {
  runtime: '_PyRuntime',
  none: '_Py_NoneStruct',
  codeType: 'PyCode_Type',
  strType: 'PyUnicode_Type',
  bytesType: 'PyBytes_Type',
  tupleType: 'PyTuple_Type',
  floatType: 'PyFloat_Type',
  intType: 'PyLong_Type',
} as const;
const VERSION_SYMBOL = 'Py_Version';

const LIBRARY = /^libpython\d/;
const EXECUTABLE = /^python\d?/;
/** A process has one or two files of such names: one that has thousands was made to keep us. */
const FILES_LIMIT = 16;

/** Finds the interpreter among the mapped files: libpython before the executable. */
export function findImage(
  pid: number,
  maps: readonly MemoryMap[],
): { readonly ok: true; readonly image: PythonImage } | PythonRefusal {
  let refusal: PythonRefusal | null = null;
  for (const map of candidates(pid, maps)) {
    const found = readImage(pid, map);
    if (found.ok) return found;
    refusal ??= found;
  }
  return refusal ?? NOT_PYTHON;
}

/** First mappings of the files that may hold the interpreter, the likeliest first. */
function candidates(pid: number, maps: readonly MemoryMap[]): readonly MemoryMap[] {
  const executable = readLink(`/proc/${pid}/exe`);
  const rank = ({ path }: MemoryMap): number => {
    if (LIBRARY.test(basename(path))) return 0;
    if (EXECUTABLE.test(basename(path))) return 1;
    return path === executable ? 2 : 3;
  };
  const first = new Map<string, MemoryMap>();
  for (const map of maps) {
    if (map.offset === 0 && map.path.startsWith('/') && !first.has(map.path))
      first.set(map.path, map);
  }
  return [...first.values()]
    .filter((map) => rank(map) < 3)
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, FILES_LIMIT);
}

function readImage(
  pid: number,
  map: MemoryMap,
): { readonly ok: true; readonly image: PythonImage } | PythonRefusal {
  const path = mappedFile(pid, map);
  try {
    const header = elfHeader(path);
    if (header === null) return refuse('not-python', `${map.path} is not an ELF file`, null);
    if (header.bits !== 64 || !header.littleEndian || header.machine !== ELF_MACHINE.x86_64)
      return refuse(
        'unsupported',
        `this interpreter is not built for x86_64 (${header.bits}-bit, ELF machine ${header.machine})`,
        null,
      );
    const elf = elfSymbols(path, [...Object.values(SYMBOLS), VERSION_SYMBOL]);
    const shift = map.start - (elf?.base ?? 0);
    const at = (name: string): number => (elf?.symbols.get(name) ?? Number.NaN) + shift;
    if (Number.isNaN(at(SYMBOLS.runtime))) return withoutRuntime(map.path);
    const symbols: PythonSymbols = {
      runtime: at(SYMBOLS.runtime),
      none: at(SYMBOLS.none),
      codeType: at(SYMBOLS.codeType),
      strType: at(SYMBOLS.strType),
      bytesType: at(SYMBOLS.bytesType),
      tupleType: at(SYMBOLS.tupleType),
      floatType: at(SYMBOLS.floatType),
      intType: at(SYMBOLS.intType),
    };
    const missing = Object.entries(symbols).find(([, address]) => Number.isNaN(address));
    if (missing !== undefined)
      return refuse(
        'unsupported',
        `${map.path} does not export its types (no symbol for ${missing[0]})`,
        null,
      );
    const version = at(VERSION_SYMBOL);
    return {
      ok: true,
      image: { path: map.path, symbols, versionAddress: Number.isNaN(version) ? null : version },
    };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return refuse('permission', `the interpreter's file cannot be read: ${detail}`, null);
  }
}

function withoutRuntime(path: string): PythonRefusal {
  const version = /python(\d)\.?(\d+)/.exec(basename(path));
  const isOld =
    version !== null && (version[1] === '2' || (version[1] === '3' && Number(version[2]) < 8));
  return isOld
    ? refuse('unsupported', `Python ${version[1]}.${version[2]} is older than 3.8`, null)
    : version === null
      ? NOT_PYTHON
      : refuse(
          'not-python',
          `${path} has no symbol _PyRuntime: it is not CPython, or stripped of its exports`,
          null,
        );
}

function readLink(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null; // a kernel thread has none, a dead process no longer
  }
}
