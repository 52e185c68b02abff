import { isIP } from 'node:net';
import { errorCode } from '../../src/core/errors.ts';
import { MASK } from '../../src/core/secrets/mark.ts';
import { maskText } from '../../src/core/secrets/mask.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { Client as PgClient } from 'pg';
import type { SessionRow } from './sessions.ts';

/** The one connection to a PostgreSQL server: it reads and can do nothing else, and gives up early. */

const CONNECT_LIMIT: Seconds = 5;
/** A server that takes longer for its own tables is in trouble, and must not get more of it from us. */
const STATEMENT_LIMIT: Seconds = 2;
/**
 * `default_transaction_read_only` makes any write an error. Sent as a statement: connection poolers refuse most parameters of a connection. No parallel
 * workers and no compilation for a question of milliseconds.
 */
const SETTINGS = [
  `SET application_name = 'tracewright'`,
  'SET default_transaction_read_only = on',
  `SET statement_timeout = ${STATEMENT_LIMIT * 1e3}`,
  `SET lock_timeout = ${STATEMENT_LIMIT * 500}`,
  'SET max_parallel_workers_per_gather = 0',
].join('; ');

/** Why a server could not be asked: never with a credential in it. */
export class PostgresTrouble extends Error {
  /** What a user can do about it. */
  readonly remedy: string | null;

  constructor(message: string, remedy: string | null = null) {
    super(message);
    this.remedy = remedy;
  }
}

export interface Connection {
  /** `host:port/database`. */
  readonly server: string;
  /** The server's release, `17.6`. */
  readonly version: string;
  /** Whether the statements and states of other users' sessions are shown to this one. */
  readonly seesAll: boolean;
  /** Rejects with a {@link PostgresTrouble}. */
  ask(question: string): Promise<readonly SessionRow[]>;
  close(): Promise<void>;
}

/**
 * Opens it as psql would: what the URL leaves out comes from PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD and ~/.pgpass. Rejects with a
 * {@link PostgresTrouble}.
 */
export async function openConnection(url: string): Promise<Connection> {
  // Without the pool and the search for a native client that the package's front door has.
  // @ts-expect-error the package's types know its front door alone
  const { default: Client } = (await import('pg/lib/client.js')) as { default: typeof PgClient };
  const secrets = [...secretsOf(url)];
  const trouble = (error: unknown): PostgresTrouble => troubleOf(error, secrets);
  let client: PgClient;
  try {
    client = new Client({
      connectionString: likePsql(url),
      connectionTimeoutMillis: CONNECT_LIMIT * 1e3,
      // The server's own limit stands before this one; this is for a server that is gone without a word.
      query_timeout: STATEMENT_LIMIT * 2e3,
      keepAlive: true,
    });
  } catch (error) {
    throw trouble(error);
  }
  // A connection that breaks while nothing is asked: the next question says it.
  client.on('error', () => {});
  const close = (): Promise<void> => client.end().catch(() => {});
  try {
    await client.connect();
    if (typeof client.password === 'string') secrets.push(client.password);
    await client.query(SETTINGS);
    const { rows } = await client.query(
      `SELECT current_setting('server_version') AS version, (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
         OR pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all`,
    );
    const [first = {}] = rows;
    return {
      server: `${hostText(client.host)}:${client.port}/${printable(String(client.database ?? ''), 60)}`,
      version: printable(String(first['version'] ?? '?'), 40).replace(/ .*$/, ''),
      seesAll: first['sees_all'] === true,
      ask: async (question) => {
        try {
          return (await client.query(question)).rows;
        } catch (error) {
          throw trouble(error);
        }
      },
      close,
    };
  } catch (error) {
    await close();
    throw trouble(error);
  }
}

/** `sslmode` as libpq takes it: `require` encrypts, and only `verify-ca` and `verify-full` look at certificates. */
function likePsql(url: string): string {
  return /[?&]sslmode=/.test(url) && !/[?&]uselibpqcompat=/.test(url)
    ? `${url}&uselibpqcompat=true`
    : url;
}

function hostText(host: string): string {
  const text = printable(host, 100);
  return isIP(host) === 6 ? `[${text}]` : text;
}

function secretsOf(url: string): readonly string[] {
  const found = /^[a-z]+:\/\/[^/?#]*?:([^/?#]*)@/i.exec(url)?.[1] ?? '';
  const parameter = /[?&]password=([^&#]*)/.exec(url)?.[1] ?? '';
  return [found, parameter, process.env['PGPASSWORD'] ?? ''].flatMap((one) => {
    try {
      return [one, decodeURIComponent(one)];
    } catch {
      return [one];
    }
  });
}

/** SQLSTATE and system errors that a user can do something about. */
const REMEDIES: Readonly<Record<string, string>> = {
  ECONNREFUSED:
    'Is it running, and does it listen there? The URL, or PGHOST and PGPORT, say where.',
  ENOTFOUND: 'The URL, or PGHOST, says which host.',
  '28P01': 'The password comes from the URL, PGPASSWORD or ~/.pgpass.',
  '28000':
    'The URL, or PGUSER, says who; pg_hba.conf of the server says who may, and whether with ?sslmode=require.',
  '3D000': 'The URL, or PGDATABASE, says which database.',
  '53300':
    'The server has no connection left: one is kept free for members of pg_use_reserved_connections and superusers.',
  '42501': 'GRANT pg_monitor to the user.',
};

function troubleOf(error: unknown, secrets: readonly string[]): PostgresTrouble {
  if (error instanceof PostgresTrouble) return error;
  // Of several addresses of a name, what the first said.
  const first = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const code = errorCode(first);
  const said = first instanceof Error && first.message !== '' ? first.message : code;
  // All of a short one could stand anywhere by chance, and is hidden all the same.
  const masked = secrets
    .filter((secret) => secret !== '')
    .reduce((text, secret) => text.replaceAll(secret, MASK), said);
  const needsPassword = /SASL|password must be a string|no password/i.test(said);
  const remedy = REMEDIES[code] ?? (needsPassword ? REMEDIES['28P01'] : undefined) ?? null;
  return new PostgresTrouble(
    needsPassword && code !== '28P01' ? 'it asks for a password' : printable(maskText(masked), 300),
    remedy,
  );
}
