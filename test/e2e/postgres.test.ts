import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Postgres, startPostgres } from '../servers/postgres.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { type Ended, parseReport, runCli } from './cli.ts';

/* Lock waits and deadlocks in a real PostgreSQL, asked by trace while a program works with it. */

const CLIENT = join(import.meta.dirname, '..', 'targets', 'node', 'database-client.js');
const folder = mkdtempSync(join(tmpdir(), 'trace-postgres-'));
let postgres: Postgres;
beforeAll(async () => {
  postgres = await startPostgres({ max_connections: 40 });
  const client = await postgres.connect();
  await client.query("CREATE ROLE plain LOGIN PASSWORD 'plain-password-1'");
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function target(way: string): Promise<Running> {
  return startReady('env', [`DATABASE_URL=${postgres.url()}`, process.execPath, CLIENT, way]);
}

function attach(pid: number, ...flags: readonly string[]): Promise<Ended> {
  return runCli(['attach', String(pid), '-d', '3', '--json', ...flags], { cwd: folder });
}

/** Everything that a run left behind and printed. */
function traces(run: Ended, recording: string): string {
  const files = readdirSync(recording).map((name) => readFileSync(join(recording, name), 'latin1'));
  return [run.stdout, run.stderr, ...files].join('\n');
}

describe('--postgres-url', () => {
  it('names the idle transaction that others wait for, and whose connection it is; without literals and password', async () => {
    const program = await target('forgetful');
    const recording = join(folder, 'forgetful');
    try {
      const [run, plain] = await Promise.all([
        attach(program.pid, '--postgres-url', postgres.url(), '-o', recording),
        attach(program.pid, '--postgres-url', postgres.url('plain', 'plain-password-1')),
      ]);
      const found = parseReport(run).findings.find(({ code }) => code === 'TRC122');
      expect(run.code).toBe(1);
      expect(found).toMatchObject({
        kind: 'lock-contention',
        mechanism: 'idle in transaction',
        severity: 'warning',
        confidence: 'confirmed',
        pid: program.pid,
      });
      expect(found?.summary).toMatch(
        /^up to 2 sessions wait for a lock of accounts in the database, one for [\d.]+ s: session \d+ \(careless\) of pid \d+ has it, idle in transaction for \d/,
      );
      expect(JSON.stringify(found)).toContain(
        'UPDATE accounts SET balance = ?, note = ? WHERE id = ?',
      );
      expect(found?.measure['longest_wait_s']).toBeGreaterThan(1.5);
      const left = traces(run, recording);
      const password = new URL(postgres.url()).password;
      for (const secret of [password, 'hunter2', 'secret of']) expect(left).not.toContain(secret);
      // A user without rights sees that they wait, and is told what it takes to see more.
      const unseen = parseReport(plain).findings.find(({ code }) => code === 'TRC122');
      expect(unseen?.summary).toContain('what it does may not be seen');
      expect(unseen?.confidence).toBe('likely');
      expect(plain.stderr).toContain('GRANT pg_monitor');
    } finally {
      await program.stop();
    }
  });

  it('tells of deadlocks by the locks and by the log, once each, and says which statements', async () => {
    const program = await target('crossed');
    try {
      const both = ['--postgres-url', postgres.url(), '--postgres-log', postgres.log];
      const run = await attach(program.pid, ...both);
      const found = parseReport(run).findings.filter(({ code }) => code === 'TRC123');
      expect(found).toHaveLength(1);
      expect(found[0]).toMatchObject({ kind: 'deadlock', severity: 'warning', pid: program.pid });
      expect(found[0]?.summary).toContain(
        "'UPDATE accounts SET balance = balance + ?, note = ? WHERE id = ?' and 'UPDATE",
      );
      expect(found[0]?.measure['sessions_count']).toBe(2);
      expect(JSON.stringify(found[0])).toContain('told by the log server.log');
    } finally {
      await program.stop();
    }
  });

  it('is silent on short waits, and leaves a server that it cannot write to as it was', async () => {
    const program = await target('busy');
    const client = await postgres.connect();
    try {
      const running = attach(program.pid, '--postgres-url', postgres.url());
      let asked: unknown[] = [];
      for (const until = Date.now() + 10_000; asked.length === 0 && Date.now() < until;) {
        const { rows } = await client.query(
          "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'tracewright' HAVING count(*) > 0",
        );
        asked = rows;
      }
      expect(asked).toEqual([{ count: 1 }]);
      const run = await running;
      const report = parseReport(run);
      expect(report.findings.filter(({ code }) => /^TRC12[23]$/.test(code))).toEqual([]);
      const waits = report.metrics['tracewright.database.lock.waiting']?.series[0];
      // It did look while sessions waited.
      expect(waits?.count).toBeGreaterThanOrEqual(2);
      expect(waits?.max).toBeGreaterThanOrEqual(1);
      const { rows } = await client.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'tracewright'",
      );
      expect(rows).toEqual([]);
    } finally {
      await program.stop();
    }
  });

  it('says once why a server cannot be asked, and watches the rest; a log is read alone', async () => {
    const program = await target('busy');
    copyFileSync(postgres.log, join(folder, 'postgresql.log'));
    try {
      const wrong = postgres.url('plain', 'not-its-password');
      const nowhere = 'postgres://u:pw-nowhere@127.0.0.1:1/x';
      const [logged, refused, denied] = await Promise.all([
        attach(program.pid, '--postgres-log', 'postgresql.log'),
        attach(program.pid, '--postgres-url', nowhere, '-o', join(folder, 'refused')),
        attach(program.pid, '--postgres-url', wrong, '-o', join(folder, 'denied')),
      ]);
      const found = parseReport(logged).findings.find(({ code }) => code === 'TRC123');
      expect(found?.measure['deadlocks_count']).toBeGreaterThanOrEqual(1);
      expect(found?.summary).toContain('before this run');
      const of = (run: Ended) =>
        parseReport(run).collectors.find(({ name }) => name === 'postgres');
      expect(of(refused)).toMatchObject({ available: false });
      expect(of(refused)?.reason).toContain('ECONNREFUSED');
      expect(of(denied)?.reason).toContain('password authentication failed for user "plain"');
      expect(of(denied)?.remedy).toContain('~/.pgpass');
      for (const [run, name, secret] of [
        [refused, 'refused', 'pw-nowhere'],
        [denied, 'denied', 'not-its-password'],
      ] as const) {
        expect([0, 6]).toContain(run.code);
        expect(parseReport(run).metrics['process.cpu.time']).toBeDefined();
        expect(traces(run, join(folder, name))).not.toContain(secret);
      }
    } finally {
      await program.stop();
    }
  });
});
