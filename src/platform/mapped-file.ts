import { readlinkSync, statSync } from 'node:fs';
import type { MemoryMap } from './memory.ts';

const DELETED = ' (deleted)';

/**
 * A path under which the file behind a mapping can be opened from here. `maps` names it as its mount namespace does, which is not always
 * as the process itself does (a chroot) or as we do (a container), and another file may have taken the name since (an upgrade): the inode
 * decides. Where none fits, the name within the process's own root: opening it says why not. Never throws.
 */
export function mappedFile(pid: number, map: MemoryMap): string {
  const named = `/proc/${pid}/root${map.path}`;
  const executable = `/proc/${pid}/exe`;
  if (isFile(named, map.inode)) return named;
  if (linkOf(executable) === map.path) return executable;
  const root = linkOf(`/proc/${pid}/root`);
  if (root !== null && root !== '/' && map.path.startsWith(`${root}/`)) {
    const below = `/proc/${pid}/root${map.path.slice(root.length)}`;
    if (isFile(below, map.inode)) return below;
  }
  // The kernel's link to the mapped file itself: certain, but it needs CAP_CHECKPOINT_RESTORE.
  const link = `/proc/${pid}/map_files/${map.start.toString(16)}-${map.end.toString(16)}`;
  return isFile(link) ? link : named;
}

/** A path of `maps` or of a link without the kernel's note that the file was removed since. */
export function withoutDeleted(path: string): string {
  return path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path;
}

/** Whether a file is there and may be asked for; with `inode`, whether it is that one. */
function isFile(path: string, inode?: number): boolean {
  try {
    const { ino } = statSync(path);
    return inode === undefined || ino === inode;
  } catch {
    return false;
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
