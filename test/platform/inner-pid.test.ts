import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { TraceError } from '../../src/core/errors.ts';
import { innerViewOf } from '../../src/platform/inner-pid.ts';
import { readStatus } from '../../src/platform/proc.ts';
import { findTarget, targetInfo } from '../../src/platform/target.ts';
import { detectRuntime } from '../../src/platform/runtime.ts';
import { canRun } from '../programs.ts';
import { start } from './processes.ts';

const asRoot: readonly string[] = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
const own = [...asRoot, '--pid', '--fork', '--kill-child', '--mount-proc'];

/** Nobody's here: within a pid namespace the next pid can be chosen. */
function freePid(): number {
  for (let pid = 32_000; pid > 1000; pid--) if (!existsSync(`/proc/${pid}`)) return pid;
  throw new Error('no pid is free');
}

describe('the pid that a process has in its container', () => {
  it('is no other where it shares our pid namespace', () => {
    const status = readStatus(process.pid);
    expect(innerViewOf(process.pid, status?.namespacePids ?? [])).toEqual({
      namespacePid: null,
      container: null,
    });
  });

  it.skipIf(!canRun('unshare', ...own, 'sh', '-c', 'echo 300 > /proc/sys/kernel/ns_last_pid'))(
    'leads to the one it has here, in an error and in what a report says (needs pid namespaces)',
    async () => {
      const inner = freePid();
      const script = `echo ${inner - 1} > /proc/sys/kernel/ns_last_pid; sleep 60 & echo $!; wait`;
      const { said } = await start('unshare', [...own, 'sh', '-c', script]);
      expect(Number(said)).toBe(inner);
      const remedy = remedyOf(() => findTarget({ pid: inner }));
      const outer = /trace attach (\d+)/.exec(remedy)?.[1] ?? 'none';
      expect(remedy).toContain('Within a container one process has that pid');
      const found = findTarget({ pid: outer });
      expect(found).toMatchObject({ namespacePid: inner, container: expect.any(String) });
      expect(targetInfo(found, detectRuntime(found.target.pid))).toMatchObject({
        pid: Number(outer),
        namespacePid: inner,
      });
    },
  );
});

function remedyOf(find: () => unknown): string {
  try {
    find();
  } catch (error) {
    if (error instanceof TraceError) return error.remedy ?? '';
    throw error;
  }
  throw new Error('it was found');
}
