import { asArray, asFinite, asFrame, asObject, asString } from './otlp-values.ts';
import type { Frame, Seconds } from './types.ts';

/**
 * Threads that stand in a method of a connection pool until it has a connection for them, and the threads that have one: the body of a
 * `thread-pool` snapshot. Who has one is told by its variables: a connection, a response or a transaction that leads to the pool.
 */

/** So many threads that stand in one pool are looked into. */
export const POOL_THREADS = 3;
/** One that waits has stood for so long: where connections come back, each wait is over within milliseconds or a request. */
export const POOL_STANDS: Seconds = 3;

/** A thread that has a connection, or may have one. Names are untrusted. */
export interface PoolHolder {
  readonly name: string;
  readonly tid: number;
  /** `connection: Connection`; empty for one that is in a call of the pool's package. */
  readonly what: string;
  /** Whether that leads to this pool, and not to one of its kind. */
  readonly isCertain: boolean;
  /** What it does: `io`, `lock`, `sleep`, `running`, … */
  readonly wait: string;
  /** Since when it has not moved. */
  readonly since: Seconds;
  readonly frame: Frame | null;
}

export interface ThreadPoolLook {
  readonly pid: number;
  readonly pool: { readonly id: string; readonly type: string };
  readonly waiters: readonly {
    readonly name: string;
    readonly since: Seconds;
    readonly isTimed: boolean;
  }[];
  readonly holders: readonly PoolHolder[];
  /** Threads that moved while they were read: they may have one too. */
  readonly unread: number;
  /** Of one that waits, from the pool's method outwards. */
  readonly frames: readonly Frame[];
}

/** The body of a snapshot back into what was seen; undefined for what is none. */
export function toThreadPoolLook(body: unknown): ThreadPoolLook | undefined {
  const look = asObject(body);
  const pool = asObject(look?.['pool']);
  const pid = look?.['pid'];
  if (look === undefined || pool === undefined || typeof pid !== 'number') return undefined;
  return {
    pid,
    pool: { id: asString(pool['id']), type: asString(pool['type'], '?') },
    waiters: asArray(look['waiters']).flatMap((value) => {
      const waiter = asObject(value);
      if (waiter === undefined) return [];
      const name = asString(waiter['name'], '?');
      return [{ name, since: asFinite(waiter['since']), isTimed: waiter['isTimed'] === true }];
    }),
    holders: asArray(look['holders']).flatMap((value) => {
      const holder = asObject(value);
      if (holder === undefined) return [];
      return [
        {
          name: asString(holder['name'], '?'),
          tid: asFinite(holder['tid']),
          what: asString(holder['what']),
          isCertain: holder['isCertain'] === true,
          wait: asString(holder['wait'], 'other'),
          since: asFinite(holder['since']),
          frame: asFrame(holder['frame']),
        },
      ];
    }),
    unread: asFinite(look['unread']),
    frames: asArray(look['frames']).flatMap((frame) => asFrame(frame) ?? []),
  };
}
