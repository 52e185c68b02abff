import { closeSync, readSync } from 'node:fs';
import { openRegular } from './regular-file.ts';

/**
 * The little of ELF (System V gABI, 64-bit little endian) that finding a variable in a running program needs: where symbols lie
 * relative to the first loaded byte. Files come from the target's file system: every offset and size is checked.
 */

const ELF_MAGIC = 0x7f454c46;
const CLASS_64 = 2;
const LITTLE_ENDIAN = 1;
const PT_LOAD = 1;
const SHT_SYMTAB = 2;
const SHT_DYNSYM = 11;
const SHN_UNDEF = 0;
const SYMBOL_SIZE = 24;
const SECTION_HEADER_SIZE = 64;
const PROGRAM_HEADER_SIZE = 56;
/** No table we read is larger: node 24's .symtab with its strings is 30 MiB. */
const TABLE_LIMIT = 64 * 1024 * 1024;
/** Names of sections: no linker writes more. */
const NAMES_LIMIT = 1024 * 1024;
/** A table of strings has each of them once. */
const PLACES_LIMIT = 16;

/** ELF e_machine values that matter to messages. */
export const ELF_MACHINE = { i386: 3, arm: 40, x86_64: 62, aarch64: 183, riscv: 243 } as const;

/** Where the wanted symbols of one file lie. */
export interface ElfSymbols {
  readonly machine: number;
  /** Virtual address of the first loaded page: runtime address = mapping start of offset 0 − base + symbol value. */
  readonly base: number;
  /** Symbol values by name; only those found and defined. */
  readonly symbols: ReadonlyMap<string, number>;
}

/** What the first bytes of an executable say about it. */
export interface ElfHeader {
  readonly bits: 32 | 64;
  readonly littleEndian: boolean;
  readonly machine: number;
}

/** The header of an ELF file; null when it is not one. Throws errno errors of opening and reading. */
export function elfHeader(path: string): ElfHeader | null {
  const { fd } = openRegular(path);
  try {
    return parseHeader(readAt(fd, 0, 64));
  } finally {
    closeSync(fd);
  }
}

/**
 * Looks up `names` in .dynsym, then in .symtab (absent from stripped files). Null when the file is not 64-bit little-endian ELF
 * or is damaged. Throws errno errors of opening and reading.
 */
export function elfSymbols(path: string, names: readonly string[]): ElfSymbols | null {
  const { fd, stats } = openRegular(path);
  try {
    const header = readAt(fd, 0, 64);
    const parsed = parseHeader(header);
    if (parsed === null || parsed.bits !== 64 || !parsed.littleEndian || header.length < 64)
      return null;
    const base = firstLoadedAddress(fd, header);
    if (base === null) return null;
    const symbols = new Map<string, number>();
    const sections = readSections(fd, header, stats.size);
    for (const type of [SHT_DYNSYM, SHT_SYMTAB]) {
      // A file has one of each: one that has thousands was made to keep us.
      const section = sections.find((one) => one.type === type);
      const strings = sections[section?.link ?? -1];
      if (section === undefined || strings === undefined) continue;
      collectSymbols(
        readAt(fd, section.offset, section.size),
        readAt(fd, strings.offset, strings.size),
        {
          wanted: names.filter((name) => !symbols.has(name)),
          into: symbols,
        },
      );
      if (names.every((name) => symbols.has(name))) break;
    }
    return { machine: parsed.machine, base, symbols };
  } finally {
    closeSync(fd);
  }
}

/** Where one section of a file lies when it is loaded. */
export interface ElfSection {
  /** As in {@link ElfSymbols}. */
  readonly base: number;
  readonly address: number;
  readonly size: number;
}

/** Looks a section up by its name; null where there is none, or the file is not 64-bit little-endian ELF. Throws errno errors of reading. */
export function elfSection(path: string, name: string): ElfSection | null {
  const { fd, stats } = openRegular(path);
  try {
    const header = readAt(fd, 0, 64);
    const parsed = parseHeader(header);
    if (parsed === null || parsed.bits !== 64 || !parsed.littleEndian || header.length < 64)
      return null;
    const base = firstLoadedAddress(fd, header);
    const sections = readSections(fd, header, stats.size);
    const strings = sections[header.readUInt16LE(62)];
    if (base === null || strings === undefined) return null;
    const names = readAt(fd, strings.offset, Math.min(strings.size, NAMES_LIMIT));
    const wanted = Buffer.from(`${name}\0`, 'latin1');
    const found = sections.find(({ nameAt }) =>
      names.subarray(nameAt, nameAt + wanted.length).equals(wanted),
    );
    return found === undefined ? null : { base, address: found.address, size: found.size };
  } finally {
    closeSync(fd);
  }
}

interface Section {
  readonly nameAt: number;
  readonly address: number;
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
}

function parseHeader(header: Buffer): ElfHeader | null {
  if (header.length < 20 || header.readUInt32BE(0) !== ELF_MAGIC) return null;
  const littleEndian = header[5] === LITTLE_ENDIAN;
  return {
    bits: header[4] === CLASS_64 ? 64 : 32,
    littleEndian,
    machine: littleEndian ? header.readUInt16LE(18) : header.readUInt16BE(18),
  };
}

function firstLoadedAddress(fd: number, header: Buffer): number | null {
  const table = readAt(fd, u64(header, 32), header.readUInt16LE(56) * PROGRAM_HEADER_SIZE);
  let lowest: number | null = null;
  for (let at = 0; at + PROGRAM_HEADER_SIZE <= table.length; at += PROGRAM_HEADER_SIZE) {
    if (table.readUInt32LE(at) !== PT_LOAD) continue;
    // The kernel maps whole pages, so the mapping of file offset 0 starts at the page the segment starts in.
    const address = u64(table, at + 16) - (u64(table, at + 8) % 4096);
    if (lowest === null || address < lowest) lowest = address;
  }
  return lowest;
}

function readSections(fd: number, header: Buffer, fileSize: number): readonly Section[] {
  if (header.readUInt16LE(58) !== SECTION_HEADER_SIZE) return [];
  const table = readAt(fd, u64(header, 40), header.readUInt16LE(60) * SECTION_HEADER_SIZE);
  const sections: Section[] = [];
  for (let at = 0; at + SECTION_HEADER_SIZE <= table.length; at += SECTION_HEADER_SIZE) {
    const section = {
      nameAt: table.readUInt32LE(at),
      address: u64(table, at + 16),
      type: table.readUInt32LE(at + 4),
      offset: u64(table, at + 24),
      size: u64(table, at + 32),
      link: table.readUInt32LE(at + 40),
    };
    const sound = section.size <= TABLE_LIMIT && section.offset + section.size <= fileSize;
    sections.push(sound ? section : { ...section, size: 0 });
  }
  return sections;
}

function collectSymbols(
  table: Buffer,
  strings: Buffer,
  { wanted, into }: { wanted: readonly string[]; into: Map<string, number> },
): void {
  // Finding the names' offsets first (memmem) and then scanning integers is 50 times faster than decoding each name.
  const nameAt = new Map<number, string>();
  for (const name of wanted) {
    const needle = Buffer.from(`\0${name}\0`, 'latin1');
    let at = strings.indexOf(needle);
    for (let places = 0; at >= 0 && places < PLACES_LIMIT; places++) {
      nameAt.set(at + 1, name);
      at = strings.indexOf(needle, at + 1);
    }
  }
  if (nameAt.size === 0) return;
  for (let at = 0; at + SYMBOL_SIZE <= table.length; at += SYMBOL_SIZE) {
    const name = nameAt.get(table.readUInt32LE(at));
    if (name === undefined || table.readUInt16LE(at + 6) === SHN_UNDEF) continue;
    into.set(name, u64(table, at + 8));
  }
}

function u64(buffer: Buffer, offset: number): number {
  return Number(buffer.readBigUInt64LE(offset));
}

function readAt(fd: number, offset: number, length: number): Buffer {
  if (!Number.isSafeInteger(offset) || length <= 0 || length > TABLE_LIMIT) return Buffer.alloc(0);
  const buffer = Buffer.allocUnsafe(length);
  let got = 0;
  while (got < length) {
    const n = readSync(fd, buffer, got, length - got, offset + got);
    if (n === 0) break;
    got += n;
  }
  return buffer.subarray(0, got);
}
