import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cgroupFolders } from '../../src/platform/cgroup.ts';
import { cpuLimitOf, memoryLimitOf } from '../../src/platform/cgroup-limits.ts';
import { CgroupReader } from '../../src/platform/cgroup-reader.ts';
import { canMakeCgroup, FREEZERS, makeCgroup } from '../cgroups.ts';
import { end, startShell, until } from './processes.ts';

const MIB = 2 ** 20;
const LIMITS = { cpu: 1.5, memory: 256 * MIB };

/** A machine in a folder, from captured files: a machine has one version of control groups or the other. */
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tracewright-cgroup-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function readOnce(pid: number) {
  const reader = new CgroupReader(pid, root);
  try {
    return reader.read();
  } finally {
    reader.close();
  }
}

/** As Linux 6.1 writes them below a systemd slice of Kubernetes. */
const POD = '/kubepods.slice/kubepods-burstable.slice/pod1.slice';
const V2_MOUNT = '30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate';
const V2_GROUP = {
  'cpu.max': '20000 100000\n',
  'cpu.stat':
    'usage_usec 5120000\nuser_usec 5000000\nsystem_usec 120000\nnr_periods 310\nnr_throttled 297\nthrottled_usec 24400000\nnr_bursts 0\nburst_usec 0\n',
  'memory.current': `${100 * MIB}\n`,
  'memory.max': `${128 * MIB}\n`,
  'memory.high': 'max\n',
  'memory.stat': `anon ${50 * MIB}\nfile ${40 * MIB}\nkernel_stack 16384\ninactive_anon 0\nactive_anon ${50 * MIB}\ninactive_file ${30 * MIB}\nactive_file ${10 * MIB}\n`,
  'memory.events': 'low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n',
};
const V2_UNLIMITED = {
  'cpu.max': 'max 100000\n',
  'memory.current': '1\n',
  'memory.max': 'max\n',
  'memory.high': 'max\n',
};

function files(folder: string, group: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(group).map(([name, text]) => [`${folder}/${name}`, text]),
  );
}

describe('control groups of version 2 (captured)', () => {
  it('are read where the process is in them', () => {
    write({
      'proc/self/mountinfo': `${V2_MOUNT}\n`,
      'proc/7/cgroup': `0::${POD}/app.scope\n`,
      ...files(`sys/fs/cgroup${POD}/app.scope`, V2_GROUP),
      ...files(`sys/fs/cgroup${POD}`, V2_UNLIMITED),
    });
    const folder = `${root}/sys/fs/cgroup${POD}/app.scope`;
    expect(readOnce(7)).toEqual({
      cpu: { folder, limit: 0.2, used: 5.12, periods: 310, throttledPeriods: 297, throttled: 24.4 },
      memory: {
        folder,
        limit: 128 * MIB,
        high: null,
        usage: 100 * MIB,
        workingSet: 70 * MIB,
        unreclaimable: 60 * MIB,
        atLimit: 12,
        atHigh: 0,
      },
      oomKills: 1,
      frozen: false,
    });
  });

  it('that allow less above are those that count', () => {
    write({
      'proc/self/mountinfo': `${V2_MOUNT}\n`,
      'proc/7/cgroup': `0::${POD}/app.scope\n`,
      ...files(`sys/fs/cgroup${POD}/app.scope`, V2_UNLIMITED),
      ...files(`sys/fs/cgroup${POD}`, { ...V2_GROUP, 'memory.high': `${96 * MIB}\n` }),
    });
    const { cpu, memory } = readOnce(7);
    expect(cpu?.folder).toBe(`${root}/sys/fs/cgroup${POD}`);
    expect(memory).toMatchObject({ folder: `${root}/sys/fs/cgroup${POD}`, high: 96 * MIB });
  });

  it('without a limit cost nothing: only kills are counted', () => {
    write({
      'proc/self/mountinfo': `${V2_MOUNT}\n`,
      'proc/7/cgroup': '0::/user.slice\n',
      ...files('sys/fs/cgroup/user.slice', { ...V2_UNLIMITED, 'memory.events': 'oom_kill 0\n' }),
    });
    expect(readOnce(7)).toEqual({ cpu: null, memory: null, oomKills: 0, frozen: false });
  });

  it('of a container beside ours are read through its own mount', () => {
    write({
      // Our own container: its tree begins where we are, and the other lies beside.
      'proc/self/mountinfo': `${V2_MOUNT}\n`,
      'proc/7/cgroup': '0::/../other\n',
      'proc/7/mountinfo': '512 511 0:26 /../other /sys/fs/cgroup ro - cgroup2 cgroup rw\n',
      ...files('sys/fs/cgroup', V2_GROUP),
      ...files('proc/7/root/sys/fs/cgroup', { ...V2_GROUP, 'cpu.max': '50000 100000\n' }),
    });
    expect(readOnce(7).cpu).toMatchObject({
      limit: 0.5,
      folder: `${root}/proc/7/root/sys/fs/cgroup`,
    });
  });

  it('that are not to be seen from here are nothing', () => {
    write({
      'proc/self/mountinfo': `${V2_MOUNT}\n`,
      'proc/7/cgroup': '0::/../other\n',
      ...files('sys/fs/cgroup', V2_GROUP),
    });
    expect(cgroupFolders(7, 'cpu', root)).toBeNull();
    expect(readOnce(7)).toEqual({ cpu: null, memory: null, oomKills: null, frozen: false });
  });

  it('are found below a mount whose path holds a space', () => {
    write({
      'proc/self/mountinfo': '30 23 0:26 / /mnt/control\\040groups rw - cgroup2 cgroup2 rw\n',
      'proc/7/cgroup': '0::/app\n',
      ...files('mnt/control groups/app', V2_GROUP),
    });
    expect(readOnce(7).cpu?.limit).toBe(0.2);
  });
});

describe('control groups of version 1 (captured)', () => {
  it('are one tree a controller, two of which may share one', () => {
    write({
      'proc/self/mountinfo':
        '33 30 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n' +
        '36 30 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n' +
        '41 30 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n',
      'proc/7/cgroup': '11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n',
      ...files('sys/fs/cgroup/cpu,cpuacct/docker/abc', {
        'cpu.cfs_quota_us': '50000\n',
        'cpu.cfs_period_us': '100000\n',
        'cpuacct.usage': '5120000000\n',
        'cpu.stat': 'nr_periods 310\nnr_throttled 297\nthrottled_time 24400000000\n',
      }),
      ...files('sys/fs/cgroup/memory/docker/abc', {
        'memory.limit_in_bytes': `${128 * MIB}\n`,
        'memory.usage_in_bytes': `${100 * MIB}\n`,
        'memory.failcnt': '12\n',
        'memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n',
        'memory.stat': `inactive_file 1\nactive_file 1\ntotal_inactive_file ${30 * MIB}\ntotal_active_file ${10 * MIB}\n`,
      }),
      // What version 1 writes for "no limit".
      ...files('sys/fs/cgroup/memory', { 'memory.limit_in_bytes': '9223372036854771712\n' }),
    });
    expect(readOnce(7)).toEqual({
      cpu: {
        folder: `${root}/sys/fs/cgroup/cpu,cpuacct/docker/abc`,
        limit: 0.5,
        used: 5.12,
        periods: 310,
        throttledPeriods: 297,
        throttled: 24.4,
      },
      memory: {
        folder: `${root}/sys/fs/cgroup/memory/docker/abc`,
        limit: 128 * MIB,
        high: null,
        usage: 100 * MIB,
        workingSet: 70 * MIB,
        unreclaimable: 60 * MIB,
        atLimit: 12,
        atHigh: null,
      },
      oomKills: 1,
      frozen: false,
    });
  });
});

describe('control groups of this machine', () => {
  it('limit a process by nothing or by something, and one that is not there by nothing', () => {
    for (const limitOf of [cpuLimitOf, memoryLimitOf]) {
      const limit = limitOf(process.pid);
      expect(limit === null || limit > 0).toBe(true);
      expect(limitOf(2 ** 22 + 1)).toBeNull();
    }
  });

  it.skipIf(!canMakeCgroup(LIMITS))(
    'are those that a process was put into (needs rights on cgroups)',
    async () => {
      const group = makeCgroup(LIMITS);
      const started = await startShell('echo; read nothing');
      try {
        group?.admit(started.pid);
        expect(cpuLimitOf(started.pid)).toBe(1.5);
        expect(memoryLimitOf(started.pid)).toBe(256 * MIB);
      } finally {
        await end(started);
        await emptied(group?.folders ?? []);
        group?.remove();
      }
    },
  );

  it.skipIf(!canMakeCgroup({ memory: 32 * MIB }))(
    'still tell that the kernel killed a process when it is gone (needs rights on cgroups)',
    async () => {
      const group = makeCgroup({ memory: 32 * MIB });
      const started = await startShell('echo; read go; exec head -c 64m /dev/zero | tail');
      group?.admit(started.pid);
      const reader = new CgroupReader(started.pid);
      try {
        expect(reader.read()).toMatchObject({ oomKills: 0, memory: { limit: 32 * MIB } });
        started.child.stdin?.end('go\n');
        await until(() => (reader.oomKills() ?? 0) > 0);
        expect(reader.oomKills()).toBeGreaterThan(0);
      } finally {
        reader.close();
        await end(started);
        await emptied(group?.folders ?? []);
        group?.remove();
      }
    },
  );

  it.for(FREEZERS)('say that they are frozen: version %s', async ([, make]) => {
    const group = make();
    const started = await startShell('echo; read nothing');
    const reader = new CgroupReader(started.pid);
    try {
      group.admit(started.pid);
      expect(cgroupFolders(started.pid, 'freezer', '', group.version)?.groups[0]).toBe(
        group.folder,
      );
      for (let i = 0; i < 60; i++) reader.read();
      expect(reader.read().frozen).toBe(false);
      group.freeze(true);
      await until(() => reader.read().frozen);
      expect(reader.read().frozen).toBe(true);
      group.freeze(false);
      await until(() => !reader.read().frozen);
      expect(reader.read().frozen).toBe(false);
    } finally {
      group.freeze(false);
      reader.close();
      await end(started);
      await emptied([group.folder]);
      group.remove();
    }
  });
});

/** The kernel takes a process out of its group a moment after its parent was told of its end. */
async function emptied(folders: readonly string[]): Promise<void> {
  await until(() =>
    folders.every((folder) => readFileSync(join(folder, 'cgroup.procs'), 'utf8') === ''),
  );
}
