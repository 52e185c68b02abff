import { join, resolve } from 'node:path';
import { stateDirectory } from '../../platform/state-directory.ts';
import type { Environment } from '../command-line/command.ts';

/** Where recordings are looked for: the folders that were named, else those that commands write to by default. */
export async function recordingPlaces(
  named: readonly string[],
  environment: Environment,
): Promise<readonly string[]> {
  const { cwd, env } = environment;
  if (named.length > 0) {
    const { requireFolder } = await import('../../recording/inventory.ts');
    const folders = named.map((folder) => resolve(cwd, folder));
    for (const folder of folders) await requireFolder(folder);
    return folders;
  }
  const { loadConfig } = await import('../../config/config.ts');
  const { output } = await loadConfig(environment);
  const usual = [join(cwd, '.tracewright'), stateDirectory(env), output ?? null];
  return [...new Set(usual.filter((folder) => folder !== null))];
}
