import { listProcesses, readCommandLine, readProc, readStat, threadIds } from './proc.ts';
import { hasEnded, type ProcStat } from './proc-parse.ts';
import { isTwin, type Role, type RoleEvidence, roleOf } from './roles.ts';

/** A process and everything it started, as far as that still lives. */

/** One process of a tree. */
export interface TreeMember {
  readonly stat: ProcStat;
  /** How far below the root; 0 is the root itself. */
  readonly depth: number;
}

/** Threads whose lists of children are read one by one (5 µs each); beyond it, going through all processes is cheaper. */
const THREADS_ASKED = 64;
/** Deeper trees are not servers. */
const DEPTH_LIMIT = 16;
/** Members looked at in one go: a fork bomb must not hold us up. */
const MEMBER_LIMIT = 1024;

/** The living descendants of a process, nearest first, without the process itself and without ours. */
export function descendantsOf(pid: number): readonly TreeMember[] {
  const childrenOf = childFinder();
  const found: TreeMember[] = [];
  const seen = new Set([pid, process.pid]);
  let level = [pid];
  for (let depth = 1; depth <= DEPTH_LIMIT && level.length > 0; depth++) {
    const below: number[] = [];
    for (const child of level.flatMap(childrenOf)) {
      if (seen.has(child) || found.length >= MEMBER_LIMIT) continue;
      seen.add(child);
      const stat = readStat(child);
      if (stat === null || hasEnded(stat)) continue;
      found.push({ stat, depth });
      below.push(child);
    }
    level = below;
  }
  return found;
}

/** The roles of a root and its descendants, by pid; null where nothing tells. */
export function rolesOf(
  root: number,
  members: readonly TreeMember[],
): ReadonlyMap<number, Role | null> {
  const commandLines = new Map(
    [root, ...members.map(({ stat }) => stat.pid)].map((pid) => [pid, readCommandLine(pid)]),
  );
  const parents = new Map(members.map(({ stat }) => [stat.pid, stat.parent]));
  const twins = new Set(
    members
      .filter(({ stat }) =>
        isTwin(commandLines.get(stat.pid) ?? [], commandLines.get(stat.parent) ?? []),
      )
      .map(({ stat }) => stat.parent),
  );
  const evidenceOf = (pid: number): RoleEvidence | null => {
    const commandLine = commandLines.get(pid);
    if (commandLine === undefined) return null;
    const parent = parents.get(pid);
    return {
      commandLine,
      parent: parent === undefined ? null : evidenceOf(parent),
      hasTwins: twins.has(pid),
    };
  };
  return new Map(
    [...commandLines.keys()].map((pid) => {
      const evidence = evidenceOf(pid);
      return [pid, evidence === null ? null : roleOf(evidence)];
    }),
  );
}

/** Children by the kernel's own lists where it keeps them (CONFIG_PROC_CHILDREN), else by going through all processes, once. */
function childFinder(): (pid: number) => readonly number[] {
  let everyone: ReadonlyMap<number, readonly number[]> | null = null;
  return (pid) => {
    const listed = everyone === null ? listedChildren(pid) : null;
    if (listed !== null) return listed;
    everyone ??= childrenByParent();
    return everyone.get(pid) ?? [];
  };
}

/** Null where the kernel keeps no lists, or there are too many threads to ask each. */
function listedChildren(pid: number): readonly number[] | null {
  const threads = threadIds(pid);
  if (threads.length > THREADS_ASKED) return null;
  const children: number[] = [];
  for (const tid of threads) {
    const text = readProc(`/proc/${pid}/task/${tid}/children`);
    // A thread that ended meanwhile has handed its children to another; the next look will find them there.
    if (text === null && tid === pid && threads.length > 0) return null;
    for (const child of (text ?? '').split(' ')) if (child !== '') children.push(Number(child));
  }
  return children;
}

function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const children = new Map<number, number[]>();
  for (const { pid, parent } of listProcesses()) {
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [pid]);
    else siblings.push(pid);
  }
  return children;
}
