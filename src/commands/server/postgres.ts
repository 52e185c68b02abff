import { LogWatch } from '../../../collectors/postgres/log-watch.ts';
import { Postgres } from '../../../collectors/postgres/postgres.ts';
import type { Availability, CollectorInfo } from '../../core/types.ts';
import { descendantsOf } from '../../platform/process-tree.ts';
import { type Source, sourceOf } from '../watching/watch.ts';
import type { ServerOptions } from './options.ts';

/** The database server behind a target: who waits in it, and what its log says of deadlocks. */

/** What is seen of the database, or why it is not. */
export interface DatabaseWatch {
  readonly sources: readonly Source[];
  readonly infos: readonly CollectorInfo[];
  /** What was asked, a line each; without credentials. */
  readonly said: readonly string[];
}

/** Connects, and opens the log. A server that cannot be asked is said and not watched: the rest of the run is not lost. */
export async function openDatabaseWatch(
  { url, log }: ServerOptions['postgres'],
  pids: readonly number[],
): Promise<DatabaseWatch> {
  const sources: Source[] = [];
  const infos: CollectorInfo[] = [];
  const said: string[] = [];
  const take = (source: Source, probed: Availability): void => {
    const { name } = source;
    if (probed.available) {
      sources.push(source);
      said.push(`${name}: ${probed.detail ?? ''}`);
      infos.push({ name, available: true, reason: null, remedy: null });
    } else infos.push({ ...probed, name });
  };
  if (url !== null) {
    const postgres = new Postgres({
      pids: () => [...new Set(pids.flatMap((pid) => [pid, ...below(pid)]))],
    });
    const target = { kind: 'endpoint', url } as const;
    take(sourceOf(postgres, target), await postgres.probe(target));
  }
  if (log !== null) {
    const watch = new LogWatch(log);
    take(watch, await watch.probe());
  }
  return { sources, infos, said };
}

function below(pid: number): readonly number[] {
  return descendantsOf(pid).map(({ stat }) => stat.pid);
}
