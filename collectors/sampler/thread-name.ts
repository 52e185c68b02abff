import { readProc } from '../../src/platform/proc.ts';

/** The kernel's name of a thread (15 bytes at most, set by the target: untrusted); `main` for the main thread, whose name is the program's. */
export function threadName(pid: number, tid: number): string {
  if (tid === pid) return 'main';
  return (readProc(`/proc/${pid}/task/${tid}/comm`) ?? String(tid)).trim();
}
