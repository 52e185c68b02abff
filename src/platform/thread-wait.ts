import { readProc } from './proc.ts';
import { parseSyscall } from './proc-parse.ts';

/** What a thread waits for, as far as the system call it is in tells. */
export type ThreadWait = 'running' | 'lock' | 'sleep' | 'message' | 'child' | 'other';

/** By number on x86_64 (arch/x86/entry/syscalls/syscall_64.tbl). */
const WAITS_X86_64: Readonly<Record<number, ThreadWait>> = {
  0: 'message', // read
  7: 'message', // poll
  19: 'message', // readv
  23: 'message', // select
  35: 'sleep', // nanosleep
  43: 'message', // accept
  45: 'message', // recvfrom
  47: 'message', // recvmsg
  61: 'child', // wait4
  202: 'lock', // futex
  230: 'sleep', // clock_nanosleep
  232: 'message', // epoll_wait
  247: 'child', // waitid
  270: 'message', // pselect6
  271: 'message', // ppoll
  281: 'message', // epoll_pwait
  288: 'message', // accept4
  299: 'message', // recvmmsg
  441: 'message', // epoll_pwait2
};

/** Null where that may not be read, the thread is gone, or the machine numbers its calls otherwise. */
export function threadWait(pid: number, tid: number): ThreadWait | null {
  const text = process.arch === 'x64' ? readProc(`/proc/${pid}/task/${tid}/syscall`) : null;
  const call = text === null ? null : parseSyscall(text);
  if (call === null) return null;
  if (call.kind === 'running') return 'running';
  return call.kind === 'syscall' ? (WAITS_X86_64[call.number] ?? 'other') : 'other';
}
