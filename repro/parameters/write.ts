import { writeFile } from 'node:fs/promises';
import type { ReproParameters } from './parameters.ts';

/** Writes parameters as a person would keep them: indented, one document, its owner's alone where it may hold what was sent. */
export async function writeParameters(path: string, parameters: ReproParameters): Promise<void> {
  await writeFile(path, parametersText(parameters), { mode: 0o600 });
}

/** The text of `parameters.json`. */
export function parametersText(parameters: ReproParameters): string {
  return `${JSON.stringify(parameters, null, 2)}\n`;
}
