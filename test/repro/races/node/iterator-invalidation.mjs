/** Iterator invalidation: rows are gone through by index while one is taken out. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

const rows = ['a', 'b', 'c'];
const told = [];

async function tell() {
  for (const row of FIXED ? [...rows] : rows) {
    await turn();
    told.push(row);
  }
}

async function remove(after) {
  await outside(after);
  rows.shift();
}

await Promise.all([tell(), remove(8)]);
process.exitCode = told.join('') === 'abc' ? 0 : 1;
