import { accessSync, constants, readdirSync, realpathSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Seconds } from '../core/types.ts';
import { runBriefly } from './run-briefly.ts';
import { judgeProgram } from './runtime-program.ts';

/** Programs found through PATH. */

/** An interpreter on PATH; `version` is null when it did not say. */
export interface Interpreter {
  readonly path: string;
  readonly version: string | null;
}

/** `python`, `python3`, `python3.12`, `python3.13t`; not `python3-config`. */
export const PYTHON_NAME: RegExp = /^python(?:3(?:\.\d{1,2}t?)?)?$/;
export const NODE_NAME: RegExp = /^node$/;

/** More interpreters than a person keeps; each may cost a start of its own. */
const LIMIT = 12;
/** A cold start of an interpreter on a busy machine. */
const VERSION_LIMIT: Seconds = 2;

/** The first program of that name on PATH, as the shell would find it; null when there is none. */
export function findProgram(name: string, path: string | undefined): string | null {
  for (const folder of foldersOf(path)) {
    const file = join(folder, name);
    if (isProgram(file)) return file;
  }
  return null;
}

/**
 * Interpreters on PATH in its order, each file once. The version is read from the file; where it is elsewhere (a wrapper, a shared
 * library) the program is run with `--version`. Wrappers that have none to run are left out.
 */
export async function findInterpreters(
  name: RegExp,
  path: string | undefined,
): Promise<readonly Interpreter[]> {
  const files = new Map<string, string>();
  for (const folder of foldersOf(path)) {
    for (const entry of entriesOf(folder)
      .filter((one) => name.test(one))
      .toSorted()) {
      const file = join(folder, entry);
      if (!isProgram(file)) continue;
      const real = realpathSync(file);
      if (!files.has(real) && files.size < LIMIT) files.set(real, file);
    }
  }
  const found = await Promise.all(
    [...files.values()].map(async (file) => ({ path: file, version: await versionOf(file) })),
  );
  return found.filter(({ version }) => version !== null);
}

async function versionOf(file: string): Promise<string | null> {
  const written = versionInFile(file);
  if (written !== null) return written;
  const run = await runBriefly(file, ['--version'], VERSION_LIMIT);
  if (run.ended !== 'exit' || run.code !== 0) return null;
  return /^(?:Python |v)(\d+\.\d+\.\d+[\w+.-]{0,20})\s*$/m.exec(run.output)?.[1] ?? null;
}

/** Null unless the file itself holds an exact release. */
function versionInFile(file: string): string | null {
  try {
    const { version } = judgeProgram(file);
    return version !== null && /^\d+\.\d+\.\d+/.test(version) ? version : null;
  } catch {
    return null;
  }
}

/** Relative entries are left out: what they name depends on where trace was started, and it may run as root. */
function foldersOf(path: string | undefined): readonly string[] {
  return (path ?? '').split(delimiter).filter(isAbsolute);
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
