import type { Bytes, Seconds } from '../core/types.ts';
import { cgroupFolders } from './cgroup.ts';
import { cpuLimit, memoryLimit, parseCpuMax, parseLimit } from './cgroup-limits.ts';
import { FreezerReader } from './freezer.ts';
import { KeptFile } from './proc-kept-file.ts';

/**
 * What the control groups of a process say, read again and again through files kept open: they go on answering when the process has
 * ended, so that what killed it can still be asked. Of groups within groups the one that allows least is read.
 */

/** The group that limits the CPU of a process. Counters run since the group was made. */
export interface CgroupCpu {
  /** Where it was read: of the process's groups that which allows least. Untrusted. */
  readonly folder: string;
  /** Cores; null once the limit was lifted. */
  readonly limit: number | null;
  /** CPU time of all processes of the group; null where it is counted elsewhere (version 1). */
  readonly used: Seconds | null;
  readonly periods: number;
  readonly throttledPeriods: number;
  /** Summed over the cores. */
  readonly throttled: Seconds;
}

/** The group that limits the memory of a process. */
export interface CgroupMemory {
  /** As of CgroupCpu. */
  readonly folder: string;
  /** Where the kernel begins to kill. */
  readonly limit: Bytes | null;
  /** Where it begins to hold up whoever asks for more; version 2 only. */
  readonly high: Bytes | null;
  readonly usage: Bytes;
  /** Usage without file pages that were not used lately: what the kubelet evicts by. */
  readonly workingSet: Bytes | null;
  /** Usage without the page cache. */
  readonly unreclaimable: Bytes | null;
  /** How often the limit was met. */
  readonly atLimit: number | null;
  readonly atHigh: number | null;
}

export interface CgroupReading {
  /** Null without a limit. */
  readonly cpu: CgroupCpu | null;
  /** Null without a limit. */
  readonly memory: CgroupMemory | null;
  /** Processes of its own group that the kernel has killed for want of memory; null where that cannot be seen. */
  readonly oomKills: number | null;
  /** Its group, or one above, is frozen (`docker pause`): it does not run, and its state is that of a sleeper. */
  readonly frozen: boolean;
}

/** memory.stat of version 1 is 2.5 KiB, and grows with kernels. */
const STAT_CAPACITY: Bytes = 16 * 1024;
/** Limits may be set while a process runs (`docker update`); finding them costs a reading of the mounts. */
const READINGS_BETWEEN_LOOKS = 60;

export class CgroupReader {
  readonly #pid: number;
  readonly #root: string;
  #cpu: FileSet | null = null;
  #memory: FileSet | null = null;
  #own: FileSet | null = null;
  readonly #freezer: FreezerReader;
  #readings = 0;

  /** `root` is put before every path, for tests. */
  constructor(pid: number, root = '') {
    this.#pid = pid;
    this.#root = root;
    this.#freezer = new FreezerReader(pid, root);
    this.#look();
  }

  read(): CgroupReading {
    if (++this.#readings % READINGS_BETWEEN_LOOKS === 0) this.#look();
    return {
      cpu: this.#cpu === null ? null : readCpu(this.#cpu),
      memory: this.#memory === null ? null : readMemory(this.#memory),
      oomKills: this.oomKills(),
      frozen: this.#freezer.isFrozen(),
    };
  }

  /** Asked by itself after the process has ended. */
  oomKills(): number | null {
    const own = this.#own;
    if (own === null) return null;
    return (
      own.keyed(own.version === 2 ? 'memory.events' : 'memory.oom_control').get('oom_kill') ?? null
    );
  }

  close(): void {
    this.#closeFiles();
    this.#freezer.close();
  }

  #closeFiles(): void {
    for (const files of [this.#cpu, this.#memory, this.#own]) files?.close();
    this.#cpu = this.#memory = this.#own = null;
  }

  /** A process that has ended has no groups any more: what was found before stays. */
  #look(): void {
    const cpu = cgroupFolders(this.#pid, 'cpu', this.#root);
    const memory = cgroupFolders(this.#pid, 'memory', this.#root);
    if (cpu === null && memory === null) return;
    this.#closeFiles();
    const cpuFolder = cpu === null ? undefined : cpuLimit(cpu)?.folder;
    const memoryFolder = memory === null ? undefined : memoryLimit(memory)?.folder;
    if (cpu !== null && cpuFolder !== undefined) this.#cpu = new FileSet(cpuFolder, cpu.version);
    if (memory === null) return;
    this.#own = new FileSet(memory.groups[0], memory.version);
    if (memoryFolder !== undefined) this.#memory = new FileSet(memoryFolder, memory.version);
  }
}

/** Files of one group, each opened when it is first asked for. */
class FileSet {
  readonly version: 1 | 2;
  readonly folder: string;
  readonly #files = new Map<string, KeptFile | null>();

  constructor(folder: string, version: 1 | 2) {
    this.folder = folder;
    this.version = version;
  }

  text(name: string): string | null {
    let file = this.#files.get(name);
    if (file === undefined) {
      const path = `${this.folder}/${name}`;
      file = name === 'memory.stat' ? KeptFile.open(path, STAT_CAPACITY) : KeptFile.open(path);
      this.#files.set(name, file);
    }
    return file?.text() ?? null;
  }

  number(name: string): number | null {
    const text = this.text(name)?.trim() ?? '';
    return /^\d+$/.test(text) ? Number(text) : null;
  }

  /** Lines of a name and a number. */
  keyed(name: string): ReadonlyMap<string, number> {
    const values = new Map<string, number>();
    for (const line of (this.text(name) ?? '').split('\n')) {
      const [key = '', value = ''] = line.split(' ');
      if (/^\d+$/.test(value)) values.set(key, Number(value));
    }
    return values;
  }

  close(): void {
    for (const file of this.#files.values()) file?.close();
    this.#files.clear();
  }
}

/** Null when the group is gone. */
function readCpu(files: FileSet): CgroupCpu | null {
  const stat = files.keyed('cpu.stat');
  const periods = stat.get('nr_periods');
  const throttledPeriods = stat.get('nr_throttled');
  if (periods === undefined || throttledPeriods === undefined) return null;
  if (files.version === 2) {
    const used = stat.get('usage_usec');
    return {
      folder: files.folder,
      limit: parseCpuMax(files.text('cpu.max') ?? ''),
      used: used === undefined ? null : used / 1e6,
      periods,
      throttledPeriods,
      throttled: (stat.get('throttled_usec') ?? 0) / 1e6,
    };
  }
  const used = files.number('cpuacct.usage');
  return {
    folder: files.folder,
    limit: parseCpuMax(
      `${files.text('cpu.cfs_quota_us') ?? ''} ${files.text('cpu.cfs_period_us') ?? ''}`,
    ),
    used: used === null ? null : used / 1e9,
    periods,
    throttledPeriods,
    throttled: (stat.get('throttled_time') ?? 0) / 1e9,
  };
}

/** Null when the group is gone. */
function readMemory(files: FileSet): CgroupMemory | null {
  const isNew = files.version === 2;
  const usage = files.number(isNew ? 'memory.current' : 'memory.usage_in_bytes');
  if (usage === null) return null;
  const stat = files.keyed('memory.stat');
  // Version 1 counts the group alone first, and with the groups in it under names of their own.
  const inactive = stat.get(isNew ? 'inactive_file' : 'total_inactive_file');
  const active = stat.get(isNew ? 'active_file' : 'total_active_file');
  const events = isNew ? files.keyed('memory.events') : null;
  return {
    folder: files.folder,
    limit: parseLimit(files.text(isNew ? 'memory.max' : 'memory.limit_in_bytes')),
    high: isNew ? parseLimit(files.text('memory.high')) : null,
    usage,
    workingSet: inactive === undefined ? null : Math.max(0, usage - inactive),
    unreclaimable:
      inactive === undefined || active === undefined
        ? null
        : Math.max(0, usage - inactive - active),
    atLimit: events === null ? files.number('memory.failcnt') : (events.get('max') ?? null),
    atHigh: events?.get('high') ?? null,
  };
}
