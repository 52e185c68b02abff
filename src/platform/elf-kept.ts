import { statSync } from 'node:fs';
import { elfSymbols, type ElfSymbols } from './elf.ts';

/** Files kept; a tree of processes has one or two programs. */
const LIMIT = 16;
const kept = new Map<string, ElfSymbols | null>();

/**
 * {@link elfSymbols} of a file that several processes run: the same file (device, inode, size, time of change) is read once. Node's table
 * of symbols is 30 MiB, 15 ms a search.
 */
export function keptElfSymbols(path: string, names: readonly string[]): ElfSymbols | null {
  const { dev, ino, size, mtimeMs } = statSync(path);
  const key = [dev, ino, size, mtimeMs, ...names].join(' ');
  const known = kept.get(key);
  if (known !== undefined) return known;
  const found = elfSymbols(path, names);
  if (kept.size >= LIMIT) kept.clear();
  kept.set(key, found);
  return found;
}
