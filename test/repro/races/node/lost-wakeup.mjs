/** Lost wake-up: a waiter looks, is kept up, and then waits for what has already happened. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

const items = [];
let wake = null;

async function take() {
  while (items.length === 0) {
    if (!FIXED) await turn();
    await new Promise((done) => (wake = done));
  }
  return items.pop();
}

async function put(item) {
  await outside(8);
  items.push(item);
  wake?.();
}

await Promise.all([take(), put(1)]);
