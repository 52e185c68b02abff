import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import type { Bytes } from '../../../core/types.ts';
import { maskText } from '../../../core/secrets/mask.ts';
import { readBeginSync } from '../../../platform/outside-file.ts';
import type { Surroundings } from './fact.ts';

/** Notes that people keep for each other and for agents: data, of which nothing is done. */

/** Text is untrusted. */
export interface Note {
  readonly path: string;
  /** Without credentials, cut. */
  readonly text: string;
}

const SIZE_LIMIT: Bytes = 8 * 1024;
const IN_REPOSITORY = ['CLAUDE.md', 'AGENTS.md'];

/** Those that are named, else the usual ones; each file once. What is not there, or leads out of the repository, is left out. */
export function readNotes(
  { cwd, env }: Surroundings,
  named: readonly string[] | null,
): readonly Note[] {
  const root = rootOf(cwd);
  const home = env['HOME'] ?? '';
  const found = new Map<string, Note>();
  const take = (path: string, within: string | null): void => {
    const real = realOf(path);
    if (real === null || found.has(real) || (within !== null && !real.startsWith(within + sep)))
      return;
    const text = textOf(real);
    if (text !== null && text.trim() !== '') found.set(real, { path, text: maskText(text) });
  };
  if (named !== null) {
    for (const path of named) take(path, path.startsWith(root + sep) ? realOf(root) : null);
  } else {
    if (home !== '') take(join(home, '.claude', 'CLAUDE.md'), null);
    // A link of a checkout must not bring other files of the user's in.
    for (const name of IN_REPOSITORY) take(join(root, name), realOf(root));
  }
  return [...found.values()];
}

/** The nearest folder above with a repository; without one the folder itself. */
function rootOf(cwd: string): string {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder;
    if (folder === dirname(folder)) return cwd;
  }
}

function realOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** Null for what is no regular file or may not be read. */
function textOf(path: string): string | null {
  try {
    return readBeginSync(path, SIZE_LIMIT).toString('utf8');
  } catch {
    return null;
  }
}
