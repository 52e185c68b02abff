import { MemoryError } from '../../src/platform/memory.ts';
import { PythonAttributes } from './attributes.ts';
import { isAddress, Unsound } from './objects.ts';
import type { PythonReader } from './reader.ts';
import { PythonValues } from './values.ts';

/** The names that a program gives its threads. The kernel's are no help: before 3.14 they are all the program's. */

/** Threads named; pools of more are pools of the same. */
const LIMIT = 4096;

/**
 * By thread id, of all that `threading` knows; empty where it is not imported or could not be read. The text is the program's and
 * untrusted.
 */
export function threadNames(reader: PythonReader): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  const { memory, table } = reader.objects;
  memory.forget();
  try {
    const values = new PythonValues(reader.objects);
    const attributes = new PythonAttributes(values);
    const active = attributes.global('threading', '_active');
    if (active === null || !isAddress(active)) return names;
    const byIdentity = new Map<number, number>();
    for (const { address, tid } of reader.states())
      byIdentity.set(memory.pointer(address + table.thread.threadId), tid);
    for (const [identity, thread] of values.entries(active)) {
      if (names.size >= LIMIT) break;
      const tid = byIdentity.get(values.int(identity));
      const name = attributes.get(thread, '_name');
      if (tid !== undefined && name !== null) names.set(tid, reader.objects.text(name));
    }
  } catch (error) {
    // It moved meanwhile: those that were read are right.
    if (!(error instanceof Unsound) && !(error instanceof MemoryError)) throw error;
  }
  return names;
}
