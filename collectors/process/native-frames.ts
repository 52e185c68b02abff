import type { Frame } from '../../src/core/types.ts';
import { isRecord } from '../../src/core/record.ts';

/** What `py-spy dump --native --json` and `eu-stack` print, as stacks. Their text comes from the target: untrusted. */

/** A thread at one look. */
export interface NativeThread {
  readonly tid: number;
  /** The program's name for it, where the tool knows it. */
  readonly name: string | null;
  /** Innermost first. */
  readonly frames: readonly Frame[];
}

export interface NativeStacks {
  readonly threads: readonly NativeThread[];
  /** Files whose frames are native, not Python's. */
  readonly files: ReadonlySet<string>;
}

/** What a function is called whose library has no name for it; several such calls in a row are one. */
export const NO_SYMBOL = '(no symbol)';
const FRAMES = 512;
const NAME = 400;
const FILE = 1024;

/** Throws where it is something else. Python's frames stand in it already, in the place of the interpreter's own. */
export function parsePySpy(text: string): NativeStacks {
  const document: unknown = JSON.parse(text);
  if (!Array.isArray(document)) throw new TypeError('no list of threads');
  const files = new Set<string>();
  const threads: NativeThread[] = [];
  for (const thread of document.filter(isRecord)) {
    const { os_thread_id: tid, thread_name: name, frames } = thread;
    if (typeof tid !== 'number' || !Array.isArray(frames)) continue;
    const found = frames
      .filter(isRecord)
      .slice(0, FRAMES)
      .map((one) => pySpyFrame(one, files));
    threads.push({ tid, name: typeof name === 'string' ? name : null, frames: joined(found) });
  }
  return { threads, files };
}

function pySpyFrame(one: Readonly<Record<string, unknown>>, files: Set<string>): Frame {
  const text = (key: string, most: number): string =>
    typeof one[key] === 'string' ? one[key].slice(0, most) : '';
  const line = typeof one['line'] === 'number' && one['line'] > 0 ? one['line'] : null;
  const name = text('name', NAME);
  const file = text('filename', FILE);
  // Of Python's frames it names no module.
  if (typeof one['module'] !== 'string') return { function: name, file, line };
  files.add(file);
  return { function: nativeName(name), file, line };
}

/** `TID 4312:` */
const THREAD = /^TID (\d+):/;
/** `#0  0x00007f1e2 clock_nanosleep@@GLIBC_2.17 - /usr/lib/libc.so.6`; name and file may be missing, `- 1` stands behind an address that was called from. */
const CALL = /^#\d+\s+0x[0-9a-f]+(?:\s-\s1)?(?:\s+(.*))?$/;

/** What `eu-stack -m` prints. */
export function parseEuStack(text: string): NativeStacks {
  const files = new Set<string>();
  const stacks = new Map<number, Frame[]>();
  let frames: Frame[] = [];
  for (const row of text.split('\n')) {
    const thread = THREAD.exec(row);
    if (thread !== null) {
      frames = [];
      stacks.set(Number(thread[1]), frames);
      continue;
    }
    const call = CALL.exec(row.trimEnd());
    if (call === null || frames.length >= FRAMES) continue;
    const [name, file] = nameAndFile(call[1] ?? '');
    files.add(file);
    frames.push({ function: nativeName(name), file: file.slice(0, FILE), line: null });
  }
  const threads = [...stacks].map(([tid, all]) => ({ tid, name: null, frames: joined(all) }));
  return { threads, files };
}

/** The name of a C++ function may have ` - ` in it, a file begins with a slash or a bracket. */
function nameAndFile(text: string): readonly [string, string] {
  const [, name = text, file = ''] = /^(.*?)\s?- ([/[](?!.*- [/[]).*)$/.exec(text) ?? [];
  return [name, file];
}

/** Without the version that the linker chose it by: `nanosleep@@GLIBC_2.2.5`. */
function nativeName(name: string): string {
  const plain = name.replace(/@.*$/, '').trim().slice(0, NAME);
  return plain === '' || /^0x[0-9a-f]+$/.test(plain) ? NO_SYMBOL : plain;
}

function joined(frames: readonly Frame[]): readonly Frame[] {
  return frames.filter(
    ({ function: name, file }, i) =>
      name !== NO_SYMBOL || frames[i - 1]?.file !== file || frames[i - 1]?.function !== NO_SYMBOL,
  );
}

/** CPython's loop over the instructions of one or several of its frames. */
const EVALUATION = /^_?PyEval_EvalFrame(?:Default|Ex)?(?:\.|$)/;

/**
 * A native stack with Python's own frames in the place of the interpreter's: what was called from the innermost Python function, then
 * those. Null where the stack holds none of the interpreter's loop by name (a stripped build, or no Python code).
 */
export function withPython(
  native: readonly Frame[],
  python: readonly Frame[],
): readonly Frame[] | null {
  const at = native.findIndex(({ function: name }) => EVALUATION.test(name));
  return at < 0 || python.length === 0 ? null : [...native.slice(0, at), ...python];
}
