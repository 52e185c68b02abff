import { readFile, statfs } from 'node:fs/promises';
import { availableParallelism, freemem } from 'node:os';
import { memoryLimitOf } from '../../../platform/cgroup-limits.ts';
import { containerSigns } from '../../../platform/container.ts';
import { describeHost } from '../../../platform/host.ts';
import { readProc } from '../../../platform/proc.ts';
import { formatBytes } from '../../../core/units.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';

/** Kernel, distribution, container, memory and disk. */
export async function machineFacts({
  cwd,
  env,
}: Surroundings): Promise<readonly EnvironmentFact[]> {
  const host = describeHost();
  const limit = memoryLimitOf(process.pid);
  const free = availableMemory();
  const signs = containerSigns(env);
  const kept = limit === null ? '' : `, ${formatBytes(limit)} by cgroup`;
  return [
    {
      name: 'kernel',
      value: `Linux ${host.kernel} ${host.architecture}, ${host.cores} cores (${availableParallelism()} usable), ${host.cpuModel}`,
      reason: null,
    },
    await distribution(),
    { name: 'container', value: signs.length === 0 ? 'none' : signs.join('; '), reason: null },
    {
      name: 'memory',
      value: `${formatBytes(free)} available of ${formatBytes(host.memory)}${kept}`,
      reason: null,
    },
    await disk(cwd),
  ];
}

async function distribution(): Promise<EnvironmentFact> {
  const name = 'distribution';
  const text = await readFile('/etc/os-release', 'utf8').catch(() => null);
  const value = /^PRETTY_NAME=(?:"([^"\n]{1,120})"|([^\s"]{1,120}))/m.exec(
    text?.slice(0, 8192) ?? '',
  );
  if (value === null) return { name, value: null, reason: '/etc/os-release does not tell' };
  return { name, value: value[1] ?? value[2] ?? '', reason: null };
}

/** What a program could still take: free memory and what the kernel would give up. */
function availableMemory(): number {
  const [, kibibytes] =
    /^MemAvailable:\s+(\d{1,15}) kB/m.exec(readProc('/proc/meminfo') ?? '') ?? [];
  return kibibytes === undefined ? freemem() : Number(kibibytes) * 1024;
}

async function disk(cwd: string): Promise<EnvironmentFact> {
  const { bavail, blocks, bsize } = await statfs(cwd);
  return {
    name: 'disk',
    value: `${formatBytes(bavail * bsize)} free of ${formatBytes(blocks * bsize)}`,
    reason: null,
  };
}
