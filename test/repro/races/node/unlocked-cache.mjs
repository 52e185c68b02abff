/** Unlocked cache: a value loaded before an update is stored after it. */

import { setImmediate as turn } from 'node:timers/promises';

const FIXED = process.argv[2] === 'fixed';

/** Other work, that takes some turns of the loop. */
async function outside(turns) {
  for (let left = turns; left > 0; left--) await turn();
}

const cache = new Map();
let stored = 1;
let version = 0;

async function read() {
  if (!cache.has('price')) {
    const before = version;
    const value = stored;
    await turn();
    if (!FIXED || before === version) cache.set('price', value);
  }
  return cache.get('price') ?? stored;
}

async function update(value) {
  await outside(8);
  stored = value;
  version++;
  cache.delete('price');
}

await Promise.all([read(), update(2)]);
process.exitCode = (await read()) === 2 ? 0 : 1;
