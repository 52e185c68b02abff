import { PythonHeap } from '../../../collectors/python/heap-look.ts';
import { openPython } from '../../../collectors/python/reader.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { HeapLook } from '../../core/heap-look.ts';
import type { Clock, ProcessTarget } from '../../core/types.ts';
import type { Runtime } from '../../platform/runtime.ts';

/** Something that can look at the objects of a process. */
export interface HeapLooker {
  /** Null when a look could not be had. */
  look(): Promise<HeapLook | null>;
  close(): Promise<void>;
}

/** Opens the objects of a process for reading. Throws a TraceError that says why not. */
export async function openHeap(
  { pid }: ProcessTarget,
  { name }: Runtime,
  clock: Clock,
): Promise<HeapLooker> {
  if (name !== 'python')
    throw new TraceError(
      'ERR_HEAP_UNSUPPORTED',
      `pid ${pid} is neither a Python nor a Node process`,
      {
        exitCode: EXIT.unsupported,
        remedy: `Watch its memory: trace attach ${pid}.`,
      },
    );
  const opened = openPython(pid);
  if (!opened.ok)
    throw new TraceError(
      'ERR_HEAP_UNREADABLE',
      `the objects of pid ${pid} cannot be read: ${opened.reason}`,
      {
        exitCode: opened.code === 'gone' ? EXIT.notFound : EXIT.unsupported,
        ...(opened.remedy === null ? {} : { remedy: opened.remedy }),
      },
    );
  const heap = new PythonHeap(opened.reader, clock);
  return {
    look: () => heap.take(),
    close: async () => opened.reader.close(),
  };
}
