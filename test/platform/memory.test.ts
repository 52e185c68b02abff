import { afterEach, describe, expect, it } from 'vitest';
import { MemoryError, ProcessMemory, readMaps, WALKING } from '../../src/platform/memory.ts';

/** The start of our own heap: mapped as long as we run. */
function heapStart(): number {
  const heap = readMaps(process.pid).find(({ path }) => path === '[heap]');
  if (heap === undefined) throw new Error('no heap among the mappings');
  return heap.start;
}

const opened: ProcessMemory[] = [];

function open(...more: [] | [typeof WALKING]): ProcessMemory {
  const memory = new ProcessMemory(process.pid, ...more);
  opened.push(memory);
  return memory;
}

afterEach(() => {
  for (const memory of opened.splice(0)) memory.close();
});

describe.each([
  ['page by page', [] as const],
  ['in chunks', [WALKING] as const],
])('what is read %s', (_, [cache]) => {
  it('is read anew after it was dropped, into the buffer there was', () => {
    const memory = cache === undefined ? open() : open(cache);
    const start = heapStart();
    const before = memory.view(start, 16).buffer;
    const { reads } = memory;
    memory.view(start, 16);
    expect(memory.reads).toBe(reads);
    memory.forget();
    const after = memory.view(start, 16).buffer;
    expect(memory.reads).toBeGreaterThan(reads);
    expect(after).toBe(before);
  });

  it('keeps two pages apart, before and after', () => {
    const memory = cache === undefined ? open() : open(cache);
    const start = heapStart();
    const pageBytes = cache?.chunk ?? 4096;
    const base = start - (start % pageBytes);
    const other = base + pageBytes;
    for (let times = 0; times < 3; times++) {
      const first = memory.view(start, 8);
      const second = memory.view(other, 8);
      expect(first.buffer).not.toBe(second.buffer);
      memory.forget();
    }
  });

  it('is no buffer of another that could not be read', () => {
    const memory = cache === undefined ? open() : open(cache);
    const kept = memory.view(heapStart(), 8);
    expect(() => memory.view(4096, 8)).toThrow(MemoryError);
    expect(() => memory.pointer(4096)).toThrow(MemoryError);
    expect(memory.view(heapStart(), 8).buffer).toBe(kept.buffer);
  });
});
