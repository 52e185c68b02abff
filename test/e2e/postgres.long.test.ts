import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonEnvironment } from '../environments.ts';
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

describe('trace repro new --sql', () => {
  const PINS = join(import.meta.dirname, '..', 'servers', 'postgres', 'requirements.txt');
  const add = (id: number) => `UPDATE pairs SET n = n + 1 WHERE id = ${id};\n`;
  const FILES = {
    // What separates statements, and what does not.
    'there.sql': `BEGIN; -- first; one\n${add(1)}/* then; the other */ ${add(2)}COMMIT;\n`,
    'back.sql': `${add(2)}SELECT 'a;b', $q$c;d$q$;\n${add(1)}`,
    'again.sql': `SELECT 'a;b';\n${add(1)}${add(2)}`,
    'read.sql': 'SELECT sum(n) FROM pairs; UPDATE pairs SET n = n + 1 WHERE id = 1;',
    'wrong.sql': 'UPDATE nothing_of_this_name SET n = 1;',
  };
  let python = '';
  let place = '';
  beforeAll(async () => {
    ({ python } = await pythonEnvironment(['pg8000'], undefined, PINS));
    place = join(folder, 'sql');
    mkdirSync(place);
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(place, name), text);
    const client = await postgres.connect();
    await client.query(
      'CREATE TABLE pairs (id int PRIMARY KEY, n int); INSERT INTO pairs VALUES (1, 0), (2, 0)',
    );
  });

  /** Writes a reproduction; the database's address is nowhere in it. */
  async function write(name: string, made: readonly string[]): Promise<void> {
    const flags = ['--attempts', '24', '--python', python, '-o', name];
    const env = { DATABASE_URL: postgres.url() };
    const written = await runCli(['repro', 'new', ...made, ...flags], { cwd: place, env });
    expect(written.code, written.stderr).toBe(0);
    const texts = readdirSync(join(place, name)).map((file) =>
      readFileSync(join(place, name, file), 'utf8'),
    );
    expect(texts.join('\n')).not.toContain(new URL(postgres.url()).password);
  }

  /** Runs the script as a colleague would. */
  function start(name: string, env: Readonly<Record<string, string>>) {
    const run = spawnSync(python, ['repro.py'], { cwd: join(place, name), env, encoding: 'utf8' });
    return { code: run.status, output: run.stdout + run.stderr };
  }

  /** Trials as they were asked for, and with one attempt at a time. */
  async function judge(name: string) {
    const flags = ['-n', '2', '--python', python, '--no-recording', '--json'];
    const env = { DATABASE_URL: postgres.url() };
    const run = await runCli(['repro', 'run', name, ...flags], { cwd: place, env });
    const { trials } = JSON.parse(run.stdout) as {
      readonly trials: readonly { readonly arm: string; readonly errors: number | null }[];
    };
    const errors = (isControl: boolean) =>
      trials
        .filter(({ arm }) => (arm === 'concurrency 1') === isControl)
        .map((trial) => (trial.errors ?? -1) > 0);
    return { code: run.code, given: errors(false), control: errors(true) };
  }
  const files = (...names: readonly string[]) => names.flatMap((name) => ['--sql', name]);

  it('reproduces a deadlock of two transactions in opposite order, and none of the fixed twin', async () => {
    await write('crossed', files('there.sql', 'back.sql'));
    const crossed = await judge('crossed');
    expect(crossed).toEqual({ code: 1, given: [true, true], control: [false, false] });
    await write('fixed', files('there.sql', 'again.sql'));
    const fixed = await judge('fixed');
    expect(fixed).toEqual({ code: 0, given: [false, false], control: [false, false] });
    const { output } = start('crossed', { DATABASE_URL: postgres.url() });
    expect(output).toMatch(/^attempt \d+: deadlock \(40P01\)\n[^]*Errors: [1-9]\d* \/ 24\n$/);
    const client = await postgres.connect();
    // What was done is rolled back.
    const { rows } = await client.query('SELECT sum(n)::int AS n FROM pairs');
    expect(rows).toEqual([{ n: 0 }]);
  });

  it('reproduces serialization failures where what is done stays', async () => {
    const oracle = ['--oracle', 'transactions:end=commit,isolation=serializable'];
    await write('serial', [...files('read.sql', 'again.sql'), ...oracle]);
    const { code, output } = start('serial', { DATABASE_URL: postgres.url() });
    expect(code, output).toBe(1);
    expect(output).toContain('serialization failure (40001)');
  });

  it('cannot test without a database, or with statements that fail alone', async () => {
    await write('wrong', files('wrong.sql'));
    const nowhere = start('wrong', {});
    expect(nowhere).toMatchObject({ code: 125 });
    expect(nowhere.output).toContain('DATABASE_URL is not set');
    const wrong = start('wrong', { DATABASE_URL: postgres.url() });
    expect(wrong).toMatchObject({ code: 125 });
    expect(wrong.output).toContain('nothing_of_this_name');
  });
});

describe('trace repro new --call --oracle transactions', () => {
  const TRANSFER = join(import.meta.dirname, '..', 'targets', 'node', 'transfer.mjs');
  /** A deadlock is looked for after 20 ms instead of a second. */
  const hurried = () => `${postgres.url()}?options=-c%20deadlock_timeout%3D20ms`;

  it('finds the deadlock of a program that takes rows in any order, and none where it sorts them', async () => {
    const place = join(folder, 'call');
    mkdirSync(place);
    copyFileSync(TRANSFER, join(place, 'transfer.mjs'));
    symlinkSync(join(import.meta.dirname, '..', '..', 'node_modules'), join(place, 'node_modules'));
    writeFileSync(join(place, 'pairs.json'), '[[1, 2], [2, 1]]');
    const env = { DATABASE_URL: hurried() };
    const flags = ['--setup', './transfer.mjs#connect', '--args-file', 'pairs.json'];
    const ends = [];
    for (const name of ['transfer', 'transferSorted']) {
      const target = `./transfer.mjs#${name}`;
      const how = ['--oracle', 'transactions', '--attempts', '16', '-o', name];
      // oxlint-disable-next-line no-await-in-loop -- one after another: they work on the same rows
      const made = await runCli(['repro', 'new', '--call', target, ...flags, ...how], {
        cwd: place,
        env,
      });
      expect(made.code, made.stderr).toBe(0);
      const cwd = join(place, name);
      const run = spawnSync(process.execPath, ['repro.mjs'], {
        cwd,
        env: { ...process.env, ...env },
        encoding: 'utf8',
      });
      ends.push({ code: run.status, said: run.stdout.trim().split('\n').at(0) });
    }
    expect(ends).toEqual([
      { code: 1, said: expect.stringMatching(/^attempt \d+: deadlock \(40P01\)$/) as string },
      { code: 0, said: 'Errors: 0 / 16' },
    ]);
  });
});
