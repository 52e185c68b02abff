import { existsSync } from 'node:fs';
import { readProc } from './proc.ts';

/**
 * Where the control groups of a process can be read from here. Their path in `/proc/<pid>/cgroup` is relative to our own cgroup
 * namespace; a mount shows the part of the tree below its root. What our own mounts do not show, those of the process may: a container
 * beside ours has its group mounted for itself (`docker run --pid=container:…`, `kubectl debug --target=…`).
 */

type CgroupController = 'cpu' | 'memory' | 'freezer';

/** The groups of a process for one controller. */
export interface CgroupFolders {
  /** 1 has a tree for each controller, 2 one for all. */
  readonly version: 1 | 2;
  /** As `/proc/<pid>/cgroup` names it. Untrusted. */
  readonly path: string;
  /** Folders to read in: its own group first, then those above as far as they show. Any of them may be the one that limits. */
  readonly groups: readonly [string, ...string[]];
}

/** A file that every group has that may limit or freeze, by version and controller; of version 2 the machine's root has none of them. */
const TELLING: Readonly<Record<CgroupController, readonly [string, string]>> = {
  cpu: ['cpu.cfs_quota_us', 'cpu.max'],
  memory: ['memory.limit_in_bytes', 'memory.current'],
  // Of version 2 no controller, but in each group below the root.
  freezer: ['freezer.state', 'cgroup.events'],
};

/**
 * Null where they cannot be seen, or there are none. `root` is put before every path: tests give a folder with captured files. `only`: of this
 * version.
 */
export function cgroupFolders(
  pid: number,
  controller: CgroupController,
  root = '',
  only: 1 | 2 | null = null,
): CgroupFolders | null {
  for (const { version, path } of membershipsOf(pid, controller, root)) {
    if (only !== null && version !== only) continue;
    const telling = TELLING[controller][version - 1] ?? '';
    for (const prefix of [root, `${root}/proc/${pid}/root`]) {
      const mounts = readProc(`${root}/proc/${prefix === root ? 'self' : pid}/mountinfo`) ?? '';
      for (const mount of cgroupMounts(mounts, version, controller)) {
        const below = pathBelow(path, mount.root);
        if (below === null) continue;
        const [first, ...above] = withAncestors(below)
          .map((group) => `${prefix}${mount.point}${group}`)
          .filter((folder) => existsSync(`${folder}/${telling}`));
        if (first !== undefined) return { version, path, groups: [first, ...above] };
      }
    }
  }
  return null;
}

interface Membership {
  readonly version: 1 | 2;
  readonly path: string;
}

/** Where controllers are shared out between both versions, one that has a tree of its own is not in the other. */
function membershipsOf(pid: number, controller: string, root: string): readonly Membership[] {
  const found: Membership[] = [];
  for (const line of (readProc(`${root}/proc/${pid}/cgroup`) ?? '').split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === '') continue;
    if (controllers.split(',').includes(controller)) found.unshift({ version: 1, path });
    else if (controllers === '') found.push({ version: 2, path });
  }
  return found;
}

interface Mount {
  /** What of the tree stands at the mount point, `/` for all of it. */
  readonly root: string;
  readonly point: string;
}

/** The mounts of a cgroup tree in a mountinfo (proc(5)): `36 35 0:32 /root /point rw - cgroup cgroup rw,memory`. */
function cgroupMounts(mountinfo: string, version: 1 | 2, controller: string): readonly Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root, point] = before.split(' ').map(unescaped);
    const [type, , options = ''] = after.split(' ');
    const isWanted =
      version === 2
        ? type === 'cgroup2'
        : type === 'cgroup' && options.split(',').includes(controller);
    return isWanted && root !== undefined && point !== undefined ? [{ root, point }] : [];
  });
}

/** Spaces and the like are written as `\040`. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

/** The rest of `path` below `root`, empty for the root itself; null when it lies elsewhere. */
function pathBelow(path: string, root: string): string | null {
  const rest = root === '/' ? path : path === root ? '' : path.slice(root.length);
  const isBelow = root === '/' || path === root || path.startsWith(`${root}/`);
  if (!isBelow || rest.split('/').includes('..')) return null;
  return rest === '/' ? '' : rest;
}

function withAncestors(path: string): readonly string[] {
  const groups: string[] = [];
  for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) groups.push(at);
  return [...groups, ''];
}
