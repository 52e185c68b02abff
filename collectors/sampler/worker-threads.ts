import { parseSyscall } from '../../src/platform/proc-parse.ts';
import { readProc, threadIds } from '../../src/platform/proc.ts';

/** epoll_wait, epoll_pwait, epoll_pwait2 on x86_64. */
const EPOLL_CALLS: ReadonlySet<number> = new Set([232, 281, 441]);
/** Threads looked at in one go; a Node process has about ten of its own and one a worker. */
const LOOK_LIMIT = 64;

/** Threads other than the main one that are parked in an epoll of their own at this moment: each may run an event loop. */
export function threadsInEpoll(pid: number): readonly number[] {
  return threadIds(pid)
    .filter((tid) => tid !== pid)
    .slice(0, LOOK_LIMIT)
    .filter((tid) => {
      const call = parseSyscall(readProc(`/proc/${pid}/task/${tid}/syscall`) ?? '');
      return call?.kind === 'syscall' && EPOLL_CALLS.has(call.number);
    });
}
