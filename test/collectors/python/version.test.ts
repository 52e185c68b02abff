import { describe, expect, it } from 'vitest';
import type { PythonImage } from '../../../collectors/python/locate.ts';
import type { PythonSymbols } from '../../../collectors/python/objects.ts';
import { OFFSET_TABLES } from '../../../collectors/python/offset-tables.ts';
import { identifyVersion } from '../../../collectors/python/version.ts';
import { type MemoryMap, MemoryError } from '../../../src/platform/memory.ts';
import { UntrustedMemory } from './untrusted-memory.ts';

const BASE = 0x7f00_0000_0000;
const SIZE = 64 * 1024;
const RUNTIME = BASE + 0x1000;
const VERSION = BASE + 0x8000;
const TYPES = ['code', 'str', 'bytes', 'tuple', 'float', 'int'] as const;
const typeAt = (name: (typeof TYPES)[number]): number => BASE + 0x9000 + TYPES.indexOf(name) * 512;
const SYMBOLS: PythonSymbols = {
  runtime: RUNTIME,
  none: BASE + 0x8800,
  codeType: typeAt('code'),
  strType: typeAt('str'),
  bytesType: typeAt('bytes'),
  tupleType: typeAt('tuple'),
  floatType: typeAt('float'),
  intType: typeAt('int'),
};

/** A process of one segment, which holds types with their names and whatever else is written. */
class SmallMemory extends UntrustedMemory {
  readonly content: Buffer = Buffer.alloc(SIZE);
  /** Bytes given away. */
  given = 0;

  constructor() {
    super();
    for (const name of TYPES) {
      this.write64(typeAt(name) + 24, typeAt(name) + 256);
      this.content.write(`${name}\0`, typeAt(name) + 256 - BASE);
    }
  }
  write64(address: number, value: number): void {
    this.content.writeBigUInt64LE(BigInt(value), address - BASE);
  }
  readInto(target: Buffer, address: number, length: number = target.length): void {
    if (address < BASE || address + length > BASE + SIZE) throw new MemoryError(address);
    this.given += length;
    this.content.copy(target, 0, address - BASE, address - BASE + length);
  }
  override cString(address: number, limit = 256): string {
    const text = super.cString(address, limit);
    return text.slice(0, text.indexOf('\0'));
  }
}

interface Process {
  readonly path?: string;
  /** PY_VERSION_HEX in the symbol Py_Version, as from 3.11 on. */
  readonly hex?: number;
  /** What `_PyRuntime` says of itself, as from 3.13 on. */
  readonly cookie?: { readonly hex: number; readonly isFreeThreaded: boolean };
  readonly libraries?: readonly string[];
  readonly data?: string;
}

function identify(
  process: Process,
  memory = new SmallMemory(),
): ReturnType<typeof identifyVersion> {
  const path = process.path ?? '/usr/bin/python3';
  if (process.hex !== undefined) memory.write64(VERSION, process.hex);
  if (process.cookie !== undefined) {
    memory.content.write('xdebugpy', RUNTIME - BASE);
    memory.write64(RUNTIME + 8, process.cookie.hex);
    memory.write64(RUNTIME + 16, process.cookie.isFreeThreaded ? 1 : 0);
  }
  if (process.data !== undefined) memory.content.write(process.data, 0xf000);
  const image: PythonImage = {
    path,
    symbols: SYMBOLS,
    versionAddress: process.hex === undefined ? null : VERSION,
  };
  const map = (name: string, permissions: string): MemoryMap => ({
    start: BASE,
    end: BASE + SIZE,
    permissions,
    offset: 0,
    device: 1,
    inode: 1,
    path: name,
  });
  return identifyVersion(memory, image, [
    map(path, 'rw-p'),
    ...(process.libraries ?? []).map((name) => map(name, 'r-xp')),
  ]);
}

describe('the version of a CPython', () => {
  it('is what the symbol Py_Version says', () => {
    expect(identify({ hex: 0x030b_07f0 })).toMatchObject({
      ok: true,
      version: '3.11.7',
      table: { minor: 11 },
    });
    expect(identify({ hex: 0x030c_01c2 })).toMatchObject({ ok: true, version: '3.12.1rc2' });
  });

  it('is what the runtime says of itself from 3.13 on', () => {
    const cookie = { hex: 0x030d_00f0, isFreeThreaded: false };
    expect(identify({ cookie })).toMatchObject({
      ok: true,
      version: '3.13.0',
      table: { minor: 13 },
    });
  });

  it.each([
    ['/opt/lib/libpython3.8.so.1.0', [], 8],
    ['/usr/bin/python3.10', [], 10],
    ['/usr/sbin/uwsgi', ['/usr/lib/python3.9/lib-dynload/_json.cpython-39-x86_64-linux-gnu.so'], 9],
    ['/srv/app', ['/srv/_internal/_json.cpython-310-x86_64-linux-gnu.so'], 10],
  ] as const)('is told by paths where nothing states it: %s', (path, libraries, minor) => {
    expect(identify({ path, libraries })).toMatchObject({
      ok: true,
      version: `3.${minor}`,
      table: { minor },
    });
  });

  it('has its patch level from the text that sys.version starts with', () => {
    const data = '\x003.8.18 (default, May  9 2026, 07:33:04) \n[GCC 12.2.0]\0';
    expect(identify({ path: '/usr/bin/python3.8', data })).toMatchObject({
      ok: true,
      version: '3.8.18',
    });
  });
});

it('is not sought in ten thousand mappings of the same file', () => {
  const memory = new SmallMemory();
  const path = '/usr/bin/python3.8';
  const data = { start: BASE, end: BASE + SIZE, permissions: 'rw-p', offset: 0, path };
  const maps = Array.from({ length: 10_000 }, () => ({ ...data, device: 1, inode: 1 }));
  const image: PythonImage = { path, symbols: SYMBOLS, versionAddress: null };
  expect(identifyVersion(memory, image, maps)).toMatchObject({ ok: true, version: '3.8' });
  expect(memory.given).toBeLessThan(16 * SIZE);
});

describe('a CPython whose layout is not known is refused, with the reason', () => {
  it.each<[string, Process, RegExp]>([
    ['free-threaded', { cookie: { hex: 0x030d_00f0, isFreeThreaded: true } }, /free-threaded/],
    [
      'newer',
      { cookie: { hex: 0x030f_00f0, isFreeThreaded: false } },
      /3\.15 is not supported: trace reads 3\.8 to 3\.14/,
    ],
    ['older', { path: '/usr/bin/python3.7' }, /3\.7 is not supported/],
    ['an alpha', { hex: 0x030c_00a3 }, /3\.12\.0a3 is a pre-release/],
    ['of no known version', { path: '/srv/app' }, /cannot be told/],
    ['of another major version', { hex: 0x0400_00f0 }, /cannot be told/],
  ])('%s', (_, process, reason) => {
    const refusal = identify(process);
    expect(refusal).toMatchObject({ ok: false, code: 'unsupported' });
    if (!refusal.ok) expect(refusal.reason).toMatch(reason);
  });

  it('one whose types are not where its version has them', () => {
    const memory = new SmallMemory();
    memory.write64(typeAt('code') + 24, typeAt('str') + 256);
    expect(identify({ hex: 0x030b_07f0 }, memory)).toMatchObject({ ok: false, code: 'unverified' });
  });
});

describe('the offset tables', () => {
  it('cover CPython 3.8 to 3.14, with where each comes from', () => {
    expect(OFFSET_TABLES.map(({ minor }) => minor)).toEqual([8, 9, 10, 11, 12, 13, 14]);
    for (const { minor, version, hex, generated } of OFFSET_TABLES) {
      expect(version).toMatch(new RegExp(`^3\\.${minor}\\.\\d+$`));
      expect(hex >>> 16).toBe(0x300 + minor);
      expect(generated).toMatch(/^\d{4}-\d\d-\d\d$/);
    }
  });

  it('yield to what a 3.13 process states of itself, but not to nonsense', () => {
    const memory = new SmallMemory();
    const table = OFFSET_TABLES.find(({ minor }) => minor === 13);
    const where = table?.selfDescription;
    if (table === undefined || where === null || where === undefined) throw new Error('no table');
    for (const position of Object.values(where)) memory.write64(RUNTIME + position, 2 ** 40);
    memory.write64(RUNTIME + where.currentFrame, 88);
    const cookie = { hex: 0x030d_05f0, isFreeThreaded: false };
    const identified = identify({ cookie }, memory);
    if (!identified.ok) throw new Error(identified.reason);
    expect(identified.version).toBe('3.13.5');
    expect(identified.table).toEqual({ ...table, thread: { ...table.thread, currentFrame: 88 } });
  });
});
