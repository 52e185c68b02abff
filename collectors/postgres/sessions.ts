import type { DatabaseSession } from '../../src/core/database-look.ts';
import { queryShape } from '../../src/core/query-shape.ts';
import { printable } from '../../src/core/text.ts';

/** The question that is asked of PostgreSQL once a second, and its answer. */

/** Sessions that wait, those that have waited longest; and all that are told of, those they wait for included. */
const WAITERS = 32;
const SESSIONS = 96;
const NAME_LIMIT = 100;

/**
 * One row a session that waits or is waited for; none when nobody waits, and then the server has only copied its table of locks.
 * `pg_blocking_pids` looks at all locks, and is called for the chosen ones alone. Which table a row belongs to that somebody has changed and
 * not committed is not in the wait (for its transaction) but in the tuple lock that the first to wait holds. `waitstart` came with PostgreSQL
 * 14: through jsonb the statement is the same for all since 9.6.
 * @see https://www.postgresql.org/docs/current/view-pg-locks.html
 */
export const QUESTION: string = `
WITH locks AS (SELECT * FROM pg_catalog.pg_locks),
waits AS (
  SELECT l.pid, l.locktype, l.mode, l.database,
    coalesce(l.relation, (SELECT t.relation FROM locks t
      WHERE t.pid = l.pid AND t.granted AND t.locktype = 'tuple' LIMIT 1)) AS relation,
    (to_jsonb(l) ->> 'waitstart')::timestamptz AS since,
    (count(*) OVER ())::int AS waiting
  FROM locks l
  WHERE NOT l.granted AND l.pid IS NOT NULL AND l.pid <> pg_catalog.pg_backend_pid()
  ORDER BY since NULLS LAST LIMIT ${WAITERS}),
waiters AS (SELECT w.*, pg_catalog.pg_blocking_pids(w.pid) AS blockers FROM waits w),
involved AS (SELECT pid FROM waiters UNION SELECT unnest(blockers) FROM waiters)
SELECT i.pid, a.usename::text AS user, a.datname::text AS database, a.application_name AS application,
  host(a.client_addr) AS client_address, a.client_port, a.state, left(a.query, 4000) AS query,
  extract(epoch FROM clock_timestamp() - a.state_change)::float8 AS in_state,
  extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS in_transaction,
  w.locktype AS lock, w.mode, w.blockers, w.waiting,
  extract(epoch FROM clock_timestamp() - w.since)::float8 AS waited,
  CASE WHEN w.relation IS NULL THEN NULL
    WHEN w.database = 0 OR w.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
      OR w.database IS NULL AND a.datname = current_database()
    THEN w.relation::regclass::text
    ELSE 'relation ' || w.relation END AS relation
FROM involved i
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = i.pid
LEFT JOIN waiters w ON w.pid = i.pid
ORDER BY w.since NULLS LAST LIMIT ${SESSIONS}`;

/** A row as the server sends it: all of it is what others called themselves, and untrusted. */
export type SessionRow = Readonly<Record<string, unknown>>;

/** From where a session was opened; null for a local socket, or where the user may not see it. */
export interface CallAddress {
  readonly address: string;
  readonly port: number;
}

export function callOf(row: SessionRow): CallAddress | null {
  const { client_address: address, client_port: port } = row;
  return typeof address === 'string' && typeof port === 'number' && port > 0
    ? { address, port }
    : null;
}

/** How many wait in all; the rows may be fewer. */
export function waitingOf(rows: readonly SessionRow[]): number {
  return Math.max(0, ...rows.map(({ waiting }) => numberOf(waiting) ?? 0));
}

/** A row as it is recorded: literals are out of statements, names bounded. */
export function sessionOf(row: SessionRow, owner: number | null): DatabaseSession {
  const { lock, mode, blockers } = row;
  const state = nameOf(row['state']);
  return {
    pid: numberOf(row['pid']) ?? 0,
    user: nameOf(row['user']),
    database: nameOf(row['database']),
    application: nameOf(row['application']),
    state,
    inState: numberOf(row['in_state']),
    inTransaction: numberOf(row['in_transaction']),
    // Without the right the server says so in place of the statement.
    query: state !== null && typeof row['query'] === 'string' ? queryShape(row['query']) : null,
    owner,
    wait:
      typeof lock !== 'string'
        ? null
        : {
            waited: numberOf(row['waited']),
            lock: printable(lock, NAME_LIMIT),
            mode: nameOf(mode) ?? '?',
            relation: nameOf(row['relation']),
            by: Array.isArray(blockers)
              ? [...new Set(blockers.filter((pid) => typeof pid === 'number'))].slice(0, WAITERS)
              : [],
          },
  };
}

function nameOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? printable(value, NAME_LIMIT) : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
