import { closeSync, readlinkSync, statfsSync } from 'node:fs';
import type { MemoryMap } from './memory.ts';
import { openRegular } from './regular-file.ts';

const DELETED = ' (deleted)';

/**
 * File systems whose files have another device by stat(2) than in `maps`: the one of their part
 * (Btrfs gives each subvolume one), or the one of the layer that holds them (overlayfs, below
 * containers).
 */
const OTHER_DEVICES: ReadonlySet<number> = new Set([0x9123_683e, 0x794c_7630]);

/**
 * A path under which the file behind a mapping can be opened from here. `maps` names it as its
 * mount namespace does, which is not always as the process itself does (a chroot) or as we do (a
 * container), and another file may have the name by now (an upgrade, or somebody who wants it taken
 * for the one that is mapped): device and inode decide, asked of the open file. Where none fits,
 * the name within the process's own root: opening it says why not. What has the name may change
 * again: it is to be opened by {@link openRegular}. Never throws.
 */
export function mappedFile(pid: number, map: MemoryMap): string {
  const named = `/proc/${pid}/root${map.path}`;
  const executable = `/proc/${pid}/exe`;
  if (isFile(named, map)) return named;
  if (linkOf(executable) === map.path) return executable;
  const root = linkOf(`/proc/${pid}/root`);
  if (root !== null && root !== '/' && map.path.startsWith(`${root}/`)) {
    const below = `/proc/${pid}/root${map.path.slice(root.length)}`;
    if (isFile(below, map)) return below;
  }
  // The kernel's link to the mapped file itself: certain, but it needs CAP_CHECKPOINT_RESTORE.
  const link = `/proc/${pid}/map_files/${map.start.toString(16)}-${map.end.toString(16)}`;
  return isFile(link) ? link : named;
}

/** A path of `maps` or of a link without the kernel's note that the file was removed since. */
export function withoutDeleted(path: string): string {
  return path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path;
}

/**
 * Whether a regular file is there and may be read; with `map`, whether it is the one that is
 * mapped.
 */
function isFile(path: string, map?: MemoryMap): boolean {
  try {
    const { fd, stats } = openRegular(path);
    try {
      if (map === undefined) return true;
      const isSameDevice = stats.dev === map.device || OTHER_DEVICES.has(fileSystemOf(fd));
      return stats.ino === map.inode && isSameDevice;
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

/** The magic number of statfs(2). */
function fileSystemOf(fd: number): number {
  return statfsSync(`/proc/self/fd/${fd}`).type;
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
