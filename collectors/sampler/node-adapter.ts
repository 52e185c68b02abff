import { ProcessMemory } from '../../src/platform/memory.ts';
import type { LoopProbe } from '../event-loop/loop-probe.ts';
import { openNodeMainLoop } from '../event-loop/libuv.ts';
import { LibuvWatch } from './libuv-watch.ts';
import { LoopSearches } from './loop-searches.ts';
import type { SamplerPlan } from './messages.ts';
import type { AdapterResult, RuntimeAdapter } from './runtime-adapter.ts';
import { threadName } from './thread-name.ts';

/**
 * Node: the main thread's loop, by its symbol, and on the thread's stack where a stripped build has none. Stacks are not in reach of
 * memory reads; V8's profiler has them (stack-source.ts).
 */
export function openNodeAdapter(plan: SamplerPlan): AdapterResult {
  const { pid } = plan;
  let memory: ProcessMemory;
  try {
    memory = new ProcessMemory(pid);
  } catch (error) {
    return { ok: false, reason: `its memory cannot be read (${String(error)})`, remedy: null };
  }
  const named = openNodeMainLoop(pid, memory);
  const searches = new LoopSearches(pid, { memory, idleMetrics: true });
  let found: LoopProbe | null = named.ok ? named.loop : null;
  if (!named.ok) {
    searches.add(pid);
    searches.searchAtOnce();
    found = searches.take()[0]?.probe ?? null;
    if (found === null) {
      memory.close();
      return named;
    }
  }
  return { ok: true, adapter: nodeAdapter(plan, memory, found) };
}

function nodeAdapter(
  { pid, threshold }: SamplerPlan,
  memory: ProcessMemory,
  loop: LoopProbe | null,
): RuntimeAdapter {
  let fresh = loop;
  return {
    discover() {
      if (fresh === null) return [];
      const watch = new LibuvWatch({ kind: 'libuv', probe: fresh, pid, tid: pid, threshold });
      fresh = null;
      return [{ thread: { tid: pid, name: threadName(pid, pid), kind: 'libuv' }, watch }];
    },
    round: () => {},
    stack: null,
    missing: 'it runs no event loop',
    rejected: () => ({}),
    bytesRead: () => memory.bytes,
    close: () => memory.close(),
  };
}
