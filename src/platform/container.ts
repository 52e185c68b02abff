import { existsSync } from 'node:fs';
import { isNestedPidNamespace } from './permission-facts.ts';
import { readProc } from './proc.ts';

/** Cgroup paths as engines write them where the cgroup namespace is the machine's own. */
const ENGINE_CGROUP = /\b(kubepods|docker|libpod|containerd|lxc|garden)\b/;

/** What tells that trace itself runs in a container or pod, a few words each; empty on a plain machine. */
export function containerSigns(
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const engine = ENGINE_CGROUP.exec(readProc('/proc/self/cgroup') ?? '')?.[1];
  return [
    ...(env['KUBERNETES_SERVICE_HOST'] === undefined ? [] : ['KUBERNETES_SERVICE_HOST is set']),
    ...['/.dockerenv', '/run/.containerenv'].filter((path) => existsSync(path)),
    ...(engine === undefined ? [] : [`its cgroup is of ${engine}`]),
    ...(isNestedPidNamespace() ? ['a pid namespace of its own'] : []),
  ];
}
