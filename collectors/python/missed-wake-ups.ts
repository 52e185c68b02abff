import type { MissedCondition } from '../../src/core/tasks.ts';
import { awaitedName } from '../../src/core/wait-loop.ts';
import { readOutsideSync } from '../../src/platform/outside-file.ts';
import type { PythonAttributes } from './attributes.ts';
import type { AwaitChain, CoroutineFrame } from './coroutines.ts';
import { LockObjects } from './locks/lock-objects.ts';
import { isAddress } from './objects.ts';
import { addressText } from './task-waits.ts';

/** Tasks that wait for a condition of asyncio although what their loop waits for is there. */

const LOCKS = /\/asyncio\/locks\.py$/;
const CONDITION = /(?:^|\.)(?:wait|wait_for)$/;
/** Source files that are read. */
const BYTES_LIMIT = 2 ** 20;
const FILES_LIMIT = 64;

/** The lines of one of the target's source files; none where it cannot be read. */
export type SourceLines = (file: string) => readonly string[];

/** Source files as the process sees them, read once each. */
export function sourceLines(pid: number): SourceLines {
  const known = new Map<string, readonly string[]>();
  return (file) => {
    const lines = known.get(file) ?? (file.startsWith('/') ? readLines(pid, file) : []);
    if (known.size < FILES_LIMIT) known.set(file, lines);
    return lines;
  };
}

function readLines(pid: number, file: string): readonly string[] {
  try {
    // The name is the target's: what it leads to may be a pipe, a device, or without end.
    const content = readOutsideSync(`/proc/${pid}/root${file}`, BYTES_LIMIT);
    return content.toString('utf8').split('\n');
  } catch {
    return [];
  }
}

/** Methods throw Unsound or MemoryError. */
export class MissedWakeUps {
  readonly #attributes: PythonAttributes;
  readonly #locks: LockObjects;
  readonly #linesOf: SourceLines;

  constructor(attributes: PythonAttributes, linesOf: SourceLines) {
    this.#attributes = attributes;
    this.#locks = new LockObjects(attributes);
    this.#linesOf = linesOf;
  }

  /** Of a task that waits in `Condition.wait`; null when what it waits for is not there, or that cannot be told. */
  of(chain: AwaitChain): MissedCondition | null {
    const frames = chain.frames.toReversed();
    const outside = frames.findIndex(({ frame }) => !LOCKS.test(frame.file));
    const [inner] = frames;
    const caller = frames[outside];
    if (inner === undefined || caller === undefined || outside === 0) return null;
    const { file, line } = caller.frame;
    if (line === null || !CONDITION.test(inner.frame.function)) return null;
    const condition = inner.slot(0);
    const lock = isAddress(condition) ? this.#attributes.get(condition, '_lock') : null;
    const locked = lock === null ? null : this.#attributes.get(lock, '_locked');
    if (locked === null || this.#locks.values.int(locked) !== 0) return null;
    const expression = awaitedName(this.#linesOf(file), line);
    if (expression === null) return null;
    const items = this.#truth(this.#value(caller, expression));
    return items > 0 ? { condition: addressText(condition), expression, items } : null;
  }

  /** The object that a variable, or an attribute of one, refers to; 0 where it is not found. */
  #value(frame: CoroutineFrame, expression: string): number {
    const [variable = '', ...attributes] = expression.split('.');
    let at = frame.slot(frame.names().indexOf(variable));
    if (isAddress(at) && this.#attributes.values.typeOf(at).name === 'cell') {
      const { memory, table } = this.#attributes.values.objects;
      at = memory.pointer(at + table.callable.cell);
    }
    for (const name of attributes) at = isAddress(at) ? (this.#attributes.get(at, name) ?? 0) : 0;
    return at;
  }

  #truth(value: number): number {
    if (!isAddress(value)) return 0;
    const { values } = this.#attributes;
    const { name } = values.typeOf(value);
    if (name === 'bool') return values.int(value) === 0 ? 0 : 1;
    return this.#locks.countOf(value) ?? 0;
  }
}
