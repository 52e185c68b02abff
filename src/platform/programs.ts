import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Seconds } from '../core/types.ts';
import { isProgram, programFolders } from './find-program.ts';
import { runBriefly } from './run-briefly.ts';
import { judgeProgram } from './runtime-program.ts';

/** Interpreters found through PATH. */

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

/**
 * Interpreters on PATH in its order, each file once. The version is read from the file; where it is elsewhere (a wrapper, a shared
 * library) the program is run with `--version`. Wrappers that have none to run are left out.
 */
export async function findInterpreters(
  name: RegExp,
  path: string | undefined,
): Promise<readonly Interpreter[]> {
  const files = new Map<string, string>();
  for (const folder of programFolders(path)) {
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

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
