import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { cpuLimitOf } from '../../src/platform/cgroup-limits.ts';
import { describeHost, stealTime } from '../../src/platform/host.ts';
import { startShell } from './processes.ts';

describe('the host', () => {
  it('is described as uname, nproc and free describe it', () => {
    const host = describeHost();
    const run = (...command: string[]) =>
      execFileSync(command[0] ?? '', command.slice(1), { encoding: 'utf8' }).trim();
    expect(host.kernel).toBe(run('uname', '-r'));
    expect(host.architecture).toBe(run('uname', '-m'));
    expect(host.coresAvailable).toBeLessThanOrEqual(host.cores);
    expect(host.cores).toBe(Number(run('getconf', '_NPROCESSORS_ONLN')));
    expect(host.memory).toBe(
      Number(/^MemTotal:\s+(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1024,
    );
  });

  it('counts stolen time in seconds over all cores', () => {
    const ticks = Number(
      /^cpu (?: \d+){7} (\d+)/.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? 0,
    );
    expect(stealTime()).toBeGreaterThanOrEqual(ticks / 100);
    expect(stealTime()).toBeLessThan(ticks / 100 + 60);
  });
});

describe('the CPU limit of a process', () => {
  it('is nothing, or the quota of its cgroup', () => {
    const limit = cpuLimitOf(process.pid);
    expect(limit === null || limit > 0).toBe(true);
    expect(cpuLimitOf(2 ** 22 + 1)).toBeNull();
  });

  /** Where a cgroup with a CPU quota can be made: version 1 or 2, and only with rights. */
  const VERSIONS = [
    { root: '/sys/fs/cgroup/cpu', file: 'cpu.cfs_quota_us', quota: '150000', enabledBy: null },
    {
      root: '/sys/fs/cgroup',
      file: 'cpu.max',
      quota: '150000 100000',
      enabledBy: '/sys/fs/cgroup/cgroup.subtree_control',
    },
  ];
  const usable = VERSIONS.find(
    ({ root, enabledBy }) =>
      existsSync(`${root}/cgroup.procs`) &&
      spawnSync('test', ['-w', `${root}/cgroup.procs`]).status === 0 &&
      (enabledBy === null || /\bcpu\b/.test(readFileSync(enabledBy, 'utf8'))),
  );

  it.skipIf(usable === undefined)(
    'is 1.5 cores in a cgroup that was given that (needs rights on cgroups)',
    async () => {
      if (usable === undefined) return;
      const { root, file, quota } = usable;
      const path = `${root}/tracewright-test-${process.pid}`;
      mkdirSync(path);
      try {
        writeFileSync(`${path}/${file}`, quota);
        const { pid, child } = await startShell('echo; read nothing');
        writeFileSync(`${path}/cgroup.procs`, String(pid));
        expect(cpuLimitOf(pid)).toBe(1.5);
        const ended = new Promise((resolve) => child.once('close', resolve));
        child.kill('SIGKILL');
        await ended;
      } finally {
        rmdirSync(path);
      }
    },
  );
});
