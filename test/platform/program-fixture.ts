/** Program files made for tests: 64-bit ELF with nothing but what tells a runtime. Written by the System V gABI. */

export interface ProgramOptions {
  /** Exported functions and variables, each with its offset into `rodata` (0 when only its presence counts). */
  readonly symbols: Readonly<Record<string, number>>;
  readonly rodata?: Buffer | string;
  /** Names of further, empty sections. */
  readonly sections?: readonly string[];
}

const HEADER = 64;
const SEGMENT = 56;
const SECTION = 64;

/** The file, loaded at address 0 by one segment; `.rodata` begins at `RODATA`. */
export function makeProgram({ symbols, rodata = '', sections = [] }: ProgramOptions): Buffer {
  const data = Buffer.from(rodata);
  const names = Object.keys(symbols);
  const strings = Buffer.from(`\0${names.map((name) => `${name}\0`).join('')}`, 'latin1');
  const table = Buffer.alloc(24 * (names.length + 1));
  let nameAt = 1;
  names.forEach((name, i) => {
    const at = 24 * (i + 1);
    table.writeUInt32LE(nameAt, at);
    table.writeUInt8(0x12, at + 4); // global function
    table.writeUInt16LE(1, at + 6); // defined, in section 1
    table.writeBigUInt64LE(BigInt(RODATA + (symbols[name] ?? 0)), at + 8);
    nameAt += name.length + 1;
  });
  const listed = ['', '.rodata', '.dynstr', '.dynsym', ...sections, '.shstrtab'];
  const sectionNames = Buffer.from(listed.map((name) => `${name}\0`).join(''), 'latin1');
  const parts = [data, strings, table, sectionNames];
  const offsets = parts.map((_, i) =>
    parts.slice(0, i).reduce((at, part) => at + part.length, RODATA),
  );
  const [dataAt = 0, stringsAt = 0, tableAt = 0, namesAt = 0] = offsets;
  const headersAt = namesAt + sectionNames.length;
  const file = Buffer.alloc(headersAt + SECTION * listed.length);
  parts.forEach((part, i) => part.copy(file, offsets[i] ?? 0));

  file.write('\x7fELF\x02\x01\x01', 0, 'latin1');
  file.writeUInt16LE(3, 16);
  file.writeUInt16LE(process.arch === 'arm64' ? 183 : 62, 18);
  file.writeBigUInt64LE(BigInt(HEADER), 32);
  file.writeBigUInt64LE(BigInt(headersAt), 40);
  file.writeUInt16LE(SEGMENT, 54);
  file.writeUInt16LE(1, 56);
  file.writeUInt16LE(SECTION, 58);
  file.writeUInt16LE(listed.length, 60);
  file.writeUInt16LE(listed.length - 1, 62);

  file.writeUInt32LE(1, HEADER); // PT_LOAD of the whole file at address 0
  file.writeBigUInt64LE(BigInt(file.length), HEADER + 32);
  file.writeBigUInt64LE(BigInt(file.length), HEADER + 40);

  const extents = new Map([
    ['.rodata', { type: 1, at: dataAt, size: data.length, link: 0 }],
    ['.dynstr', { type: 3, at: stringsAt, size: strings.length, link: 0 }],
    ['.dynsym', { type: 11, at: tableAt, size: table.length, link: 2 }],
    ['.shstrtab', { type: 3, at: namesAt, size: sectionNames.length, link: 0 }],
  ]);
  let sectionNameAt = 0;
  listed.forEach((name, i) => {
    const extent = extents.get(name) ?? { type: name === '' ? 0 : 1, at: 0, size: 0, link: 0 };
    const header = headersAt + SECTION * i;
    file.writeUInt32LE(sectionNameAt, header);
    file.writeUInt32LE(extent.type, header + 4);
    file.writeBigUInt64LE(BigInt(extent.at), header + 16);
    file.writeBigUInt64LE(BigInt(extent.at), header + 24);
    file.writeBigUInt64LE(BigInt(extent.size), header + 32);
    file.writeUInt32LE(extent.link, header + 40);
    sectionNameAt += name.length + 1;
  });
  return file;
}

/** Where `.rodata` lies in a file of `makeProgram`, and at which address. */
export const RODATA: number = HEADER + SEGMENT;

/**
 * A 32-bit i386 program of 96 bytes that sleeps for ever: one segment, and `pause` in a loop. Runs where the kernel has IA32 emulation.
 */
export function makeI386Sleeper(): Buffer {
  const code = Buffer.from([
    0xb8,
    29,
    0,
    0,
    0, // mov eax, SYS_pause
    0xcd,
    0x80, // int 0x80
    0xeb,
    0xf7, // back to the start
  ]);
  const base = 0x0804_8000;
  const entry = 52 + 32;
  const file = Buffer.alloc(entry + code.length);
  file.write('\x7fELF\x01\x01\x01', 0, 'latin1');
  file.writeUInt16LE(2, 16);
  file.writeUInt16LE(3, 18);
  file.writeUInt32LE(1, 20);
  file.writeUInt32LE(base + entry, 24);
  file.writeUInt32LE(52, 28);
  file.writeUInt16LE(52, 40);
  file.writeUInt16LE(32, 42);
  file.writeUInt16LE(1, 44);
  file.writeUInt32LE(1, 52);
  file.writeUInt32LE(base, 52 + 8);
  file.writeUInt32LE(base, 52 + 12);
  file.writeUInt32LE(file.length, 52 + 16);
  file.writeUInt32LE(file.length, 52 + 20);
  file.writeUInt32LE(5, 52 + 24);
  file.writeUInt32LE(4096, 52 + 28);
  code.copy(file, entry);
  return file;
}
