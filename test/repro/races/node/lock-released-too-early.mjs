/** Lock released too early: the promise that holds it settles before the write. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

let last = Promise.resolve();
let value = 0;

function locked(work) {
  const mine = last.then(work);
  last = mine;
  return mine;
}

async function increment(after) {
  await outside(after);
  if (FIXED) {
    await locked(async () => {
      const before = value;
      await turn();
      value = before + 1;
    });
    return;
  }
  const before = await locked(() => value);
  await turn();
  value = before + 1;
}

await Promise.all([increment(1), increment(9)]);
process.exitCode = value === 2 ? 0 : 1;
