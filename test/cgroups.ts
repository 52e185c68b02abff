import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';

/*
 * Control groups of this machine, for tests: a right that a container withholds, so their tests are left out by name where none can be
 * made. They are made below the group that the tests run in, so that its limits go on to hold.
 */

/** What a group allows. */
export interface Limits {
  /** Cores. */
  readonly cpu?: number;
  /** Bytes. */
  readonly memory?: number;
}

/** A group, in one folder a controller (version 1) or one (version 2). */
export interface Cgroup {
  readonly version: 1 | 2;
  readonly folders: readonly string[];
  /** A command that enters it and becomes what follows. */
  readonly enter: readonly string[];
  /** Puts a process into it. */
  admit(pid: number): void;
  /** Only once it is empty. */
  remove(): void;
}

const PERIOD_US = 100_000;
let made = 0;

/** A group with these limits; null where none can be made. */
export function makeCgroup(limits: Limits): Cgroup | null {
  const isNew = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const quota = String((limits.cpu ?? 0) * PERIOD_US);
  const bytes = String(limits.memory ?? 0);
  const settings: readonly (readonly [controller: string, file: string, value: string])[] = [
    ...(limits.cpu === undefined
      ? []
      : [
          isNew
            ? (['cpu', 'cpu.max', `${quota} ${PERIOD_US}`] as const)
            : (['cpu', 'cpu.cfs_quota_us', quota] as const),
        ]),
    ...(limits.memory === undefined
      ? []
      : [['memory', isNew ? 'memory.max' : 'memory.limit_in_bytes', bytes] as const]),
  ];
  const name = `tracewright-test-${process.pid}-${made++}`;
  const folders = new Set<string>();
  const remove = (): void => {
    for (const folder of folders) if (existsSync(folder)) rmdirSync(folder);
  };
  try {
    for (const [controller, file, value] of settings) {
      // The root of version 2: groups with processes of their own cannot share controllers out.
      const parent = isNew
        ? '/sys/fs/cgroup'
        : `/sys/fs/cgroup/${controller}${ownPath(controller)}`;
      const folder = `${parent}/${name}`;
      mkdirSync(folder, { recursive: true });
      folders.add(folder);
      writeFileSync(`${folder}/${file}`, value);
    }
  } catch {
    remove();
    return null;
  }
  const files = [...folders].map((folder) => `${folder}/cgroup.procs`);
  return {
    version: isNew ? 2 : 1,
    folders: [...folders],
    enter: [
      'sh',
      '-c',
      `${files.map((file) => `echo $$ > '${file}'`).join(' && ')} && exec "$@"`,
      'sh',
    ],
    admit: (pid) => {
      for (const file of files) writeFileSync(file, String(pid));
    },
    remove,
  };
}

/** Tried once when tests are collected, and taken back at once. */
export function canMakeCgroup(limits: Limits): boolean {
  const group = makeCgroup(limits);
  group?.remove();
  return group !== null;
}

/** Where we are in the tree of a controller of version 1; the root is empty. */
function ownPath(controller: string): string {
  const line = new RegExp(`^\\d+:(?:[^:\\n]*,)?${controller}(?:,[^:\\n]*)?:(.*)$`, 'm');
  const path = line.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/';
  return path === '/' ? '' : path;
}

/** A group that can be frozen. */
export interface Freezer {
  readonly version: 1 | 2;
  readonly folder: string;
  admit(pid: number): void;
  freeze(isFrozen: boolean): void;
  /** Only once it is empty. */
  remove(): void;
}

/** By version, what makes a group that can be frozen: of those versions of which this machine lets one be made. Both may be mounted. */
export const FREEZERS: readonly (readonly [version: 1 | 2, make: () => Freezer])[] = [
  freezerOf(1, `/sys/fs/cgroup/freezer${ownPath('freezer')}`, [
    'freezer.state',
    'FROZEN',
    'THAWED',
  ]),
  ...['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].map((parent) =>
    freezerOf(2, parent, ['cgroup.freeze', '1', '0']),
  ),
].flatMap((make) => {
  try {
    const group = make();
    group.freeze(false);
    group.remove();
    return [[group.version, make] as const];
  } catch {
    return [];
  }
});

function freezerOf(
  version: 1 | 2,
  parent: string,
  [file, frozen, thawed]: readonly [file: string, frozen: string, thawed: string],
): () => Freezer {
  return () => {
    const folder = `${parent}/tracewright-test-${process.pid}-${made++}`;
    mkdirSync(folder);
    const set = (name: string, value: string): void => {
      // Without it a plain file would be made where no control groups are mounted.
      if (!existsSync(`${folder}/${name}`)) {
        rmdirSync(folder);
        throw new Error(`${folder} is no control group that can be frozen`);
      }
      writeFileSync(`${folder}/${name}`, value);
    };
    return {
      version,
      folder,
      admit: (pid) => set('cgroup.procs', String(pid)),
      freeze: (isFrozen) => set(file, isFrozen ? frozen : thawed),
      remove: () => rmdirSync(folder),
    };
  };
}
