import { epollDescriptor, parseSyscall } from '../../src/platform/proc-parse.ts';
import { readProc, threadIds } from '../../src/platform/proc.ts';

/** Threads looked at in one go; a Node process has about ten of its own and one a worker. */
const LOOK_LIMIT = 64;

/** Threads other than the main one that are parked in an epoll of their own at this moment: each may run an event loop. */
export function threadsInEpoll(pid: number): readonly number[] {
  return threadIds(pid)
    .filter((tid) => tid !== pid)
    .slice(0, LOOK_LIMIT)
    .filter((tid) => {
      const call = parseSyscall(readProc(`/proc/${pid}/task/${tid}/syscall`) ?? '');
      return epollDescriptor(call) !== null;
    });
}
