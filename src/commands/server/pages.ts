import { setTimeout as sleep } from 'node:timers/promises';
import { ServerMetrics } from '../../../collectors/server-metrics/server-metrics.ts';
import { monotonicNow } from '../../core/clock.ts';
import { printable } from '../../core/text.ts';
import type {
  CollectorInfo,
  Metric,
  Observation,
  ObserveContext,
  Seconds,
} from '../../core/types.ts';
import { findPages, type PageCandidate, publishesPage } from '../../platform/metrics-ports.ts';
import { descendantsOf, rolesOf } from '../../platform/process-tree.ts';
import type { Role } from '../../platform/roles.ts';
import type { ServerOptions } from './options.ts';
import { type Source, sourceOf } from '../watching/watch.ts';

/** The pages that a server publishes for Prometheus: the one that was named, or those of the target's own ports. */

/** Asking may hold up the beginning of a run for so long; a server that is busy is asked again later. */
const FIND_LIMIT: Seconds = 4;
/** A server that loads a model listens after minutes. */
const LOOK_AGAIN_EVERY: Seconds = 5;
/** Servers of one run: the pages of one. */
const PAGES_READ = 4;
const COLLECTOR_NAME = 'server-metrics';

/** What of a server's own numbers is watched. */
export interface ServerPages {
  readonly sources: readonly Source[];
  readonly infos: readonly CollectorInfo[];
  /** What the pages have, beyond semconv.ts. */
  readonly metrics: readonly Metric[];
  /** The inference engine, where a page tells. */
  readonly engine: string | null;
  /** What was asked and what came, a line each. */
  readonly said: readonly string[];
}

const NOTHING: ServerPages = { sources: [], infos: [], metrics: [], engine: null, said: [] };

/**
 * Reads the pages once: the first reading is made now, and says what there is. `pids`: the targets whose ports may be asked; `mayBecome`: whether
 * a server may come of them yet.
 */
export async function openServerPages(
  { url, find, every }: ServerOptions['metrics'],
  { pids, mayBecome }: { readonly pids: readonly number[]; readonly mayBecome: boolean },
): Promise<ServerPages> {
  if (url !== null) return await openNamed(url, every);
  if (find === 'never') return NOTHING;
  const search = new PageFinder(pids, { any: find === 'any', every });
  const found = await search.find();
  if (found.collectors.length === 0 && !search.expectsPage(find === 'any')) {
    return mayBecome ? { ...NOTHING, sources: [search.source()] } : NOTHING;
  }
  if (found.collectors.length === 0) {
    const info = { name: COLLECTOR_NAME, available: false, ...found.why };
    return { ...NOTHING, infos: [info], said: found.said, sources: [search.source()] };
  }
  return {
    sources: found.collectors.map(({ collector, url: at }) =>
      sourceOf(collector, { kind: 'endpoint', url: at }),
    ),
    infos: [{ name: COLLECTOR_NAME, available: true, reason: null, remedy: null }],
    metrics: found.collectors.flatMap(({ collector }) => collector.metrics),
    engine: found.collectors[0]?.collector.engine ?? null,
    said: found.said,
  };
}

/** Read on even where it does not answer yet: it was asked for. */
async function openNamed(url: string, every: Seconds): Promise<ServerPages> {
  const collector = new ServerMetrics({ every });
  const target = { kind: 'endpoint', url } as const;
  const availability = await collector.probe(target);
  const { name, metrics, engine } = collector;
  const info = availability.available
    ? { name, available: true, reason: null, remedy: null }
    : { ...availability, name };
  return { sources: [sourceOf(collector, target)], infos: [info], metrics, engine, said: [] };
}

interface FoundPage {
  readonly url: string;
  readonly collector: ServerMetrics;
}

interface Found {
  readonly collectors: readonly FoundPage[];
  readonly said: readonly string[];
  readonly why: { readonly reason: string; readonly remedy: string | null };
}

/** Looks for pages on the listening ports of processes and of what they started. */
class PageFinder {
  readonly #pids: readonly number[];
  readonly #any: boolean;
  readonly #every: Seconds;

  constructor(pids: readonly number[], { any, every }: { any: boolean; every: Seconds }) {
    this.#pids = pids;
    this.#any = any;
    this.#every = every;
  }

  /** Whether one of the processes is of a kind that has a page. */
  expectsPage(wanted: boolean): boolean {
    return wanted || this.#owners().some(({ role }) => publishesPage(role));
  }

  async find(): Promise<Found> {
    const { candidates, obstacle } = findPages(this.#owners(), { any: this.#any });
    const said: string[] = [];
    const collectors: FoundPage[] = [];
    let remedy: string | null = null;
    const until = monotonicNow() + FIND_LIMIT;
    for (const candidate of candidates) {
      if (collectors.length >= PAGES_READ || monotonicNow() > until) break;
      const collector = new ServerMetrics({ every: this.#every });
      const { url } = candidate;
      const answer = await collector.probe({ kind: 'endpoint', url });
      if (answer.available) {
        const detail = answer.detail ?? '';
        said.push(`${asking(candidate)}: ${detail} of ${collector.title ?? 'an unknown server'}`);
        collectors.push({ url, collector });
      } else {
        said.push(`${asking(candidate)}: ${answer.reason}`);
        collector.close();
        remedy ??= candidate.remedy;
      }
    }
    const asked = said.length === 0 ? null : said.join('; ');
    const reason = obstacle ?? asked ?? 'none of the processes listens on a TCP port';
    return { collectors, said, why: { reason, remedy } };
  }

  /** Looks again until a page is there, then reads that: of a server that is still starting. */
  source(): Source {
    const find = (): Promise<Found> => this.find();
    return {
      name: COLLECTOR_NAME,
      async *observe(context: ObserveContext): AsyncGenerator<Observation> {
        while (!context.signal.aborted) {
          await sleep(LOOK_AGAIN_EVERY * 1e3, undefined, { signal: context.signal }).catch(
            () => {},
          );
          if (context.signal.aborted) return;
          const [page, ...others] = (await find()).collectors;
          for (const { collector } of others) collector.close();
          if (page === undefined) continue;
          const target = { kind: 'endpoint', url: page.url } as const;
          yield* page.collector.observe(target, context);
          return;
        }
      },
    };
  }

  #owners(): Parameters<typeof findPages>[0] {
    const owners = new Map<number, Role | null>();
    for (const root of this.#pids) {
      // What a process is to its server is told by the one above it: the first root that has it says.
      for (const [pid, role] of rolesOf(root, descendantsOf(root)))
        if (!owners.has(pid)) owners.set(pid, role);
    }
    return [...owners].map(([pid, role]) => ({ pid, role }));
  }
}

function asking({ pid, role, url }: PageCandidate): string {
  return `${printable(url, 200)} of pid ${pid}${role === null ? '' : ` (${role})`}`;
}
