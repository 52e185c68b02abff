import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { canRun } from '../programs.ts';
import { type CliRun, startCli } from './cli.ts';

/** A root directory that holds one executable, the libraries it is linked with, a `/proc` of its own while something runs, and `/tmp`. */
export interface EmptyRoot {
  /** Where it is, seen from outside. */
  readonly folder: string;
  /** Starts `/trace` in it, in no environment but a PATH; as root, or as the user of this number. */
  start(args: readonly string[], uid?: number): CliRun;
  remove(): void;
}

/** Why no process can be started in another root here; null where one can. */
export function noRootReason(): string | null {
  if (process.getuid?.() !== 0) return 'only root may change the root directory';
  return canRun('unshare', '--mount', 'sh', '-c', 'chroot / true')
    ? null
    : 'no mount namespace can be made here';
}

/**
 * Runs in a mount namespace of its own: $0 is the root, $1 the program that `startCli` names, $2
 * the user. An empty root has no homes, so where state is kept has to be said.
 */
const ENTER = `mount --rbind /proc "$0/proc" && uid=$2 && shift 2 &&
exec env -i "PATH=$PATH" "XDG_STATE_HOME=/tmp/state-$uid" "$(command -v chroot)" "--userspec=$uid:$uid" "$0" /trace "$@"`;

export function makeEmptyRoot(executable: string): EmptyRoot {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-root-'));
  // Anybody's, as a root is.
  chmodSync(folder, 0o755);
  for (const name of ['proc', 'tmp']) mkdirSync(join(folder, name));
  chmodSync(join(folder, 'tmp'), 0o1777);
  copyFileSync(executable, join(folder, 'trace'));
  for (const library of librariesOf(executable)) {
    mkdirSync(join(folder, dirname(library)), { recursive: true });
    copyFileSync(library, join(folder, library));
  }
  return {
    folder,
    start: (args, uid = 0) =>
      startCli([String(uid), ...args], {
        command: ['unshare', '--mount', 'sh', '-c', ENTER, folder],
      }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The files that `ldd` names, the dynamic loader among them. */
function librariesOf(executable: string): readonly string[] {
  const listed = execFileSync('ldd', [executable], { encoding: 'utf8' });
  return [...listed.matchAll(/(?:=> |^\s*)(\/\S+)/gm)].map(([, path = '']) => path);
}
