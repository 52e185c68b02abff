import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { keptFolder, locatePython, npmPackages } from '../environments.ts';
import { runHeard } from '../set-up-progress.ts';
import type { Recipe } from './cases.ts';

/* An environment of its own for each release of each case, kept in the cache under the hash of what is in it. */

/** Some releases come with a hundred packages; on a busy machine and from a slow registry. */
const INSTALL_TIMEOUT_MS = 600_000;

/** What a driver is started with. */
export interface Environment {
  readonly command: readonly string[];
  readonly cwd: string;
}

/** Installs a release, or finds it installed. */
export async function environmentOf(recipe: Recipe): Promise<Environment> {
  const folder =
    recipe.kind === 'node' ? await npmFolder(recipe.packages) : await pythonFolder(recipe);
  const command =
    recipe.kind === 'node'
      ? [process.execPath, `--inspect-port=${await freePort()}`, ...recipe.flags]
      : [join(folder, 'bin', 'python'), '-u'];
  return { command, cwd: folder };
}

/** Inspectors are opened on it: on Node's own only one process of a machine can have one at a time. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });
}

function npmFolder(packages: readonly string[]): Promise<string> {
  return npmPackages(`case-npm-${hashOf(packages)}`, packages, { cost: 'a few seconds' });
}

/** Packages are put into a bare environment by the interpreter's own pip: unpacking one into each takes longer than all the rest. */
function pythonFolder(recipe: Recipe & { kind: 'python' }): Promise<string> {
  const interpreter = locatePython(recipe.version);
  if (interpreter === null)
    throw new Error(`Python ${recipe.version} is wanted and not here (pyenv, or on the PATH)`);
  const { path, version } = interpreter;
  const name = `case-py-${version}-${hashOf([path, ...recipe.packages])}`;
  const what = `Python ${version} with ${recipe.packages.join(' ')}`;
  const setUp = recipe.packages.length === 0 ? null : { what, cost: 'a few seconds' };
  return keptFolder(name, setUp, async (making, listen) => {
    await runHeard(path, ['-m', 'venv', '--without-pip', '--symlinks', making], { listen });
    if (recipe.packages.length === 0) return;
    const minor = version.split('.').slice(0, 2).join('.');
    const target = join(making, 'lib', `python${minor}`, 'site-packages');
    const quiet = ['--progress-bar', 'off', '--no-input', '--no-compile'];
    const flags = ['--only-binary', ':all:', ...quiet];
    const pip = ['-m', 'pip', '--disable-pip-version-check', 'install', ...flags];
    await runHeard(path, [...pip, '--target', target, ...recipe.packages], {
      timeout: INSTALL_TIMEOUT_MS,
      listen,
    });
  });
}

function hashOf(parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12);
}
