import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { cacheFolder, keptFolder } from './environments.ts';
import { type Listener, runHeard } from './set-up-progress.ts';

/*
 * Programs that a few tests need beside Node and Python. One on the PATH is taken as it is. In a full run (.ci/run) one that is not
 * there is unpacked from Debian's packages into the cache, and a test fails when that cannot be done: a missing *right* leaves a test
 * out by name, a missing program does not. `npm test` alone runs anywhere and installs none of this.
 */

const INSTALL_TIMEOUT_MS = 300_000;

/** Whether this is .ci/run, on a machine that has or may install everything. */
export const FULL: boolean = process.env['TRACEWRIGHT_FULL'] === '1';

/**
 * What each program is unpacked from, besides what every Debian 12 has. Pinned to the version of the program; Debian withdraws older
 * builds of the same version as it mends them, so the build is not.
 */
const PACKAGES = {
  bash: ['bash=5.2.15-2*'],
  'eu-stack': ['elfutils=0.188-*', 'libasm1=0.188-*', 'libdw1=0.188-*', 'libelf1=0.188-*'],
  fish: ['fish=3.6.0-3.1*', 'fish-common=3.6.0-3.1*', 'libpcre2-32-0=10.42-1*'],
  perf: [
    'linux-perf=6.1.*',
    'libbabeltrace1=1.5.11-*',
    'libdw1=0.188-*',
    'libelf1=0.188-*',
    'libnuma1=2.0.16-*',
    'libopencsd1=1.3.3-*',
    'libslang2=2.3.3-*',
    'libunwind8=1.6.2-*',
    'libperl5.36=5.36.0-*',
    'perl-modules-5.36=5.36.0-*',
    'libgdbm6=1.23-*',
    'libgdbm-compat4=1.23-*',
    'libpython3.11=3.11.2-*',
    'libpython3.11-stdlib=3.11.2-*',
    'libpython3.11-minimal=3.11.2-*',
    'libglib2.0-0=2.74.6-*',
    'libpcre2-8-0=10.42-1*',
  ],
  strace: ['strace=6.1-*', 'libunwind8=1.6.2-*'],
  sudo: ['sudo=1.9.13p3-1*', 'libaudit1=1:3.0.9-*', 'libselinux1=3.4-*'],
  zsh: ['zsh=5.9-4*', 'zsh-common=5.9-4*', 'libcap2=1:2.66-4*'],
} as const;
export type ProgramName = keyof typeof PACKAGES;

/** A program that tests run. */
export interface Program {
  /** False where a test of it is left out: it is not on the PATH, and nothing is installed because this is no full run. */
  readonly isWanted: boolean;
  /** Its path, or an error that names it and says why it is not there. */
  path(): string;
}

/** Looks for a program and, in a full run, installs one that is missing. */
export async function program(name: ProgramName): Promise<Program> {
  const found = onPath(name);
  if (found !== null) return { isWanted: true, path: () => found };
  if (!FULL) return { isWanted: false, path: () => fail(name, 'it is not on the PATH') };
  try {
    const installed = await install(name);
    return { isWanted: true, path: () => installed };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { isWanted: true, path: () => fail(name, why) };
  }
}

function fail(name: string, why: string): never {
  throw new Error(
    `${name} is needed and not here: ${why.trim()}\nInstall ${name}, so that it is on the PATH.`,
  );
}

function onPath(name: string): string | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not in this one
    }
  }
  return null;
}

/**
 * Unpacks the packages of a program into the cache, without root, and gives the path of a script that runs it. Debian's programs look for
 * their parts below /usr and /etc, so the script lays the unpacked files over these for this program alone, in a mount namespace of its
 * own (and of a user namespace where it is not root's): the machine stays as it is.
 */
export async function install(name: ProgramName): Promise<string> {
  const packages = PACKAGES[name];
  const hash = createHash('sha256').update(packages.join('\n')).digest('hex').slice(0, 12);
  const setUp = { what: `${name}, from Debian's packages`, cost: '30 to 120 MB' };
  const folder = await keptFolder(`debian-${name}-${hash}`, setUp, async (making, listen) => {
    await download(making, packages, listen);
    await unpack(making, listen);
    writeScript(making, name, join(cacheFolder(), `debian-${name}-${hash}`));
  });
  return join(folder, 'bin', name);
}

/** By apt, with the machine's own package lists; where these are missing or old, with lists of our own. */
async function download(
  folder: string,
  packages: readonly string[],
  listen: Listener,
): Promise<void> {
  const lists = join(folder, 'lists');
  const own = [
    `-oDir::State::Lists=${lists}`,
    `-oDir::Cache=${join(folder, 'cache')}`,
    '-oAPT::Sandbox::User=',
    '-oDebug::NoLocking=1',
  ];
  const apt = (options: readonly string[], ...args: readonly string[]) =>
    runHeard('apt-get', ['-q', ...options, ...args], {
      cwd: folder,
      timeout: INSTALL_TIMEOUT_MS,
      listen,
    });
  try {
    await apt([], 'download', ...packages);
  } catch {
    mkdirSync(join(lists, 'partial'), { recursive: true });
    mkdirSync(join(folder, 'cache', 'archives', 'partial'), { recursive: true });
    await apt(own, 'update');
    await apt(own, 'download', ...packages);
  }
}

async function unpack(folder: string, listen: Listener): Promise<void> {
  const root = join(folder, 'root');
  // Packages from before the merge of /bin into /usr/bin: their files end up below usr all the same.
  for (const merged of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', merged), { recursive: true });
    symlinkSync(join('usr', merged), join(root, merged));
  }
  const files = readdirSync(folder).filter((one) => one.endsWith('.deb'));
  const each =
    'for one; do dpkg-deb --fsys-tarfile "$one" | tar -x --keep-directory-symlink -C root || exit; done';
  const options = { cwd: folder, timeout: INSTALL_TIMEOUT_MS, listen };
  await runHeard('sh', ['-c', each, 'sh', ...files], options);
}

function writeScript(folder: string, name: string, final: string): void {
  const root = join(final, 'root');
  if (/[:,\\' ]/.test(root)) throw new Error(`overlayfs does not take the path ${root}`);
  const lay = [
    'for top in usr etc; do',
    '  [ ! -d "$0/$top" ] || mount -t overlay overlay -o "lowerdir=$0/$top:/$top" "/$top" || exit 126',
    'done',
    'exec "$@"',
  ].join('\n');
  const script = `#!/bin/sh
# ${name} out of the cache: its files are laid over the machine's for this process alone.
flags=
[ "$(id -u)" = 0 ] || flags='--user --map-root-user'
exec unshare --mount $flags sh -c '${lay}' '${root}' '/usr/bin/${name}' "$@"
`;
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin', name), script, { mode: 0o755 });
}

/**
 * Whether something can be done here, found out by doing it: namespaces and capabilities are rights that a container may withhold, and
 * their tests are left out by name. A program that is missing in a full run is an error instead.
 */
export function canRun(...words: readonly string[]): boolean {
  const [command = 'true', ...args] = words;
  const { status, error } = spawnSync(command, args, { stdio: 'ignore' });
  // What a shell, unshare and setpriv end with when what they were to run is not there.
  const isMissing =
    (error !== undefined && 'code' in error && error.code === 'ENOENT') || status === 127;
  if (isMissing && FULL) fail(words.join(' '), 'a program of this command is not on the PATH');
  return status === 0;
}
