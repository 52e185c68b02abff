import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { getAsset, isSea } from 'node:sea';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Where trace finds its own parts. As a package they are files. As one executable (docs/standalone.md) there are none: it carries each module
 * that starts on its own, bundled into one script, under the path it has below dist/; a module's own URL begins there too.
 */

/** With this and a module's path behind it the executable runs that module instead of a command line. */
export const OWN_MODULE = '--own-module';

/** A thread that runs a compiled module. */
export function startThread(module: URL, options: WorkerOptions): Worker {
  if (!isSea()) return new Worker(module, options);
  return new Worker(getAsset(module.pathname, 'utf8'), { ...options, eval: true });
}

/** The command that runs a compiled module as a process; what is added to it are the module's arguments. */
export function moduleCommand(module: URL): readonly [program: string, ...args: string[]] {
  if (!isSea()) return [process.execPath, fileURLToPath(module)];
  return [process.execPath, OWN_MODULE, module.pathname];
}

/** The command that runs trace, with absolute paths. */
export function ownProgram(): readonly string[] {
  const script = isSea() ? undefined : process.argv[1];
  return [process.execPath, ...(script === undefined ? [] : [resolve(script)])];
}

/** What package.json holds. Resolved through the package's own name, so it works from the sources and from dist. */
export function packageManifest(): unknown {
  if (isSea()) return JSON.parse(getAsset('/package.json', 'utf8'));
  return createRequire(import.meta.url)('tracewright/package.json');
}

/** The text of a page of the documentation, by its path below `docs/`. */
export function documentationPage(path: string): string {
  if (isSea()) return getAsset(`/docs/${path}`, 'utf8');
  return readFileSync(createRequire(import.meta.url).resolve(`#docs/${path}`), 'utf8');
}

/**
 * The text of a file that is shipped as it is, by its path below `repro/`: a template of a reproduction. From the package by its `imports`, so
 * it works from the sources and from dist.
 */
export function reproFile(path: string): string {
  if (isSea()) return getAsset(`/repro/${path}`, 'utf8');
  return readFileSync(createRequire(import.meta.url).resolve(`#repro/${path}`), 'utf8');
}
