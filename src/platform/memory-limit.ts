import type { Bytes } from '../core/types.ts';
import { readProc } from './proc.ts';

/** Version 1 writes "no limit" as the largest page-aligned number (PAGE_COUNTER_MAX); nothing real is above 2^60 bytes. */
const UNLIMITED: Bytes = 2 ** 60;

/**
 * How much memory the cgroup of a process may use, the least of its own and all groups above; null when it is not limited, or the limit
 * does not show from here.
 */
export function memoryLimitOf(pid: number): Bytes | null {
  const limits: number[] = [];
  for (const line of (readProc(`/proc/${pid}/cgroup`) ?? '').split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === '' || path.includes('/../')) continue;
    if (controllers !== '' && !controllers.split(',').includes('memory')) continue;
    const [roots, file] =
      controllers === ''
        ? [['/sys/fs/cgroup', '/sys/fs/cgroup/unified'], 'memory.max']
        : [[`/sys/fs/cgroup/${controllers}`], 'memory.limit_in_bytes'];
    for (let group = path.replace(/\/$/, ''); ; group = group.slice(0, group.lastIndexOf('/'))) {
      for (const root of roots) limits.push(Number(readProc(`${root}${group}/${file}`) ?? 'none'));
      if (group === '') break;
    }
  }
  const real = limits.filter((limit) => limit >= 0 && limit < UNLIMITED);
  return real.length === 0 ? null : Math.min(...real);
}
