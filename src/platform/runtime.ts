import { readlinkSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { monotonicNow } from '../core/clock.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { mappedFile, withoutDeleted } from './mapped-file.ts';
import { type MemoryMap, readMaps } from './memory.ts';
import { type Program, type RuntimeName, judgeProgram } from './runtime-program.ts';

/** Which runtime a process runs, by evidence: what its executable and the libraries mapped into it define. */

/** A program file of a running process: where it can be read and where it is loaded. */
export interface RuntimeImage {
  /** Opens also when the process lives in another mount namespace, or the file was replaced since. */
  readonly path: string;
  /** Address of the mapping of file offset 0; null when the mappings may not be read. */
  readonly start: number | null;
}

export interface Runtime {
  readonly name: RuntimeName;
  /** As precise as is certain: `3.11.7`, `3.10`, `20.20.2`; null when it cannot be told. */
  readonly version: string | null;
  /** A Python build whose structures differ from the released ones. */
  readonly variant: Program['variant'];
  /** libuv is in the process: in its executable, a library of its own, or uvloop. */
  readonly libuv: boolean;
  readonly uvloop: boolean;
  /** The file that defines the runtime; null for native and unknown. */
  readonly image: RuntimeImage | null;
  /** What the judgement rests on, one sentence each; safe to print. */
  readonly evidence: readonly string[];
  /** Why the runtime could not be told (`unknown` only). */
  readonly reason: string | null;
}

/** What program files were found to be, by device and inode, so that a hundred workers cost one look. */
export type KnownPrograms = Map<string, Program>;

/** Files whose names suggest a runtime inside; which one, and whether at all, their symbols decide. */
const RUNTIME_LIBRARY = /^lib(?:python|pypy|node|uv)[\w.+-]*\.so[\w.]*$/;
/** A process has one to three files of such names: one that has thousands was made to keep us. */
const LIBRARIES_LIMIT = 16;
/** Of looking into them. The largest that are known take 0.1 s together. */
const LOOK_LIMIT: Seconds = 2;

/** Never throws: what may not be read gives `unknown` and the reason. */
export function detectRuntime(pid: number, known: KnownPrograms = new Map()): Runtime {
  const maps = mapsOf(pid);
  const executable = programOf(`/proc/${pid}/exe`, known);
  if (executable instanceof Error) return unknownRuntime(whyUnreadable(executable));
  const until = monotonicNow() + LOOK_LIMIT;
  const libraries = [...libraryImages(pid, maps)];
  const uvloop = libraries.some(({ map }) => isUvloop(map.path));
  const images = [
    {
      label: `${shown(executablePath(pid))}`,
      image: { path: `/proc/${pid}/exe`, start: startOf(maps, executablePath(pid)) },
      program: executable,
    },
    ...libraries.flatMap(({ map, path }) => {
      const isPassedOver = isUvloop(map.path) || monotonicNow() > until;
      const program = isPassedOver ? null : programOf(path, known);
      return program === null || program instanceof Error
        ? []
        : [{ label: shown(map.path), image: { path, start: map.start }, program }];
    }),
  ];
  const libuv = uvloop || images.some(({ program }) => program.libuv);
  const uvloopEvidence = uvloop ? ['uvloop is loaded'] : [];
  const runtime = images.find(({ program }) => program.runtime !== 'native');
  if (runtime === undefined) {
    const reason = maps === null ? 'its mapped libraries may not be read' : null;
    const evidence = [`${shown(executablePath(pid))} defines no known runtime`];
    return { ...NOTHING, name: reason === null ? 'native' : 'unknown', libuv, evidence, reason };
  }
  const { program, label, image } = runtime;
  return {
    name: program.runtime,
    version: program.version,
    variant: program.variant,
    libuv,
    uvloop,
    image,
    evidence: [...program.evidence.map((one) => `${label} ${one}`), ...uvloopEvidence],
    reason: null,
  };
}

/** What is said of a process that was not looked into. */
export function unknownRuntime(reason: string): Runtime {
  return { ...NOTHING, name: 'unknown', reason };
}

const NOTHING: Omit<Runtime, 'name'> = {
  version: null,
  variant: null,
  libuv: false,
  uvloop: false,
  image: null,
  evidence: [],
  reason: null,
};

/** Null when they may not be read. */
function mapsOf(pid: number): readonly MemoryMap[] | null {
  try {
    return readMaps(pid);
  } catch {
    return null;
  }
}

function programOf(path: string, known: KnownPrograms): Program | Error {
  try {
    const { dev, ino, mtimeMs } = statSync(path);
    const key = `${dev}:${ino}:${mtimeMs}`;
    const program = known.get(key) ?? judgeProgram(path);
    known.set(key, program);
    return program;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

interface LibraryImage {
  readonly map: MemoryMap;
  readonly path: string;
}

function* libraryImages(pid: number, maps: readonly MemoryMap[] | null): Generator<LibraryImage> {
  let found = 0;
  for (const map of maps ?? []) {
    if (map.offset !== 0 || map.inode === 0) continue;
    if (!RUNTIME_LIBRARY.test(basename(withoutDeleted(map.path))) && !isUvloop(map.path)) continue;
    if (++found > LIBRARIES_LIMIT) return;
    yield { map, path: mappedFile(pid, map) };
  }
}

function isUvloop(path: string): boolean {
  return /\/uvloop\/loop\.[^/]*\.so$/.test(withoutDeleted(path));
}

function executablePath(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return 'its executable';
  }
}

function startOf(maps: readonly MemoryMap[] | null, path: string): number | null {
  return maps?.find((map) => map.offset === 0 && map.path === path)?.start ?? null;
}

function shown(path: string): string {
  return printable(basename(withoutDeleted(path)), 80);
}

function whyUnreadable(error: Error): string {
  const code = 'code' in error ? String(error.code) : 'unreadable';
  if (code === 'EACCES' || code === 'EPERM') return `its executable may not be read (${code})`;
  if (code === 'ENOENT') return 'it has no executable (a kernel thread, or it is gone)';
  return `its executable cannot be read (${code})`;
}
