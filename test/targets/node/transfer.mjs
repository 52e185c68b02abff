/** Moves money between two rows of a database: in the order of the call, or in the order of their numbers. */
import pg from 'pg';

/** A pool, and two accounts. */
export async function connect() {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
  await pool.query('CREATE TABLE IF NOT EXISTS held (id int PRIMARY KEY, n int)');
  await pool.query('INSERT INTO held VALUES (1, 0), (2, 0) ON CONFLICT DO NOTHING');
  return pool;
}

async function move(pool, steps) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    for (const [id, by] of steps) {
      await client.query('UPDATE held SET n = n + $1 WHERE id = $2', [by, id]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

/** Two of them in opposite directions wait for each other. */
export function transfer(pool, from, to) {
  return move(pool, [
    [from, -1],
    [to, 1],
  ]);
}

/** Two of them wait for each other in one order. */
export function transferSorted(pool, from, to) {
  return move(
    pool,
    [
      [from, -1],
      [to, 1],
    ].sort(([a], [b]) => a - b),
  );
}
