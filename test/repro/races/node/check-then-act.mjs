/** Check then act: a seat is looked up, a payment awaited, the seat taken. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

/** One at a time, where it is fixed. */
function makeLock() {
  let last = Promise.resolve();
  return (work) => {
    if (!FIXED) return work();
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}

const locked = makeLock();
let free = 1;
let sold = 0;

async function book(after) {
  await outside(after);
  await locked(async () => {
    if (free === 0) return;
    await turn();
    free--;
    sold++;
  });
}

await Promise.all([book(1), book(8)]);
process.exitCode = sold === 1 ? 0 : 1;
