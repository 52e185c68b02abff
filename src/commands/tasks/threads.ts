import { readlinkSync } from 'node:fs';
import { readTcpSockets } from '../../../collectors/process/tcp-table.ts';
import { listThreads } from '../../../collectors/python/locks/thread-list.ts';
import type { PythonReader } from '../../../collectors/python/reader.ts';
import { threadName } from '../../../collectors/sampler/thread-name.ts';
import type { ThreadsLook } from '../../core/threads.ts';

/** The threads of a process with the other sides of their sockets. */
export function lookAtThreads(reader: PythonReader): ThreadsLook {
  const { pid } = reader;
  const { threads, knowsLocks } = listThreads(reader, (tid) => threadName(pid, tid));
  return {
    knowsLocks,
    threads: threads.map(({ fd, ...thread }) => ({ ...thread, peer: peerOf(pid, fd) })),
  };
}

/** What a descriptor leads to: `127.0.0.1:5432`, `/var/log/app.log`; null where that cannot be told. */
function peerOf(pid: number, fd: number | null): string | null {
  if (fd === null) return null;
  let target: string;
  try {
    target = readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return null;
  }
  const inode = Number(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? 0);
  if (inode === 0) return target;
  const socket = readTcpSockets(pid)?.get(inode);
  if (socket === undefined) return 'a socket';
  return socket.peer === '' ? 'a connection' : socket.peer;
}
