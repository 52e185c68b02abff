import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ProcessReader } from '../../../collectors/process/readings.ts';
import { findTarget } from '../../../src/platform/target.ts';
import { canMakeCgroup, makeCgroup } from '../../cgroups.ts';
import { startShell, until } from '../../platform/processes.ts';

const SMALL = { memory: 32 * 2 ** 20 };

describe('a process that has ended', () => {
  it.skipIf(!canMakeCgroup(SMALL)).for([
    ['by the limit of its control group', 'read go; exec grep -a x /dev/zero', 1],
    ['of itself', 'read go; exit 0', 0],
  ] as const)(
    'tells from its group whether it was killed: %s (needs rights on cgroups)',
    async ([, does, kills]) => {
      const group = makeCgroup(SMALL);
      const started = await startShell(`echo; ${does}`);
      group?.admit(started.pid);
      const reader = new ProcessReader(findTarget({ pid: started.pid }).target);
      try {
        expect(reader.read()).toMatchObject({
          cgroup: { oomKills: 0, memory: { limit: SMALL.memory } },
        });
        const over = new Promise((resolve) => started.child.once('close', resolve));
        started.child.stdin?.end('go\n');
        await over;
        expect(reader.read()).toEqual({ exitStatus: null, oomKills: kills });
      } finally {
        reader.close();
        await until(() =>
          (group?.folders ?? []).every(
            (folder) => readFileSync(join(folder, 'cgroup.procs'), 'utf8') === '',
          ),
        );
        group?.remove();
      }
    },
  );
});
