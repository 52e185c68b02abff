import { type Dir, opendirSync, readlinkSync } from 'node:fs';
import { KeptFile } from './proc-kept-file.ts';

/** Which files the processes of this machine are writing, as far as this user may see. */

/** O_WRONLY and O_RDWR of the flags in /proc/<pid>/fdinfo, an octal number. */
const WRITING = 0o3;
/** Position and flags stand first; what a process watches or has locked follows, at any length. */
const INFO_BYTES = 256;
/** The least numbers of each process, 3 µs each: a recording is opened before connections are. */
const DESCRIPTORS_LIMIT = 16_384;

/** Absolute paths of files that are open for writing, of those that `isMeant` accepts; other users' processes show theirs to root only. */
export function filesBeingWritten(isMeant: (path: string) => boolean): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const pid of entries('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    for (const fd of entries(`/proc/${pid}/fd`, DESCRIPTORS_LIMIT)) {
      try {
        const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
        if (isMeant(path) && isWriting(`/proc/${pid}/fdinfo/${fd}`)) paths.add(path);
      } catch {
        // It was closed, or its process ended, meanwhile.
      }
    }
  }
  return paths;
}

function isWriting(info: string): boolean {
  const file = KeptFile.open(info, INFO_BYTES);
  const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(file?.text() ?? '') ?? [];
  file?.close();
  return (Number.parseInt(flags, 8) & WRITING) !== 0;
}

/** The first `limit` names in a folder of /proc; none where it may not be read. */
function* entries(folder: string, limit: number = Number.POSITIVE_INFINITY): Generator<string> {
  let opened: Dir;
  try {
    opened = opendirSync(folder, { bufferSize: 256 });
  } catch {
    return;
  }
  try {
    for (let count = 0; count < limit; count++) {
      const entry = opened.readSync();
      if (entry === null) return;
      yield entry.name;
    }
  } catch {
    // Its process ended meanwhile.
  } finally {
    opened.closeSync();
  }
}
