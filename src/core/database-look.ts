import { asArray, asObject } from './otlp-values.ts';
import type { Seconds } from './types.ts';

/** Who waits for whose lock in a database server, and what its log says of deadlocks: the bodies of snapshots. */

/** What a session waits for. */
export interface DatabaseWait {
  /** By the server's own clock; null where it is too old to say (PostgreSQL before 14). */
  readonly waited: Seconds | null;
  /** `relation`, `transactionid`, `tuple`, `advisory`, … as pg_locks has it, and the mode that is wanted. */
  readonly lock: string;
  readonly mode: string;
  /** The table, where the server tells. */
  readonly relation: string | null;
  /** Sessions that have to go first; 0 is a prepared transaction, which has none. */
  readonly by: readonly number[];
}

/** One session of the server that waits, or that others wait for. */
export interface DatabaseSession {
  /** The server's process of it; nothing of this machine. */
  readonly pid: number;
  readonly user: string | null;
  readonly database: string | null;
  readonly application: string | null;
  /** `active`, `idle in transaction`, …; null where the user may not see it. */
  readonly state: string | null;
  /** How long in that state, and in its transaction. */
  readonly inState: Seconds | null;
  readonly inTransaction: Seconds | null;
  /** Its last statement without literals; null where the user may not see it. */
  readonly query: string | null;
  /** The watched process that holds the other end of its connection. */
  readonly owner: number | null;
  readonly wait: DatabaseWait | null;
}

/** A server at one moment: the body of a `database-locks` snapshot. Only of moments at which somebody waited. */
export interface DatabaseLook {
  /** Host, port and database; never a credential. */
  readonly server: string;
  /** All that wait, also those that are not among the sessions. */
  readonly waiting: number;
  readonly sessions: readonly DatabaseSession[];
}

/** One process of a deadlock, as the server's log tells it. */
export interface DeadlockMember {
  readonly pid: number;
  /** `ShareLock on transaction 740`. */
  readonly wants: string | null;
  readonly blockedBy: number | null;
  /** Without literals. */
  readonly statement: string | null;
}

/** A deadlock report of a server's log: the body of a `database-deadlock` snapshot. */
export interface DeadlockReport {
  /** The log's file name. */
  readonly log: string;
  /** Unix time that the log gives it, null where its prefix has none that is understood. */
  readonly at: Seconds | null;
  /** It was in the log before the run began. */
  readonly isOld: boolean;
  readonly relation: string | null;
  readonly members: readonly DeadlockMember[];
}

/** The body of a snapshot back into what was seen; undefined for what is none. */
export function toDatabaseLook(body: unknown): DatabaseLook | undefined {
  const look = asObject(body);
  const sessions = asArray(look?.['sessions']).flatMap(toSession);
  const server = look?.['server'];
  if (typeof server !== 'string' || sessions.length === 0) return undefined;
  return { server, waiting: numberOr(look?.['waiting']) ?? 0, sessions };
}

/** The same of a deadlock report. */
export function toDeadlockReport(body: unknown): DeadlockReport | undefined {
  const report = asObject(body);
  const members = asArray(report?.['members']).flatMap((value): readonly DeadlockMember[] => {
    const one = asObject(value);
    const pid = numberOr(one?.['pid']);
    if (one === undefined || pid === null) return [];
    return [
      {
        pid,
        wants: textOr(one['wants']),
        blockedBy: numberOr(one['blockedBy']),
        statement: textOr(one['statement']),
      },
    ];
  });
  if (report === undefined || members.length === 0) return undefined;
  return {
    log: textOr(report['log']) ?? '',
    at: numberOr(report['at']),
    isOld: report['isOld'] === true,
    relation: textOr(report['relation']),
    members,
  };
}

function toSession(value: unknown): readonly DatabaseSession[] {
  const one = asObject(value);
  const pid = numberOr(one?.['pid']);
  if (one === undefined || pid === null) return [];
  return [
    {
      pid,
      user: textOr(one['user']),
      database: textOr(one['database']),
      application: textOr(one['application']),
      state: textOr(one['state']),
      inState: numberOr(one['inState']),
      inTransaction: numberOr(one['inTransaction']),
      query: textOr(one['query']),
      owner: numberOr(one['owner']),
      wait: toWait(one['wait']),
    },
  ];
}

function toWait(value: unknown): DatabaseWait | null {
  const wait = asObject(value);
  if (wait === undefined) return null;
  return {
    waited: numberOr(wait['waited']),
    lock: textOr(wait['lock']) ?? '?',
    mode: textOr(wait['mode']) ?? '?',
    relation: textOr(wait['relation']),
    by: asArray(wait['by']).filter((pid) => typeof pid === 'number'),
  };
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function numberOr(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
