import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { postgresPrograms } from './install.ts';

/** A real PostgreSQL, pinned, on loopback, with a data folder of its own: gone when it is stopped. */

const run = promisify(execFile);
/** PostgreSQL refuses to run as root: it is then run as nobody. */
const NOBODY = 65_534;
const START_LIMIT_MS = 60_000;
const PASSWORD = 'pw-of-tests-only';

export interface Postgres {
  readonly port: number;
  /** A URL for a database user, by default its superuser `postgres`; without a password where `password` is null. */
  url(user?: string, password?: string | null): string;
  /** Where it logs. */
  readonly log: string;
  /** Opens a connection of a superuser; closed by `stop`. */
  connect(): Promise<Client>;
  stop(): Promise<void>;
}

/** Starts one; `settings` as in postgresql.conf. Throws where the package cannot be installed or the server does not come up. */
export async function startPostgres(
  settings: Readonly<Record<string, string | number>> = {},
): Promise<Postgres> {
  const programs = await postgresPrograms();
  const folder = await mkdtemp(join(tmpdir(), 'tracewright-postgres-'));
  await chmod(folder, 0o755);
  const isRoot = process.getuid?.() === 0;
  const as = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  // The cache may lie where only its owner may look (root's home); links, where one file system has both.
  const native = join(folder, 'native');
  execFileSync('sh', [
    '-c',
    `cp -al "$1" "$2" 2>/dev/null || cp -a "$1" "$2"`,
    'sh',
    programs,
    native,
  ]);
  const data = join(folder, 'data');
  await mkdir(data);
  if (isRoot) await chown(data, NOBODY, NOBODY);
  const passwords = join(folder, 'password');
  appendFileSync(passwords, `${PASSWORD}\n`);
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwords}`];
  const bin = join(native, 'bin');
  const options = { ...as, cwd: folder, timeout: START_LIMIT_MS };
  await run(join(bin, 'initdb'), [...initdb, '-E', 'UTF8', '--locale=C', '--no-sync'], options);
  const port = await freePort();
  const log = join(data, 'server.log');
  const all = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: data,
    port,
    fsync: 'off',
    logging_collector: 'off',
    log_min_messages: 'warning',
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(
    'sh',
    ['-c', 'exec "$0" "$@" 2>"$LOG"', join(bin, 'postgres'), '-D', data, ...flags],
    {
      ...as,
      cwd: folder,
      env: { ...process.env, LOG: log },
      stdio: 'ignore',
    },
  );
  const exited = new Promise<void>((resolve) => server.on('exit', () => resolve()));
  const end = () => server.kill('SIGKILL');
  process.on('exit', end);
  const clients = new Set<Client>();
  const url: Postgres['url'] = (user = 'postgres', password = PASSWORD) =>
    `postgres://${user}${password === null ? '' : `:${password}`}@127.0.0.1:${port}/postgres`;
  const stop = async (): Promise<void> => {
    for (const client of clients) await client.end().catch(() => {});
    // Immediate shutdown: nothing of it is kept.
    server.kill('SIGQUIT');
    await exited;
    process.off('exit', end);
    await rm(folder, { recursive: true, force: true });
  };
  const connect = async (): Promise<Client> => {
    const client = new Client({ connectionString: url() });
    client.on('error', () => {});
    await client.connect();
    clients.add(client);
    return client;
  };
  try {
    await untilReady(connect, server);
  } catch (error) {
    const said = await readFile(log, 'utf8').catch(() => '');
    await stop();
    throw new Error(`PostgreSQL did not start: ${String(error)}\n${said}`);
  }
  return { port, url, log, connect, stop };
}

async function untilReady(connect: () => Promise<Client>, server: ChildProcess): Promise<void> {
  for (const until = Date.now() + START_LIMIT_MS; ;) {
    try {
      await connect();
      return;
    } catch (error) {
      if (Date.now() > until || server.exitCode !== null) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
