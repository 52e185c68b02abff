import { join } from 'node:path';
import { locatePython, npmPackages, pythonEnvironment } from '../../environments.ts';

/* The tools that explore schedules, at pinned versions. */

const PINS = join(import.meta.dirname, 'requirements.txt');
const FAST_CHECK = '4.10.2';
/** simloom wants 3.12. */
const PYTHON = '3.12';

/** What the tools are started with. */
export interface SchedulePeers {
  readonly python: string;
  /** The module to import. */
  readonly fastCheck: string;
}

/** Installs what is missing. */
export async function installSchedulePeers(): Promise<SchedulePeers> {
  const interpreter = locatePython(PYTHON);
  if (interpreter === null) throw new Error(`Python ${PYTHON} is wanted and not here`);
  const names = ['frontrun', 'hypothesis', 'simloom'];
  const { python } = await pythonEnvironment(names, interpreter.path, PINS);
  const packages = [`fast-check@${FAST_CHECK}`];
  const folder = await npmPackages(`fast-check-${FAST_CHECK}`, packages, { cost: '2 MB' });
  return { python, fastCheck: join(folder, 'node_modules/fast-check/lib/fast-check.js') };
}
