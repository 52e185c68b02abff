import { suspendedAt } from '../core/tasks.ts';
import type { ThreadsLook, ThreadView } from '../core/threads.ts';
import type { Frame } from '../core/types.ts';
import { clipEnd, clipStart, outside } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';
import type { TasksOf } from './tasks.ts';

/** What `trace tasks --threads` says; pure. */

/** The threads of one process. */
export interface ThreadsOf {
  readonly process: TasksOf['process'];
  readonly look: ThreadsLook;
}

/** Threads alike that are shown each; the others are counted. */
const ALIKE_SHOWN = 3;
const SHOWN = 200;
const NAME_WIDTH = 48;
/** The end of a path says more than its beginning. */
const PATH_WIDTH = 36;
const HOLDERS_SHOWN = 3;

/** How many threads there are, and who has the interpreter's lock, in a line. */
export function threadsLine({ process, look }: ThreadsOf): string {
  const { pid, title, version } = process;
  const { threads } = look;
  const holder = threads.find(({ hasGil }) => hasGil);
  const count = threads.length === 1 ? '1 thread' : `${threads.length} threads`;
  const whose = `${pid} ${clipEnd(outside(title, 200), NAME_WIDTH)}, CPython ${outside(version, 20)}`;
  const gil = holder === undefined ? 'nobody has the GIL' : `${name(holder.name)} has the GIL`;
  return `${whose}: ${count}, ${gil}`;
}

export function renderThreads({ process, look }: ThreadsOf, surface: Surface): string {
  const page = new Page(surface);
  const { threads, knowsLocks } = look;
  page.paragraph(page.style.bold(threadsLine({ process, look })));
  page.gap();
  const groups = alike(threads);
  for (const group of groups.slice(0, SHOWN)) {
    for (const thread of group.slice(0, ALIKE_SHOWN)) {
      page.row(`${page.style.bold(name(thread.name))}  ${page.style.dim(String(thread.tid))}`);
      page.paragraph(doing(thread) + placeText(suspendedAt(thread.frames)), { first: 4, rest: 6 });
    }
    const left = group.length - ALIKE_SHOWN;
    if (left > 0) page.row(page.style.dim(`and ${left} more like these`));
  }
  for (const names of cycles(threads)) {
    page.gap();
    const ring = [...names, ...names.slice(0, 1)].map(name).join(' → ');
    page.paragraph(`${ring}: each waits for the next. Unless one has a time-out, a deadlock.`);
  }
  if (groups.length > SHOWN)
    page.row(page.style.dim(`and ${groups.length - SHOWN} kinds more (--json)`));
  if (!knowsLocks && threads.some(({ wait }) => wait === 'lock')) {
    page.gap();
    page.paragraph('Which lock a thread waits for cannot be told of this release of Python.');
  }
  return page.toString();
}

/**
 * Threads that wait for each other's locks in a ring, each ring once. Where two threads have one name,
 * it is not known which of them has the lock, and nothing is said.
 */
export function cycles(threads: readonly ThreadView[]): readonly (readonly string[])[] {
  const unique = new Map<string, ThreadView | null>();
  for (const thread of threads) unique.set(thread.name, unique.has(thread.name) ? null : thread);
  const next = (thread: ThreadView): ThreadView | null => {
    const [holder, another] = thread.holders;
    if (thread.wait !== 'lock' || holder === undefined || another !== undefined) return null;
    return unique.get(holder) ?? null;
  };
  const found: string[][] = [];
  const done = new Set<ThreadView>();
  for (const first of threads) {
    const path: ThreadView[] = [];
    let one: ThreadView | null = first;
    while (one !== null && !done.has(one)) {
      done.add(one);
      path.push(one);
      one = next(one);
    }
    const at = one === null ? -1 : path.indexOf(one);
    if (at >= 0) found.push(path.slice(at).map((each) => each.name));
  }
  return found;
}

/** Threads that do the same in one place together, in the order of the first of each. */
function alike(threads: readonly ThreadView[]): readonly (readonly ThreadView[])[] {
  const groups = new Map<string, ThreadView[]>();
  for (const thread of threads) {
    const place = suspendedAt(thread.frames);
    const key = JSON.stringify([doing(thread), place?.function, place?.file, place?.line]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [thread]);
    else group.push(thread);
  }
  return [...groups.values()];
}

function doing({ wait, hasGil, on, holders, peer, frames }: ThreadView): string {
  const whose = holders.slice(0, HOLDERS_SHOWN).map(name).join(', ');
  const has = whose === '' ? '' : `, which ${whose} has`;
  switch (wait) {
    case 'running':
      return frames.length === 0 ? 'runs no Python code' : hasGil ? 'runs, with the GIL' : 'runs';
    case 'gil':
      return `waits for the GIL${has}`;
    case 'lock':
      return on === null
        ? 'waits for a lock or a signal'
        : `waits for ${on.kind} ${outside(on.label, 60)}${has}`;
    case 'sleep':
      return 'sleeps';
    case 'poll':
      return 'waits for any of its descriptors';
    case 'io':
      return peer === null ? 'waits for I/O' : `waits for ${outside(peer, 120)}`;
    case 'child':
      return 'waits for a child process';
    case 'other':
      return 'waits in the kernel';
    default:
      return wait satisfies never;
  }
}

function name(text: string): string {
  return clipEnd(outside(text, 200), NAME_WIDTH);
}

function placeText(place: Frame | null): string {
  if (place === null) return '';
  const at = place.line === null ? '' : `:${place.line}`;
  const file = clipStart(outside(place.file, 400), PATH_WIDTH);
  return `, in ${clipEnd(outside(place.function, 200), NAME_WIDTH)} (${file}${at})`;
}

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;

/** The threads as one JSON document (docs/schema/threads.schema.json). */
export function renderThreadsJson({ process, look }: ThreadsOf, toolVersion: string): string {
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: 'tasks',
    pid: process.pid,
    title: outside(process.title, 400),
    runtime_version: outside(process.version, 40),
    knows_locks: look.knowsLocks,
    threads: look.threads.map((thread) => ({
      tid: thread.tid,
      name: outside(thread.name, 200),
      wait: thread.wait,
      has_gil: thread.hasGil,
      on:
        thread.on === null
          ? null
          : { kind: outside(thread.on.kind, 40), label: outside(thread.on.label, 200) },
      holders: thread.holders.map((one) => outside(one, 200)),
      peer: thread.peer === null ? null : outside(thread.peer, 400),
      frames: thread.frames.map(({ function: called, file, line }) => ({
        function: outside(called, 400),
        file: outside(file, 4096),
        line,
      })),
    })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
