import { cgroupFolders } from './cgroup.ts';
import { KeptFile } from './proc-kept-file.ts';

/**
 * Whether the control group of a process, or one above, is frozen (`docker pause`): the process
 * does not run, and its state is that of a sleeper.
 */

/** The process may be put into another group, or a tree be mounted, while it runs. */
const READINGS_BETWEEN_LOOKS = 60;
const VERSIONS = [1, 2] as const;

interface Group {
  readonly version: 1 | 2;
  readonly file: KeptFile;
}

export class FreezerReader {
  readonly #pid: number;
  readonly #root: string;
  /** Where both versions are mounted, a process is in a group of each, and either may be frozen. */
  #groups: readonly Group[] = [];
  #readings = 0;

  /** `root` is put before every path, for tests. */
  constructor(pid: number, root = '') {
    this.#pid = pid;
    this.#root = root;
    this.#look();
  }

  isFrozen(): boolean {
    if (++this.#readings % READINGS_BETWEEN_LOOKS === 0) this.#look();
    // What a group says counts those above it in.
    return this.#groups.some(({ version, file }) =>
      version === 2 ? /^frozen 1$/m.test(file.text() ?? '') : file.text()?.trim() === 'FROZEN',
    );
  }

  close(): void {
    for (const { file } of this.#groups) file.close();
    this.#groups = [];
  }

  /** A process that has ended has no groups any more: what was found before stays. */
  #look(): void {
    const found = VERSIONS.flatMap((version): readonly Group[] => {
      const folder = cgroupFolders(this.#pid, 'freezer', this.#root, version)?.groups[0];
      const name = version === 2 ? 'cgroup.events' : 'freezer.state';
      const file = folder === undefined ? null : KeptFile.open(`${folder}/${name}`);
      return file === null ? [] : [{ version, file }];
    });
    if (found.length === 0) return;
    this.close();
    this.#groups = found;
  }
}

/** Asked once. Never throws. */
export function isFrozen(pid: number): boolean {
  const reader = new FreezerReader(pid);
  const answer = reader.isFrozen();
  reader.close();
  return answer;
}
