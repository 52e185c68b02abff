import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { describe, expect, it } from 'vitest';
import { foreignClock } from '../../../collectors/event-loop/foreign-clock.ts';
import { openLoopAt, openNodeMainLoop } from '../../../collectors/event-loop/libuv.ts';
import { ProcessMemory } from '../../../src/platform/memory.ts';
import { start, until } from '../../platform/processes.ts';
import { canRun } from '../../programs.ts';

const asRoot: readonly string[] = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
const canShift = canRun('unshare', ...asRoot, '--time', '--monotonic', '1', '--fork', 'true');
const TICKING = 'setInterval(() => {}, 20); console.log("ready")';

/** A Node whose clocks are shifted by so many seconds, as it is known here. */
async function shifted(...clocks: readonly string[]): Promise<number> {
  const flags = [...asRoot, '--time', ...clocks, '--fork', '--kill-child'];
  const { pid } = await start('unshare', [...flags, process.execPath, '-e', TICKING]);
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
}

function loopOf(pid: number) {
  const memory = new ProcessMemory(pid);
  try {
    return openNodeMainLoop(pid, memory);
  } finally {
    memory.close();
  }
}

describe('the clock of a target', () => {
  it('is ours where no namespace shifts it', () => {
    expect(foreignClock(process.pid)).toBeNull();
    expect(foreignClock(2 ** 22 + 1)).toBeNull();
  });

  // Never back before the start of the machine: the kernel refuses that, and the machine may be a minute old.
  const back = `-${Math.floor(uptime() / 2)}`;
  it.skipIf(!canShift).for(['1000', back])(
    'that is shifted by %s s makes its stamps worth nothing, however the loop is found (needs time namespaces)',
    async (seconds) => {
      const pid = await shifted('--monotonic', seconds);
      await until(() => foreignClock(pid) !== null);
      expect(foreignClock(pid)?.remedy).toContain(`nsenter -t ${pid} -T`);
      const named = loopOf(pid);
      expect(named).toMatchObject({ ok: false, reason: expect.stringContaining('shifted') });
      // By its address alone, as the search on a stack finds it.
      const memory = new ProcessMemory(pid);
      expect(openLoopAt(memory, 4096)).toMatchObject({
        reason: expect.stringContaining('shifted'),
      });
      memory.close();
    },
  );

  it.skipIf(!canShift)(
    'may differ in the time since boot: libuv does not stamp by that (needs time namespaces)',
    async () => {
      const pid = await shifted('--boottime', '100000');
      await until(() => loopOf(pid).ok);
      expect(foreignClock(pid)).toBeNull();
    },
  );
});
