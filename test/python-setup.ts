import { delimiter } from 'node:path';
import { installPython314 } from './environments.ts';

/** Installs what `TRACEWRIGHT_PYTHONS` asks for that machines do not have yet, before a test file names it. */
export async function setup(): Promise<void> {
  const asked = (process.env['TRACEWRIGHT_PYTHONS'] ?? '').split(delimiter);
  if (asked.includes('3.14')) await installPython314();
}
