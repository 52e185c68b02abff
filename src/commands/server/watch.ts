import { resolve } from 'node:path';
import { printable } from '../../core/text.ts';
import type { CollectorInfo, Metric } from '../../core/types.ts';
import type { Environment } from '../command-line/command.ts';
import type { ServerOptions } from './options.ts';
import type { Source } from '../watching/watch.ts';

/** What is watched of a server beside its processes: its own numbers, what a small request takes, and the database behind it. */
export interface ServerWatch {
  readonly infos: readonly CollectorInfo[];
  /** What its pages have, beyond semconv.ts. */
  readonly metrics: readonly Metric[];
  readonly sources: readonly Source[];
}

interface Context {
  /** The processes whose ports may be asked, and those of what they started. */
  readonly pids: readonly number[];
  /** Whether a server may come of them yet: a command that was just started. */
  readonly mayBecome: boolean;
  /** The trace that probes belong to. */
  readonly traceId: string;
  readonly environment: Environment;
  readonly screen: { note(text: string): void };
}

/** Finds and reads once what is to be watched, and says what was asked. Throws a usage error for an URL that is none. */
export async function openServerWatch(
  { metrics, probe, postgres }: ServerOptions,
  { pids, mayBecome, traceId, environment, screen }: Context,
): Promise<ServerWatch> {
  const { openServerPages } = await import('./pages.ts');
  const pages = await openServerPages(metrics, { pids, mayBecome });
  for (const line of pages.said) screen.note(`server-metrics: asked ${line}`);
  const isAsked = postgres.url !== null || postgres.log !== null;
  const database = isAsked
    ? await (
        await import('./postgres.ts')
      ).openDatabaseWatch(
        { ...postgres, log: postgres.log === null ? null : resolve(environment.cwd, postgres.log) },
        pids,
      )
    : null;
  for (const line of database?.said ?? []) screen.note(printable(line, 400));
  const infos = [...pages.infos, ...(database?.infos ?? [])];
  for (const { name, available, reason, remedy } of infos) {
    if (available) continue;
    screen.note(`${name}: not seen: ${printable(reason ?? '', 400)}`);
    if (remedy !== null) screen.note(`  ${remedy}`);
  }
  const sources = [...pages.sources, ...(database?.sources ?? [])];
  if (probe !== null) {
    const { serverProbe } = await import('./probe.ts');
    sources.push(serverProbe(probe, { traceId, env: environment.env }));
  }
  return { infos, metrics: pages.metrics, sources };
}
