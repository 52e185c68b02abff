/** Double initialisation: two callers find no connection and both open one. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

let connection = null;
let opened = 0;

async function open() {
  await turn();
  opened++;
  return { opened };
}

async function get(after) {
  await outside(after);
  if (FIXED) {
    connection ??= open();
    return await connection;
  }
  if (connection === null) connection = await open();
  return connection;
}

await Promise.all([get(1), get(7)]);
process.exitCode = opened === 1 ? 0 : 1;
