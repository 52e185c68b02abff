import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Which files the processes of this machine are writing, as far as this user may see. */

/** O_WRONLY and O_RDWR of the flags in /proc/<pid>/fdinfo, an octal number. */
const WRITING = 0o3;

/** Absolute paths of files that are open for writing, of those that `isMeant` accepts; other users' processes show theirs to root only. */
export function filesBeingWritten(isMeant: (path: string) => boolean): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const pid of entries('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const fd of entries(`/proc/${pid}/fd`)) {
      try {
        const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
        if (!isMeant(path)) continue;
        const [, flags = '0'] =
          /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')) ?? [];
        if ((Number.parseInt(flags, 8) & WRITING) !== 0) paths.add(path);
      } catch {
        // It was closed, or its process ended, meanwhile.
      }
    }
  }
  return paths;
}

function entries(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
