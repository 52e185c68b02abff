import { readProc } from '../../src/platform/proc.ts';

/** The kernel's name of a thread (15 bytes at most, set by the target: untrusted); `main` for the main thread, whose name is the program's. */
export function threadName(pid: number, tid: number): string {
  if (tid === pid) return 'main';
  // CPython before 3.14 leaves all its threads the program's name: the id tells them apart.
  return `${(readProc(`/proc/${pid}/task/${tid}/comm`) ?? '').trim()} (${tid})`.trim();
}
