import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseLook } from '../../src/core/database-look.ts';
import { METRIC } from '../../src/core/semconv.ts';
import { DATABASE_SNAPSHOT } from '../../src/core/semconv-database.ts';
import type {
  Availability,
  Collector,
  EndpointTarget,
  Gap,
  Metric,
  Observation,
  ObserveContext,
  Seconds,
} from '../../src/core/types.ts';
import { holdersOf } from '../../src/platform/sockets.ts';
import { type Connection, openConnection, PostgresTrouble } from './connection.ts';
import { callOf, QUESTION, sessionOf, type SessionRow, waitingOf } from './sessions.ts';

/** Who waits for whose lock in a PostgreSQL server, asked over one connection that can only read. */

const NAME = 'postgres';
/** `log_lock_waits` of the server looks after a second as well (deadlock_timeout). */
const EVERY: Seconds = 1;
/** A server that is restarted is back within seconds; one that is gone is not asked more often than this. */
const AGAIN_AFTER: Seconds = 2;

export interface PostgresOptions {
  /** The processes of which the other ends of sessions may be. */
  readonly pids: () => readonly number[];
  /** Opens the connection; the real one by default. */
  readonly open?: () => Promise<Connection>;
  readonly every?: Seconds;
}

/** The target's URL is what `--postgres-url` says, credentials and all: it is neither recorded nor printed. */
export class Postgres implements Collector<EndpointTarget> {
  readonly name: string = NAME;
  readonly metrics: readonly Metric[] = [METRIC.databaseLockWaits];
  readonly #pids: PostgresOptions['pids'];
  readonly #open: PostgresOptions['open'];
  readonly #every: Seconds;
  #connection: Connection | null = null;

  constructor({ pids, open, every = EVERY }: PostgresOptions) {
    this.#pids = pids;
    this.#open = open;
    this.#every = every;
  }

  /** Opens the connection, which `observe` then uses. */
  async probe({ url }: EndpointTarget): Promise<Availability> {
    try {
      const { server, version, seesAll } = await this.#connect(url);
      const blind = seesAll ? '' : '; statements of other users are hidden (GRANT pg_monitor)';
      return { available: true, detail: `PostgreSQL ${version} at ${server}${blind}` };
    } catch (error) {
      const { message: reason, remedy } = troubleOf(error);
      return { available: false, reason, remedy };
    }
  }

  async *observe(
    { url }: EndpointTarget,
    { signal, clock }: ObserveContext,
  ): AsyncIterable<Observation> {
    let missing: Omit<Gap, 'to'> | null = null;
    for (let due = clock.mono(); !signal.aborted;) {
      const from = clock.now();
      try {
        const connection = await this.#connect(url);
        const rows = await connection.ask(QUESTION);
        if (missing !== null) yield { ...missing, to: from };
        missing = null;
        yield* this.#observations(rows, { at: clock.now(), server: connection.server });
      } catch (error) {
        const detail = troubleOf(error).message;
        missing ??= { kind: 'gap', from, collector: NAME, reason: 'failed', detail };
        await this.#close();
      }
      due = Math.max(due + (missing === null ? this.#every : AGAIN_AFTER), clock.mono());
      await sleep(Math.max(0, due - clock.mono()) * 1e3, undefined, { signal }).catch(() => {});
    }
    if (missing !== null) yield { ...missing, to: clock.now() };
    await this.#close();
  }

  *#observations(
    rows: readonly SessionRow[],
    { at, server }: { readonly at: Seconds; readonly server: string },
  ): Iterable<Observation> {
    const waiting = waitingOf(rows);
    yield {
      kind: 'sample',
      at,
      metric: METRIC.databaseLockWaits.name,
      value: waiting,
      attributes: { 'server.address': server },
    };
    if (waiting === 0) return;
    const callers = rows.flatMap((row) => callOf(row) ?? []);
    const holders = holdersOf(this.#pids(), callers);
    const sessions = rows.map((row) => {
      const call = callOf(row);
      return sessionOf(row, call === null ? null : (holders.get(call.port) ?? null));
    });
    const look: DatabaseLook = { server, waiting, sessions };
    yield { kind: 'snapshot', at, of: DATABASE_SNAPSHOT.locks, body: look };
  }

  async #connect(url: string): Promise<Connection> {
    this.#connection ??= await (this.#open ?? (() => openConnection(url)))();
    return this.#connection;
  }

  async #close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = null;
    await connection?.close();
  }
}

function troubleOf(error: unknown): PostgresTrouble {
  if (error instanceof PostgresTrouble) return error;
  throw error;
}
