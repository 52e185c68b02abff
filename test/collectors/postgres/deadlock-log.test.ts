import { describe, expect, it } from 'vitest';
import { DeadlockReader } from '../../../collectors/postgres/deadlock-log.ts';
import type { DeadlockReport } from '../../../src/core/database-look.ts';

function read(text: string, isOld = false): readonly DeadlockReport[] {
  const reader = new DeadlockReader('postgresql.log');
  const reports = text.split('\n').flatMap((line) => reader.line(line, isOld) ?? []);
  return [...reports, ...[reader.end(isOld) ?? []].flat()];
}

// As PostgreSQL 17.6 writes it.
const TEXT = `2026-11-23 15:12:24.275 UTC [17709] LOG:  database system is ready to accept connections
2026-11-23 15:12:24.465 UTC [17719] ERROR:  deadlock detected
2026-11-23 15:12:24.465 UTC [17719] DETAIL:  Process 17719 waits for ShareLock on transaction 740; blocked by process 17718.
\tProcess 17718 waits for ShareLock on transaction 741; blocked by process 17719.
\tProcess 17719: update accounts set balance=balance+1
\t where id=1
\tProcess 17718: update accounts set note='s3cret' where id=2
2026-11-23 15:12:24.465 UTC [17719] HINT:  See server log for query details.
2026-11-23 15:12:24.465 UTC [17719] CONTEXT:  while updating tuple (0,1) in relation "accounts"
2026-11-23 15:12:24.465 UTC [17719] STATEMENT:  update accounts set balance=balance+1
\t where id=1
2026-11-23 15:12:25.000 UTC [17720] LOG:  something else`;

const EXPECTED = {
  log: 'postgresql.log',
  at: Date.parse('2026-11-23T15:12:24.465Z') / 1e3,
  isOld: false,
  relation: 'accounts',
  members: [
    {
      pid: 17719,
      wants: 'ShareLock on transaction 740',
      blockedBy: 17718,
      statement: 'update accounts set balance=balance+? where id=?',
    },
    {
      pid: 17718,
      wants: 'ShareLock on transaction 741',
      blockedBy: 17719,
      statement: 'update accounts set note=? where id=?',
    },
  ],
};

describe('deadlock reports of PostgreSQL', () => {
  it('are read from text, with statements of several lines and without their literals', () => {
    // HINT ends the report; what follows it is not needed for its members.
    expect(read(TEXT)).toEqual([EXPECTED]);
    expect(read(`${TEXT}\n${TEXT}`)).toEqual([EXPECTED, EXPECTED]);
  });

  it('are read from a log that ends in the middle of one', () => {
    const [cut] = read(TEXT.split('\n').slice(0, 7).join('\n'), true);
    expect(cut).toMatchObject({ isOld: true, members: [{ pid: 17719 }, { pid: 17718 }] });
  });

  it('are read from CSV and from JSON lines', () => {
    const csv = `2026-11-23 15:12:24.465 UTC,"app","db",17719,"127.0.0.1:5000",69,3,"UPDATE",2026-11-23 15:12:20 UTC,3/4,741,ERROR,40P01,"deadlock detected","Process 17719 waits for ShareLock on transaction 740; blocked by process 17718.
Process 17718 waits for ShareLock on transaction 741; blocked by process 17719.
Process 17719: update accounts set balance=balance+1 where id=1
Process 17718: update accounts set note='s3cret' where id=2","See server log for query details.",,,"while updating tuple (0,1) in relation ""accounts""","update accounts set balance=balance+1 where id=1",,,"psql","client backend",,0
2026-11-23 15:12:25.000 UTC,"app","db",17720,"127.0.0.1:5001",70,1,"idle",2026-11-23 15:12:20 UTC,3/4,0,LOG,00000,"statement: x",,,,,,,,,"psql","client backend",,0`;
    const [first] = read(csv);
    expect(first).toEqual(EXPECTED);
    const json = JSON.stringify({
      timestamp: '2026-11-23 15:12:24.465 UTC',
      pid: 17719,
      error_severity: 'ERROR',
      state_code: '40P01',
      message: 'deadlock detected',
      detail: [
        'Process 17719 waits for ShareLock on transaction 740; blocked by process 17718.',
        'Process 17718 waits for ShareLock on transaction 741; blocked by process 17719.',
        'Process 17719: update accounts set balance=balance+1',
        ' where id=1',
        "Process 17718: update accounts set note='s3cret' where id=2",
      ].join('\n'),
      context: 'while updating tuple (0,1) in relation "accounts"',
    });
    expect(read(`${json}\n{"message":"checkpoint"}\n${json}`)).toEqual([EXPECTED, EXPECTED]);
  });

  it('leave no trace of what only looks like one', () => {
    const lines = [
      "2026-11-23 15:12:24 UTC [1] LOG:  statement: select 'deadlock detected'",
      '\tProcess 1 waits for ShareLock on transaction 740; blocked by process 2.',
      '\tERROR:  deadlock detected',
      '{"message":"deadlock detected","detail":7}',
      '{"message":"deadlock detected", cut',
      '2026-11-23 15:12:24 UTC [1] ERROR:  deadlock detected',
      '2026-11-23 15:12:24 UTC [1] LOG:  nothing said of it',
    ];
    expect(read(lines.join('\n'))).toEqual([]);
  });

  it('are bounded, whatever was sent to the server', () => {
    const members = Array.from(
      { length: 1000 },
      (_, i) => `\tProcess ${i} waits for X on transaction 1; blocked by process ${i + 1}.`,
    );
    const long = `\tProcess 1: select '${'x'.repeat(100_000)}`;
    const text = [
      '2026-11-23 15:12:24 CEST [1] ERROR:  deadlock detected',
      '2026-11-23 15:12:24 CEST [1] DETAIL:  Process 0 waits for \u001b[2J on x; blocked by process 1.',
      long,
      ...members,
    ].join('\n');
    const [report] = read(text);
    expect(report?.members).toHaveLength(16);
    expect(report?.members[0]?.wants).toBe('\\x1b[2J on x');
    // CEST, IST and the like are not unique.
    expect(report?.at).toBeNull();
    expect(JSON.stringify(report).length).toBeLessThan(6000);
  });
});
