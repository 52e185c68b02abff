import { listProcesses, readProc, readStatus } from './proc.ts';

/** A process in a pid namespace of its own has a pid in each: ours, and the one that its container knows it by. */

/** How a process is known where it lives. */
export interface InnerView {
  /** Its pid inside its own pid namespace, where that is another number. */
  readonly namespacePid: number | null;
  /** The container it runs in: a short id from its cgroup, or `pid namespace`; null when it shares ours. */
  readonly container: string | null;
}

/** `namespacePids` is the NSpid line of its status: one a nested namespace, ours first. */
export function innerViewOf(pid: number, namespacePids: readonly number[]): InnerView {
  const innermost = namespacePids.at(-1) ?? pid;
  return {
    namespacePid: innermost === pid ? null : innermost,
    container: containerOf(pid, namespacePids),
  };
}

/** Processes that have this pid within a container, by the pids they have here. */
export function pidsKnownInsideAs(inner: number): readonly number[] {
  return listProcesses().flatMap(({ pid }) => {
    const status = readStatus(pid);
    return status !== null && innerViewOf(pid, status.namespacePids).namespacePid === inner
      ? [pid]
      : [];
  });
}

/** A pid namespace of its own is the certain sign of a container; its id is in the cgroup path of every container engine. */
function containerOf(pid: number, namespacePids: readonly number[]): string | null {
  const own = readStatus(process.pid)?.namespacePids.length ?? 1;
  if (namespacePids.length <= own) return null;
  const id = /[0-9a-f]{64}/.exec(readProc(`/proc/${pid}/cgroup`) ?? '')?.[0];
  return id === undefined ? 'pid namespace' : id.slice(0, 12);
}
