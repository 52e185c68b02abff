/** Lost update: a balance is read, something awaited, the sum written back. */

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
const account = { balance: 0 };

async function add(amount, after) {
  await outside(after);
  await locked(async () => {
    const before = account.balance;
    await turn();
    account.balance = before + amount;
  });
}

await Promise.all([add(1, 1), add(1, 7), add(1, 13)]);
process.exitCode = account.balance === 3 ? 0 : 1;
