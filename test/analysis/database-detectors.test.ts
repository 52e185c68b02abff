import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type {
  DatabaseLook,
  DatabaseSession,
  DatabaseWait,
  DeadlockReport,
} from '../../src/core/database-look.ts';
import { DATABASE_SNAPSHOT } from '../../src/core/semconv-database.ts';
import type { Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { START, T0 } from './simulated-run.ts';

function findingsOf(...observations: readonly Observation[]) {
  const recording = memoryRecording(START);
  for (const observation of observations) recording.write(observation);
  return detectAll(recording.view());
}

function look(at: number, ...sessions: readonly DatabaseSession[]): Observation {
  const body: DatabaseLook = { server: 'db:5432/app', waiting: sessions.length, sessions };
  return { kind: 'snapshot', at: T0 + at, of: DATABASE_SNAPSHOT.locks, body };
}

function session(pid: number, changes: Partial<DatabaseSession> = {}): DatabaseSession {
  return {
    pid,
    user: 'app',
    database: 'app',
    application: null,
    state: 'active',
    inState: 0.1,
    inTransaction: 0.2,
    query: `UPDATE t SET n = ? WHERE id = ?`,
    owner: null,
    wait: null,
    ...changes,
  };
}

function waits(waited: number | null, by: readonly number[], mode = 'ShareLock'): DatabaseWait {
  return { waited, lock: 'transactionid', mode, relation: 'accounts', by };
}

const codes = (observations: readonly Observation[]) =>
  findingsOf(...observations).map(({ code, severity }) => `${code} ${severity}`);

describe('TRC122 database-locks', () => {
  it('follows a chain of waits to the session that has the lock, and counts all that wait in the end', () => {
    const idle = session(7, {
      application: 'worker',
      state: 'idle in transaction',
      inState: 6,
      inTransaction: 6.2,
      owner: 42,
    });
    const [found] = findingsOf(
      look(
        3,
        session(9, { wait: waits(2, [8], 'ExclusiveLock') }),
        session(8, { wait: waits(5.5, [7]) }),
        idle,
      ),
    );
    expect(found).toMatchObject({
      code: 'TRC122',
      kind: 'lock-contention',
      mechanism: 'idle in transaction',
      severity: 'warning',
      pid: 42,
      measure: { longest_wait_s: 5.5, waiters_count: 2, looks_count: 1, transaction_s: 6.2 },
    });
    expect(found?.summary).toBe(
      'up to 2 sessions wait for a lock of accounts in the database, one for 5.5 s: session 7 (worker) of pid 42 has it, idle in transaction for 6 s',
    );
    expect(found?.remedy).toContain('pg_terminate_backend(7)');
  });

  it('weighs by how long, and by whether anything will end it', () => {
    const blocked = (waited: number, state: string) => [
      look(3, session(8, { wait: waits(waited, [7]) }), session(7, { state })),
    ];
    expect(codes(blocked(0.9, 'active'))).toEqual([]);
    expect(codes(blocked(0.9, 'idle in transaction'))).toEqual([]);
    expect(codes(blocked(1.5, 'active'))).toEqual(['TRC122 note']);
    expect(codes(blocked(1.5, 'idle in transaction (aborted)'))).toEqual(['TRC122 warning']);
    expect(codes(blocked(4, 'active'))).toEqual(['TRC122 warning']);
    expect(codes(blocked(31, 'active'))).toEqual(['TRC122 critical']);
  });

  it('is silent on a busy row: somebody waits in each look, and never for long', () => {
    const busy = Array.from({ length: 60 }, (_, second) =>
      look(
        second,
        session(8 + (second % 4), { wait: waits(0.3, [7]) }),
        session(7, { state: second % 2 === 0 ? 'active' : 'idle in transaction' }),
      ),
    );
    expect(codes(busy)).toEqual([]);
  });

  it('counts looks in a row where the server does not say since when, and not looks with something in between', () => {
    const one = (second: number, changes: Partial<DatabaseSession> = {}) =>
      look(second, session(8, { wait: waits(null, [7]), ...changes }), session(7));
    expect(codes([0, 1, 2, 3, 4].map((second) => one(second)))).toEqual(['TRC122 warning']);
    expect(codes([0, 4, 8].map((second) => one(second)))).toEqual([]);
    expect(
      codes([0, 1, 2, 3].map((second) => one(second, { query: `SELECT ${'x'.repeat(second)}` }))),
    ).toEqual([]);
  });

  it('says what it may not see, and who cannot end it', () => {
    const hidden = session(7, { state: null, query: null, inState: null, inTransaction: null });
    const [unseen] = findingsOf(look(1, session(8, { wait: waits(4, [7]) }), hidden));
    expect(unseen?.confidence).toBe('likely');
    expect(unseen?.summary).toContain('what it does may not be seen');
    const prepared = session(0, { state: null, query: null });
    const [orphan] = findingsOf(look(1, session(8, { wait: waits(4, [0]) }), prepared));
    expect(orphan?.summary).toContain('a prepared transaction');
    expect(orphan?.remedy).toContain('ROLLBACK PREPARED');
  });

  it('takes whatever a recording holds', () => {
    const bodies = [null, 7, {}, { server: 'x', sessions: [null, {}, { pid: 'x' }] }];
    for (const body of [...bodies, { server: 'x', sessions: [{ pid: 1, wait: { by: 'x' } }] }])
      expect(findingsOf({ kind: 'snapshot', at: T0, of: DATABASE_SNAPSHOT.locks, body })).toEqual(
        [],
      );
  });
});

describe('TRC123 database-deadlock', () => {
  const report = (at: number | null, changes: Partial<DeadlockReport> = {}): Observation => ({
    kind: 'snapshot',
    at: T0 + 2,
    of: DATABASE_SNAPSHOT.deadlock,
    body: {
      log: 'postgresql.log',
      at: at === null ? null : T0 + at,
      isOld: false,
      relation: 'accounts',
      members: [
        { pid: 8, wants: 'ShareLock on transaction 1', blockedBy: 9, statement: 'UPDATE a' },
        { pid: 9, wants: 'ShareLock on transaction 2', blockedBy: 8, statement: 'UPDATE b' },
      ],
      ...changes,
    } satisfies DeadlockReport,
  });
  const circle = (second: number) =>
    look(
      second,
      session(8, { query: 'UPDATE a', wait: waits(0.4, [9]), owner: 42 }),
      session(9, { query: 'UPDATE b', wait: waits(0.3, [8]) }),
    );

  it('tells the statements of a report', () => {
    const [found] = findingsOf(report(2), report(5));
    expect(found).toMatchObject({
      code: 'TRC123',
      kind: 'deadlock',
      severity: 'warning',
      confidence: 'confirmed',
      measure: { deadlocks_count: 2, recent_count: 2, sessions_count: 2 },
    });
    expect(found?.summary).toBe(
      "the database ended 2 deadlocks of transactions on accounts: 'UPDATE a' and 'UPDATE b' waited for each other",
    );
  });

  it('finds the circle in the locks, with whose it is, and counts what the log says too once', () => {
    const [seen] = findingsOf(circle(2), circle(3));
    expect(seen).toMatchObject({ pid: 42, measure: { deadlocks_count: 1 } });
    const both = findingsOf(circle(2), report(2));
    expect(both).toHaveLength(1);
    expect(both[0]).toMatchObject({ pid: 42, measure: { deadlocks_count: 1 } });
  });

  it('takes what is old, or of an unknown time before the run, for a note', () => {
    expect(codes([report(-3600, { isOld: true })])).toEqual(['TRC123 warning']);
    expect(codes([report(-90_000, { isOld: true })])).toEqual(['TRC123 note']);
    expect(codes([report(null, { isOld: true })])).toEqual(['TRC123 note']);
  });

  it('is silent on waits that are no circle', () => {
    const chain = look(
      2,
      session(8, { wait: waits(0.4, [9]) }),
      session(9, { wait: waits(0.3, [7]) }),
      session(7),
    );
    expect(codes([chain])).toEqual([]);
  });
});
