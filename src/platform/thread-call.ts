import { readProc } from './proc.ts';
import { parseSchedstat, parseSyscall } from './proc-parse.ts';

/** What one thread is doing in the kernel, with what it waits on: from `/proc/<pid>/task/<tid>`. */

export type ThreadCallKind = 'running' | 'futex' | 'sleep' | 'poll' | 'io' | 'child' | 'other';

export interface ThreadCall {
  readonly kind: ThreadCallKind;
  /** Of a futex, the address it waits on; 0 for others. */
  readonly futex: number;
  /** Whether it ends by itself at some time. */
  readonly isTimed: boolean;
  /** Of I/O: the descriptor; null for others. */
  readonly fd: number | null;
  /** CPU time so far in nanoseconds: the same twice, the thread has not run in between. Null where the kernel does not count. */
  readonly cpuNs: number | null;
}

/** By number on x86_64 (arch/x86/entry/syscalls/syscall_64.tbl). */
const KINDS: Readonly<Record<number, ThreadCallKind>> = {
  0: 'io', // read
  1: 'io', // write
  7: 'poll',
  17: 'io', // pread64
  18: 'io', // pwrite64
  19: 'io', // readv
  20: 'io', // writev
  23: 'poll', // select
  35: 'sleep', // nanosleep
  42: 'io', // connect
  43: 'io', // accept
  44: 'io', // sendto
  45: 'io', // recvfrom
  46: 'io', // sendmsg
  47: 'io', // recvmsg
  61: 'child', // wait4
  72: 'io', // fcntl, of a lock on a file
  73: 'io', // flock
  74: 'io', // fsync
  75: 'io', // fdatasync
  202: 'futex',
  230: 'sleep', // clock_nanosleep
  232: 'poll', // epoll_wait
  247: 'child', // waitid
  270: 'poll', // pselect6
  271: 'poll', // ppoll
  281: 'poll', // epoll_pwait
  288: 'io', // accept4
  299: 'io', // recvmmsg
  441: 'poll', // epoll_pwait2
};
const PSELECT = 270;
const SELECT = 23;

/** Null where it may not be read, the thread is gone, or the machine numbers its calls otherwise. */
export function threadCall(pid: number, tid: number): ThreadCall | null {
  const folder = `/proc/${pid}/task/${tid}`;
  const text = process.arch === 'x64' ? readProc(`${folder}/syscall`) : null;
  const call = text === null ? null : parseSyscall(text);
  if (call === null) return null;
  const cpuNs = parseSchedstat(readProc(`${folder}/schedstat`) ?? '')?.onCpuNs ?? null;
  if (call.kind !== 'syscall')
    return {
      kind: call.kind === 'running' ? 'running' : 'other',
      futex: 0,
      isTimed: true,
      fd: null,
      cpuNs,
    };
  const kind = KINDS[call.number] ?? 'other';
  const argument = (i: number): number => call.arguments[i] ?? 0;
  switch (kind) {
    case 'futex':
      // The fourth argument is the time-out, relative or absolute; NULL waits for ever.
      return { kind, futex: argument(0), isTimed: argument(3) !== 0, fd: null, cpuNs };
    case 'io':
      return { kind, futex: 0, isTimed: false, fd: argument(0), cpuNs };
    case 'poll': {
      const sleeps = (call.number === SELECT || call.number === PSELECT) && argument(0) === 0;
      return { kind: sleeps ? 'sleep' : kind, futex: 0, isTimed: true, fd: null, cpuNs };
    }
    case 'sleep':
    case 'child':
    case 'running':
    case 'other':
      return { kind, futex: 0, isTimed: kind === 'sleep', fd: null, cpuNs };
    default:
      return kind satisfies never;
  }
}
