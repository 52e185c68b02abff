import { ProcessMemory } from '../../src/platform/memory.ts';
import { openNodeMainLoop } from '../event-loop/libuv.ts';
import { LibuvWatch } from './libuv-watch.ts';
import type { SamplerPlan } from './messages.ts';
import type { AdapterResult } from './runtime-adapter.ts';
import { threadName } from './thread-name.ts';

/** Node: the main thread's loop, by its symbol. Stacks are not in reach of memory reads; V8's profiler has them (sampler.ts). */
export function openNodeAdapter(plan: SamplerPlan): AdapterResult {
  const { pid, threshold } = plan;
  let memory: ProcessMemory;
  try {
    memory = new ProcessMemory(pid);
  } catch (error) {
    return { ok: false, reason: `its memory cannot be read (${String(error)})`, remedy: null };
  }
  const opened = openNodeMainLoop(pid, memory);
  if (!opened.ok) {
    memory.close();
    return opened;
  }
  const watch = new LibuvWatch({ kind: 'libuv', probe: opened.loop, pid, tid: pid, threshold });
  let found = false;
  return {
    ok: true,
    adapter: {
      discover() {
        if (found) return [];
        found = true;
        return [{ thread: { tid: pid, name: threadName(pid, pid), kind: 'libuv' }, watch }];
      },
      round: () => {},
      stack: null,
      missing: 'it runs no event loop',
      rejected: () => ({}),
      bytesRead: () => memory.bytes,
      close: () => memory.close(),
    },
  };
}
