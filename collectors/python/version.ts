import { pointerAt, type MemoryMap } from '../../src/platform/memory.ts';
import { refuse, type PythonImage, type PythonRefusal } from './locate.ts';
import type { PythonSymbols, TargetMemory } from './objects.ts';
import { OFFSET_TABLES } from './offset-tables.ts';
import { correctedTable, type OffsetTable } from './offsets.ts';

/** First bytes of `_PyRuntime` from 3.13 on (pycore_runtime.h: _Py_Debug_Cookie). */
const COOKIE = 'xdebugpy';
/** `free_threaded` in `_Py_DebugOffsets`, the same in 3.13 and 3.14. */
const FREE_THREADED_OFFSET = 16;
/** The low byte's high half of PY_VERSION_HEX: 0xa alpha, 0xb beta, 0xc candidate, 0xf final. */
const CANDIDATE = 0xc;
/** Searched for the version text: CPython's .data and .bss are under 1 MiB. */
const DATA_LIMIT = 8 * 1024 * 1024;
/** Mappings that are searched: .data and .bss are one each. */
const DATA_MAPPINGS = 4;

/** Which CPython it is and where its fields lie. */
export interface PythonVersion {
  readonly ok: true;
  readonly table: OffsetTable;
  /** `3.11.7`, or `3.9` where only the minor version could be told. */
  readonly version: string;
}

/** Tells the version of the interpreter in `image` and picks its offset table. Throws MemoryError. */
export function identifyVersion(
  memory: TargetMemory,
  image: PythonImage,
  maps: readonly MemoryMap[],
): PythonVersion | PythonRefusal {
  const runtime = memory.view(image.symbols.runtime, FREE_THREADED_OFFSET + 8);
  const describesItself = runtime.toString('latin1', 0, COOKIE.length) === COOKIE;
  const hex = describesItself
    ? pointerAt(runtime, COOKIE.length)
    : image.versionAddress === null
      ? null
      : memory.pointer(image.versionAddress);
  if (describesItself && pointerAt(runtime, FREE_THREADED_OFFSET) !== 0)
    return refuse(
      'unsupported',
      'this is a free-threaded CPython build, whose layout trace does not know',
      'Run the server with the default build (python3.13, not python3.13t).',
    );
  const minor = hex === null ? minorFromPaths(image.path, maps) : (hex >>> 16) & 0xff;
  if (minor === null || (hex !== null && hex >>> 24 !== 3))
    return refuse('unsupported', 'the version of this Python cannot be told', null);
  const table = OFFSET_TABLES.find((one) => one.minor === minor);
  if (table === undefined) return refuse('unsupported', unknownMinor(minor), null);
  if (hex !== null && ((hex >>> 4) & 0xf) < CANDIDATE)
    return refuse(
      'unsupported',
      `${hexText(hex)} is a pre-release, whose layout may still have changed before the release`,
      null,
    );
  const version = hex === null ? (versionText(memory, image, maps) ?? `3.${minor}`) : hexText(hex);
  if (!areTypesNamed(memory, image.symbols, table)) return unverified(version, table);
  const corrected = correctedTable(table, (position) =>
    memory.pointer(image.symbols.runtime + position),
  );
  return { ok: true, version, table: describesItself ? corrected : table };
}

/** The refusal for an interpreter whose memory is not laid out as its version says. */
export function unverified(version: string, table: OffsetTable): PythonRefusal {
  return refuse(
    'unverified',
    `what was read does not hold together as CPython ${version} (layout of ${table.version})`,
    'Debug builds and patched interpreters have layouts of their own: run the server with a release build.',
  );
}

/** Whether the types we know by symbol have the names they must have. */
function areTypesNamed(memory: TargetMemory, symbols: PythonSymbols, table: OffsetTable): boolean {
  const expected: readonly (readonly [number, string])[] = [
    [symbols.codeType, 'code'],
    [symbols.strType, 'str'],
    [symbols.bytesType, 'bytes'],
    [symbols.tupleType, 'tuple'],
    [symbols.floatType, 'float'],
    [symbols.intType, 'int'],
  ];
  return expected.every(
    ([type, name]) => memory.cString(memory.pointer(type + table.object.typeName), 16) === name,
  );
}

function unknownMinor(minor: number): string {
  const known = `trace reads 3.${OFFSET_TABLES[0]?.minor} to 3.${OFFSET_TABLES.at(-1)?.minor}`;
  return `CPython 3.${minor} is not supported: ${known}`;
}

function hexText(hex: number): string {
  const level = { 0xa: 'a', 0xb: 'b', 0xc: 'rc' }[(hex >>> 4) & 0xf];
  const suffix = level === undefined ? '' : `${level}${hex & 0xf}`;
  return `${hex >>> 24}.${(hex >>> 16) & 0xff}.${(hex >>> 8) & 0xff}${suffix}`;
}

/** The interpreter's file name, or else any mapped path that names a version (an extension module's). */
function minorFromPaths(image: string, maps: readonly MemoryMap[]): number | null {
  for (const path of [image, ...maps.map((map) => map.path)]) {
    const match = /python3\.(\d{1,2})|\.cpython-3(\d{1,2})-/.exec(path);
    if (match !== null) return Number(match[1] ?? match[2]);
  }
  return null;
}

/** The version as `sys.version` starts: the text Py_GetVersion() keeps in the interpreter's data. */
function versionText(
  memory: TargetMemory,
  image: PythonImage,
  maps: readonly MemoryMap[],
): string | null {
  const first = maps.findIndex((map) => map.path === image.path);
  // The .bss follows as an anonymous mapping without a path.
  const data = maps
    .slice(first)
    .filter((map, i, rest) => map.path === image.path || rest[i - 1]?.path === image.path)
    .filter((map) => map.permissions.startsWith('rw') && map.end - map.start <= DATA_LIMIT)
    .slice(0, DATA_MAPPINGS);
  for (const { start, end } of data) {
    const bytes = Buffer.alloc(end - start);
    memory.readInto(bytes, start);
    const match = /\0(3\.\d{1,2}\.\d{1,3})\+? \(/.exec(bytes.toString('latin1'));
    if (match?.[1] !== undefined) return match[1];
  }
  return null;
}
