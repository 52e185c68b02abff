/** Names of what is seen of a database server, beside the metric in semconv.ts. */

export const DATABASE_SNAPSHOT = {
  /** Who waits for whom: a DatabaseLook (database-look.ts), of each second in which somebody waited. */
  locks: 'database-locks',
  /** One deadlock of a server's log: a DeadlockReport (database-look.ts). */
  deadlock: 'database-deadlock',
} as const;
