import { closeSync, openSync, readSync, writeSync } from 'node:fs';

/**
 * What `strip` does as far as a reader of symbols can tell: the section of local symbols is of no
 * known kind any more.
 */
export function hideSymbols(path: string): void {
  const SYMTAB = 2;
  const fd = openSync(path, 'r+');
  try {
    const header = Buffer.alloc(64);
    readSync(fd, header, 0, 64, 0);
    const table = Number(header.readBigUInt64LE(40));
    const section = Buffer.alloc(64);
    for (let i = 0; i < header.readUInt16LE(60); i++) {
      readSync(fd, section, 0, 64, table + i * 64);
      if (section.readUInt32LE(4) !== SYMTAB) continue;
      section.writeUInt32LE(0, 4);
      writeSync(fd, section, 0, 64, table + i * 64);
    }
  } finally {
    closeSync(fd);
  }
}
