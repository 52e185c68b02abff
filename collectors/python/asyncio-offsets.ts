import { basename } from 'node:path';
import { elfSection } from '../../src/platform/elf.ts';
import { mappedFile } from '../../src/platform/mapped-file.ts';
import { readMaps, type MemoryMap } from '../../src/platform/memory.ts';
import type { TargetMemory } from './objects.ts';

/**
 * What `_asyncio` of 3.14 and later states of itself: `Py_AsyncioModuleDebugOffsets` (Modules/_asynciomodule.c), in a section of its own in the
 * extension module, or in the interpreter where the module is built in.
 */
export interface AsyncioOffsets {
  /** In a task. */
  readonly name: number;
  readonly coroutine: number;
  /** In a task: its links in the ring of its thread's tasks. */
  readonly node: number;
  /** In an interpreter: the ring of tasks whose thread has ended. */
  readonly interpreterTasks: number;
  /** In a thread state: the task that runs, and the ring of its tasks. */
  readonly runningTask: number;
  readonly threadTasks: number;
}

const SECTION = '.AsyncioDebug';
/** Positions in the structure, of 64 bits each; sizes and what is not used lie between. */
const AT = {
  name: 8,
  coroutine: 40,
  node: 48,
  interpreterTasks: 64,
  runningTask: 88,
  threadTasks: 96,
} as const;
const SIZE = 104;
/** No offset of a task or thread state is larger; a section that says so is not what we take it for. */
const OFFSET_LIMIT = 64 * 1024;
const MODULE = /^_asyncio\..*\.so$/;
const INTERPRETER = /^(?:libpython3|python3)/;
/** Files of such names that are looked into: there are two. */
const FILES_LIMIT = 16;

/** Reads what the module states; null where no file of the process has such a section, or it makes no sense. Throws MemoryError. */
export function readAsyncioOffsets(pid: number, memory: TargetMemory): AsyncioOffsets | null {
  for (const map of candidates(mapsOf(pid))) {
    const address = sectionOf(pid, map);
    if (address === null) continue;
    const bytes = memory.view(address, SIZE);
    const at = (position: number): number => Number(bytes.readBigUInt64LE(position));
    const offsets: AsyncioOffsets = {
      name: at(AT.name),
      coroutine: at(AT.coroutine),
      node: at(AT.node),
      interpreterTasks: at(AT.interpreterTasks),
      runningTask: at(AT.runningTask),
      threadTasks: at(AT.threadTasks),
    };
    const isSound = Object.values(offsets).every((one) => one % 8 === 0 && one < OFFSET_LIMIT);
    return isSound ? offsets : null;
  }
  return null;
}

/** None where they may not be read, or the process is gone. */
function mapsOf(pid: number): readonly MemoryMap[] {
  try {
    return readMaps(pid);
  } catch {
    return [];
  }
}

function candidates(maps: readonly MemoryMap[]): readonly MemoryMap[] {
  const first = maps.filter(({ offset, path }) => offset === 0 && path.startsWith('/'));
  return [
    ...first.filter(({ path }) => MODULE.test(basename(path))),
    ...first.filter(({ path }) => INTERPRETER.test(basename(path))),
  ].slice(0, FILES_LIMIT);
}

function sectionOf(pid: number, map: MemoryMap): number | null {
  try {
    const section = elfSection(mappedFile(pid, map), SECTION);
    return section === null || section.size < SIZE
      ? null
      : map.start - section.base + section.address;
  } catch {
    return null; // the file was replaced or may not be read: the table of the release is used
  }
}
