import pg from 'pg';

/**
 * A program that works with a database (its URL in DATABASE_URL), in one of these ways: `busy` short transactions on a few rows, which wait for each
 * other for milliseconds; `forgetful` leaves a transaction open after an error, and others wait for its row; `crossed` takes two rows in both orders.
 */

const [way] = process.argv.slice(2);
const clients = [];

async function connect(name) {
  const client = new pg.Client({
    connectionString: process.env.DATABASE_URL,
    application_name: name,
  });
  client.on('error', () => {});
  await client.connect();
  clients.push(client);
  return client;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function setUp() {
  const client = await connect('setup');
  await client.query(
    'CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY, balance int, note text)',
  );
  await client.query(
    "INSERT INTO accounts SELECT n, 100, '' FROM generate_series(1, 8) n ON CONFLICT DO NOTHING",
  );
}

async function transaction(client, ids, { hold = 0, between = 0 } = {}) {
  await client.query('BEGIN');
  try {
    for (const id of ids) {
      await client.query(
        `UPDATE accounts SET balance = balance + 1, note = 'secret of ${process.pid}' WHERE id = ${id}`,
      );
      if (between > 0) await pause(between);
    }
    if (hold > 0) await pause(hold);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    if (error.code !== '40P01') throw error;
  }
}

async function busy() {
  const workers = await Promise.all([1, 2, 3, 4].map(() => connect('busy')));
  for (const client of workers) {
    void (async () => {
      // In one order, and each ends soon.
      for (;;) await transaction(client, [1, 2], { hold: 15 });
    })().catch(() => {});
  }
}

async function forgetful() {
  const [careless, ...others] = await Promise.all(
    ['careless', 'payments', 'payments'].map((name) => connect(name)),
  );
  await careless.query('BEGIN');
  await careless.query("UPDATE accounts SET balance = 0, note = 'hunter2' WHERE id = 1");
  for (const client of others) void transaction(client, [1]).catch(() => {});
}

async function crossed() {
  const [a, b] = await Promise.all(['there', 'back'].map((name) => connect(name)));
  for (;;) {
    await Promise.all([
      transaction(a, [1, 2], { between: 50 }),
      transaction(b, [2, 1], { between: 50 }),
    ]);
  }
}

await setUp();
void { busy, forgetful, crossed }[way]().catch(() => {});
process.stdout.write(`READY ${process.pid} 0\n`);
setInterval(() => {}, 1000);
