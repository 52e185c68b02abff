// Reads each file of a folder as the symbols of a mapped library. Usage: symbols.mjs
// <dist/src/main.js> <folder>
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

const [main, folder] = process.argv.slice(2);
const { elfHeader, elfSection, elfSymbols } = await import(join(dirname(main), 'platform/elf.js'));
const names = ['_PyRuntime', 'uv_run', 'PyInit__ctypes', ''];

for (const name of readdirSync(folder)) {
  const path = join(folder, name);
  elfHeader(path);
  elfSymbols(path, names);
  elfSection(path, '.PyRuntime');
}
