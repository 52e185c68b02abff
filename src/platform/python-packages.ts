import { readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readBeginSync } from './outside-file.ts';

/** Which packages an interpreter would import, read from what installers wrote: nothing of it is run or imported. */

/** A package as its installer named it. Untrusted. */
export interface PythonPackage {
  /** Lower case, runs of `-`, `_` and `.` are one `_` (PyPA's normalized name). */
  readonly name: string;
  readonly version: string;
}

/** More than any environment has: a folder that is none. */
const ENTRIES_LIMIT = 50_000;
const VERSION_FOLDER = /^python3(?:\.\d{1,2}t?)?$/;
/** `torch-2.5.1+cu124.dist-info`; the older `vllm-0.1.0-py3.10.egg-info` too. */
const METADATA = /^([A-Za-z0-9][\w.]*?)-(\d[\w.+!]*?)(?:-py[\d.]+)?\.(?:dist-info|egg-info)$/;

/** A shim is a script that looks the interpreter up; which one it would start is read where pyenv keeps it. */
export function behindShim(
  program: string,
  {
    cwd,
    env,
  }: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): string {
  if (!program.includes('/shims/')) return program;
  const root = dirname(dirname(program));
  const chosen = env['PYENV_VERSION'] ?? localVersion(cwd) ?? textOf(join(root, 'version')) ?? '';
  const [name = ''] = chosen.trim().split(/[\s:]/, 1);
  const file = join(root, 'versions', name, 'bin', 'python');
  return /^[\w.-]+$/.test(name) && realOf(file) !== file ? file : program;
}

function localVersion(cwd: string): string | null {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const text = textOf(join(folder, '.python-version'));
    if (text !== null) return text;
    if (folder === dirname(folder)) return null;
  }
}

/** The environment's folder, and where it has its packages. */
export interface PythonEnvironment {
  /** `venv`: made by venv or uv; `conda`; `system`: the interpreter's own. */
  readonly kind: 'venv' | 'conda' | 'system';
  readonly prefix: string;
  readonly folders: readonly string[];
}

/** The environment of an interpreter that is called by this path, as `site` would find it. */
export function pythonEnvironment(program: string): PythonEnvironment {
  // The link itself counts: an environment's interpreter is one to the interpreter that it was made with.
  const own = dirname(dirname(program));
  const venv = textOf(join(own, 'pyvenv.cfg'));
  const base = dirname(dirname(realOf(program)));
  if (venv !== null) {
    const sharesBase = /^include-system-site-packages\s*=\s*true\s*$/m.test(venv);
    return {
      kind: 'venv',
      prefix: own,
      folders: [...packageFolders(own), ...(sharesBase ? packageFolders(base) : [])],
    };
  }
  const isConda = entriesOf(join(base, 'conda-meta')).length > 0;
  return {
    kind: isConda ? 'conda' : 'system',
    prefix: base,
    // Debian's interpreter in /usr has what pip installs in /usr/local.
    folders: [
      ...packageFolders(base === '/usr' ? '/usr/local' : base),
      ...(base === '/usr' ? packageFolders(base) : []),
    ],
  };
}

function packageFolders(prefix: string): readonly string[] {
  return ['lib', 'lib64'].flatMap((lib) =>
    entriesOf(join(prefix, lib))
      .filter((name) => VERSION_FOLDER.test(name))
      .flatMap((name) =>
        ['site-packages', 'dist-packages'].map((folder) => join(prefix, lib, name, folder)),
      ),
  );
}

/** Those of `names` (normalized) that are there; the folder that comes first counts, as in an import. */
export function packagesIn(
  folders: readonly string[],
  names: ReadonlySet<string>,
): readonly PythonPackage[] {
  const found = new Map<string, PythonPackage>();
  for (const folder of folders) {
    for (const entry of entriesOf(folder).slice(0, ENTRIES_LIMIT)) {
      const [, written = '', version = ''] = METADATA.exec(entry) ?? [];
      const name = written.toLowerCase().replaceAll(/[-_.]+/g, '_');
      if (names.has(name) && !found.has(name)) found.set(name, { name, version });
    }
  }
  return [...found.values()];
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function textOf(file: string): string | null {
  try {
    return readBeginSync(file, 4096).toString('utf8');
  } catch {
    return null;
  }
}

function realOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
